//! A real Kubernetes control plane as child processes: etcd and kube-apiserver always, the rest when asked for.
//!
//! Used by the tests and by the lab. Everything listens on loopback, lives in one temporary folder, and ends with
//! the process that started it, however that process ends.

mod access;
mod audit;
mod cluster;
mod companion;
mod components;
mod crds;
mod error;
mod kubeconfig;
mod leash;
mod pki;
mod ports;
mod process;
mod shared;
pub mod tools;

pub use access::{Access, Identity};
pub use audit::{AuditLog, Mark, Request};
pub use cluster::{Builder, Cluster};
pub use companion::Companion;
pub use components::{Component, Descheduler, Kwok, Prometheus};
pub use error::{Error, Result};
pub use ports::Port;
pub use process::Startup;
pub use shared::{own, target};
