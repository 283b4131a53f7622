//! A real Kubernetes control plane as child processes: etcd and kube-apiserver always, the rest when asked for.
//! Used by the tests and by the lab. Everything listens on loopback, lives in one temporary folder, and ends with
//! the process that started it, however that process ends.

mod access;
mod audit;
mod builder;
mod cluster;
mod components;
mod crds;
mod error;
mod kill_on_exit;
mod kubeconfig;
mod pki;
mod poll;
mod ports;
mod process;
mod running_program;
mod shared;
pub mod tools;

pub use access::{Access, Identity};
pub use audit::{AuditLog, AuditedRequest, LogPosition};
pub use builder::Builder;
pub use cluster::Cluster;
pub use components::{Component, Descheduler, Kwok, Prometheus};
pub use error::{Error, Result};
pub use pki::CertificateAndKey;
pub use poll::poll;
pub use ports::Port;
pub use process::Startup;
pub use running_program::RunningProgram;
pub use shared::{own, target};
