//! A real node for tests: a kubelet with containerd and runc, kube-proxy and CoreDNS, beside our control plane. All of it, and the
//! test itself, runs in namespaces of its own, which have no way out. A test is started twice: the first time it only enters them and
//! starts itself again (`run`), the second time it has a [`Node`].

mod archive;
mod containerd;
mod dns;
mod host;
mod kubelet;
mod machine;
mod namespaces;
mod node;
mod prerequisites;

pub use archive::{Archive, Content};
pub use host::Host;
pub use namespaces::run;
pub use node::{NAME, Node};
