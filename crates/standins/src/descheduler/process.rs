//! The real descheduler as a child process: its files, its certificate, its command line.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use devcluster::{
    Port, RunningProgram,
    tools::{self, Program},
};
use kube_io::{HttpClient, RequestError};
use rcgen::{CertificateParams, KeyPair};
use thiserror::Error;

use super::{COMPONENT, DeschedulerSettings, Policy};

const NAME: &str = "descheduler";
const POLICY: &str = "descheduler-policy.yaml";
const CERTIFICATE: &str = "descheduler.crt";
const KEY: &str = "descheduler.key";
const LOG: &str = "descheduler.log";
/// Our build of the descheduler reads this file in its working folder, even for plain HTTP.
const PROMETHEUS_CA: &str = "prometheus-ca.crt";
/// The timeout of a request to the descheduler.
const TIMEOUT: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(5);
/// The longest error message that is reported, in characters.
const LONGEST_MESSAGE: usize = 400;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{doing} {path}: {cause}")]
    File { doing: &'static str, path: String, cause: io::Error },
    #[error("making a certificate for the descheduler: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Process(#[from] devcluster::Error),
    #[error(transparent)]
    Http(#[from] RequestError),
    #[error("listening at {address}: {cause}; choose another address")]
    Listen { address: String, cause: io::Error },
}

/// The path of our build of the descheduler. It is built first if necessary, which takes minutes.
pub fn program() -> Result<PathBuf, Error> {
    Ok(tools::ensure(Program::Descheduler)?)
}

/// The HTTPS address of the descheduler, whether it runs or not.
#[derive(Debug)]
pub(super) struct Endpoint {
    port: Port,
    /// A client that trusts its certificate.
    pub(super) client: HttpClient,
}

impl Endpoint {
    /// Reserves a port, and creates the folder and the certificates, which all starts share.
    pub(super) fn create(folder: &Path) -> Result<Endpoint, Error> {
        std::fs::create_dir_all(folder).map_err(|cause| file("creating", folder, cause))?;
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?.self_signed(&key)?;
        write(&folder.join(CERTIFICATE), &certificate.pem(), 0o644)?;
        write(&folder.join(KEY), &key.serialize_pem(), 0o600)?;
        write(&folder.join(PROMETHEUS_CA), &certificate.pem(), 0o644)?;
        let port = Port::reserve()?;
        let url = format!("https://{}", port.address());
        let client = HttpClient::new(&url, COMPONENT, Some(certificate.der().to_vec()), TIMEOUT)?;
        Ok(Endpoint { port, client })
    }
}

/// A descheduler that was started. It is killed when dropped, and whenever this process ends.
#[derive(Debug)]
pub(super) struct Descheduler {
    program: RunningProgram,
}

impl Descheduler {
    pub(super) fn start(
        endpoint: &Endpoint,
        settings: &DeschedulerSettings,
        policy: &Policy,
    ) -> Result<Descheduler, Error> {
        let path = |name: &str| settings.folder.join(name).display().to_string();
        write(&settings.folder.join(POLICY), &policy.text, 0o644)?;
        let mut args = vec![
            format!("--policy-config-file={}", path(POLICY)),
            "--logging-format=text".to_owned(),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", endpoint.port.number()),
            format!("--tls-cert-file={}", path(CERTIFICATE)),
            format!("--tls-private-key-file={}", path(KEY)),
        ];
        // Without it the descheduler uses the service account of its pod.
        args.extend(settings.kubeconfig.as_ref().map(|file| format!("--kubeconfig={}", file.display())));
        args.extend(policy.flags());
        let log = log_path(&settings.folder);
        Ok(Descheduler { program: RunningProgram::spawn(NAME, &settings.program, args, &settings.folder, &log)? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        self.program.exit_status()
    }

    /// The last error in its log, or else the last line.
    pub(super) fn last_error(&self) -> String {
        let tail = self.program.log_tail();
        let lines: Vec<&str> = tail.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let error = lines.iter().rev().find(|line| line.contains("err=") || line.starts_with("Error"));
        error.or(lines.last()).map_or_else(String::new, |line| line.chars().take(LONGEST_MESSAGE).collect())
    }

    pub(super) async fn stop(self) {
        // If it does not stop, it is killed when dropped.
        let _ = self.program.stop(GRACE).await;
    }
}

/// The path of its log.
pub(super) fn log_path(folder: &Path) -> PathBuf {
    folder.join(LOG)
}

pub(super) fn policy_path(folder: &Path) -> PathBuf {
    folder.join(POLICY)
}

fn file(doing: &'static str, path: &Path, cause: io::Error) -> Error {
    Error::File { doing, path: path.display().to_string(), cause }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), Error> {
    use std::{
        io::Write,
        os::unix::fs::{OpenOptionsExt, PermissionsExt},
    };
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(mode).open(path)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())
    };
    write().map_err(|cause| file("writing", path, cause))
}
