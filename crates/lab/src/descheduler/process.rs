//! The real descheduler as a child: its files, its certificate, its command line, and whether it is ready.

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
use rcgen::{CertificateParams, KeyPair};
use thiserror::Error;

use super::{
    Policy, Settings,
    http_client::{HttpClient, HttpError},
};

const NAME: &str = "descheduler";
const POLICY: &str = "descheduler-policy.yaml";
const CERTIFICATE: &str = "descheduler.crt";
const KEY: &str = "descheduler.key";
const LOG: &str = "descheduler.log";
/// Our build of the descheduler looks for this file in its working folder. It wants one even for plain HTTP.
const PROMETHEUS_CA: &str = "prometheus-ca.crt";
const ANSWER: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(5);
/// How much of its last words is told.
const WORDS: usize = 400;

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
    HttpClient(#[from] HttpError),
    #[error("listening at {address}: {cause}; choose another address")]
    Listen { address: String, cause: io::Error },
}

/// The lab's own build of the descheduler, made first if it has to be, which takes minutes.
pub fn program() -> Result<PathBuf, Error> {
    Ok(tools::ensure(Program::Descheduler)?)
}

/// Where the descheduler lives, whether it runs or not.
#[derive(Debug)]
pub(super) struct Home {
    port: Port,
    pub(super) web: HttpClient,
}

impl Home {
    /// Makes the folder and what stays the same from start to start.
    pub(super) fn furnish(folder: &Path) -> Result<Home, Error> {
        std::fs::create_dir_all(folder).map_err(|cause| file("creating", folder, cause))?;
        let key = KeyPair::generate()?;
        let certificate =
            CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?.self_signed(&key)?;
        write(&folder.join(CERTIFICATE), &certificate.pem(), 0o644)?;
        write(&folder.join(KEY), &key.serialize_pem(), 0o600)?;
        write(&folder.join(PROMETHEUS_CA), &certificate.pem(), 0o644)?;
        let port = Port::reserve()?;
        let url = format!("https://{}", port.address());
        let web = HttpClient::new(&url, Some(certificate.der().to_vec()), ANSWER)?;
        Ok(Home { port, web })
    }
}

/// A descheduler that was started. It is killed when dropped, and when this process ends in any way.
#[derive(Debug)]
pub(super) struct Descheduler {
    companion: RunningProgram,
}

impl Descheduler {
    pub(super) fn start(home: &Home, settings: &Settings, policy: &Policy) -> Result<Descheduler, Error> {
        let path = |name: &str| settings.folder.join(name).display().to_string();
        write(&settings.folder.join(POLICY), &policy.text, 0o644)?;
        let mut args = vec![
            format!("--policy-config-file={}", path(POLICY)),
            "--logging-format=text".to_owned(),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", home.port.number()),
            format!("--tls-cert-file={}", path(CERTIFICATE)),
            format!("--tls-private-key-file={}", path(KEY)),
        ];
        // Without one it takes the service account of its pod.
        args.extend(settings.kubeconfig.as_ref().map(|file| format!("--kubeconfig={}", file.display())));
        args.extend(policy.flags());
        let log = log(&settings.folder);
        Ok(Descheduler { companion: RunningProgram::spawn(NAME, &settings.program, args, &settings.folder, &log)? })
    }

    pub(super) fn pid(&self) -> u32 {
        self.companion.pid()
    }

    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        self.companion.exit_status()
    }

    /// Its complaint, as far as its log tells.
    pub(super) fn last_words(&self) -> String {
        let tail = self.companion.log_tail();
        let lines: Vec<&str> = tail.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let complaint = lines.iter().rev().find(|line| line.contains("err=") || line.starts_with("Error"));
        complaint.or(lines.last()).map_or_else(String::new, |line| line.chars().take(WORDS).collect())
    }

    pub(super) async fn end(self) {
        // One that cannot be asked to end is killed when dropped.
        let _ = self.companion.stop(GRACE).await;
    }
}

/// Where a descheduler in `folder` writes its log.
pub(super) fn log(folder: &Path) -> PathBuf {
    folder.join(LOG)
}

pub(super) fn policy(folder: &Path) -> PathBuf {
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
