//! Why a cluster could not be started or reached.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{variable} is {}: {problem}", .path.display())]
    BadAsset { variable: String, path: PathBuf, problem: &'static str },

    #[error(
        "{program} is needed and not built yet, and Go was not found.\n\
         Do one of these, then try again:\n  \
           - install Go {go} or newer (https://go.dev/dl), and `make tools` builds it\n  \
           - set {variable} to an existing {program}\n  \
           - set KUBEBUILDER_ASSETS to a folder that holds it"
    )]
    GoMissing { program: &'static str, variable: String, go: &'static str },

    #[error("building {program} failed ({status}); the compiler said:\n{output}")]
    Build { program: &'static str, status: ExitStatus, output: String },

    #[error("{program} ended ({status}) before it was ready; its log is {}\n{tail}", .log.display())]
    Exited { program: &'static str, status: ExitStatus, log: PathBuf, tail: String },

    #[error("{program} was not ready after {} s: {last}; its log is {}\n{tail}", .waited.as_secs(), .log.display())]
    NotReady { program: &'static str, waited: Duration, last: String, log: PathBuf, tail: String },

    #[error("this cluster does not run {0}: it was not asked for, or it was stopped")]
    NotStarted(&'static str),

    #[error("CustomResourceDefinition {name} is not established after {} s", .waited.as_secs())]
    NotEstablished { name: String, waited: Duration },

    #[error("{name} cannot be listed after {} s: {last}", .waited.as_secs())]
    NotServed { name: String, waited: Duration, last: String },

    #[error("the audit log did not tell within {} s how everything was answered", .waited.as_secs())]
    AuditLags { waited: Duration },

    #[error("{doing}: {cause}")]
    Io { doing: String, cause: io::Error },

    #[error("making certificates: {0}")]
    Pki(#[from] rcgen::Error),

    #[error("reading the kubeconfig: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),

    #[error("{doing}: {cause}")]
    Api { doing: String, cause: Box<kube::Error> },

    #[error("{doing}: {cause}")]
    Yaml { doing: String, cause: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// A stable word for the kind of failure.
    pub fn reason(&self) -> &'static str {
        match self {
            Error::BadAsset { .. } => "BadAsset",
            Error::GoMissing { .. } => "GoMissing",
            Error::Build { .. } => "BuildFailed",
            Error::Exited { .. } => "ProgramExited",
            Error::NotReady { .. } => "ProgramNotReady",
            Error::NotStarted(_) => "ComponentNotStarted",
            Error::NotEstablished { .. } => "CrdNotEstablished",
            Error::NotServed { .. } => "CrdNotServed",
            Error::AuditLags { .. } => "AuditLags",
            Error::Io { .. } => "Io",
            Error::Pki(_) => "Pki",
            Error::Kubeconfig(_) => "Kubeconfig",
            Error::Api { .. } => "ApiRequestFailed",
            Error::Yaml { .. } => "InvalidYaml",
        }
    }
}

/// Says what was being done when an error came, at the place that knows.
pub(crate) trait Context<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error::Io { doing: doing(), cause })
    }
}

impl<T> Context<T> for kube::Result<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| Error::Api { doing: doing(), cause: Box::new(cause) })
    }
}
