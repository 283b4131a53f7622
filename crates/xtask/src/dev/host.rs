//! The process that owns our own control plane in the background, and how it is started, found and ended.
//! The control plane ends with this process, which outlives the command and the terminal that started it. A lock keeps
//! a second one from starting, a file names the process, and the kubeconfig exists while the control plane is ready.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use devcluster::{Cluster, Component, Identity, tools};
use process::{ProcessIdentity, Shutdown, is_alive};
use rustix::process::setsid;

use super::CONTEXT_NAMESPACE;
use crate::nodes;

/// Without these, namespaces would never go away, and the roles `view`, `edit` and `admin` would not include ours.
const CONTROLLERS: &[&str] =
    &["namespace-controller", "garbage-collector-controller", "clusterrole-aggregation-controller"];

const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
const OWNER_POLL: Duration = Duration::from_millis(500);

fn lock_file(folder: &Path) -> PathBuf {
    folder.join("host.lock")
}

/// Holds the [`ProcessIdentity`] of the process in the background.
fn identity_file(folder: &Path) -> PathBuf {
    folder.join("host.json")
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("host.log")
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Starts the process unless it runs, and returns the kubeconfig when the control plane is ready.
pub(super) fn start(folder: &Path, end_with: Option<u32>) -> anyhow::Result<PathBuf> {
    // Missing programs are built here, where the progress is shown.
    let programs = [Component::Etcd, Component::ApiServer, Component::ControllerManager].map(Component::program);
    tools::ensure_all(&programs)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| folder.display().to_string())?;
    let kubeconfig = kubeconfig(folder);
    let mut host = None;
    if running(folder)?.is_some() {
        println!("it runs already");
    } else {
        remove(&kubeconfig)?;
        host = Some(spawn(folder, end_with)?);
    }
    let start = Instant::now();
    while !kubeconfig.exists() {
        let ended = match &mut host {
            Some(host) => host.try_wait()?.is_some(),
            None => running(folder)?.is_none(),
        };
        if ended || start.elapsed() > START_LIMIT {
            let log = fs::read_to_string(log_file(folder)).unwrap_or_default();
            bail!("the control plane did not start; {} says:\n{log}", log_file(folder).display());
        }
        sleep(POLL);
    }
    Ok(kubeconfig)
}

/// The caller does not wait for the process: it outlives this one.
fn spawn(folder: &Path, end_with: Option<u32>) -> anyhow::Result<Child> {
    let log = File::create(log_file(folder)).with_context(|| log_file(folder).display().to_string())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("dev-host").arg("--folder").arg(folder).current_dir(folder);
    command.args(end_with.iter().flat_map(|pid| ["--end-with".to_owned(), pid.to_string()]));
    Ok(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
}

/// Ends the process, if it runs, and returns when it has ended.
pub(super) fn stop(folder: &Path) -> anyhow::Result<()> {
    match running(folder)? {
        None => println!("There is no control plane of ours."),
        Some(host) => {
            end(host)?;
            println!("The control plane has ended.");
        }
    }
    for file in [kubeconfig(folder), log_file(folder), identity_file(folder), lock_file(folder)] {
        remove(&file)?;
    }
    // Fails if there are files of others in it.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// SIGTERM, then SIGKILL. The control plane ends after both.
fn end(host: ProcessIdentity) -> anyhow::Result<()> {
    for signal in [ProcessIdentity::terminate, ProcessIdentity::kill] {
        signal(host).with_context(|| format!("ending process {}", host.pid()))?;
        let start = Instant::now();
        while start.elapsed() < STOP_LIMIT {
            if !host.is_alive() {
                return Ok(());
            }
            sleep(POLL);
        }
    }
    bail!("process {} does not end", host.pid())
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(file.display().to_string()),
        _ => Ok(()),
    }
}

/// The process in the background, if it runs.
fn running(folder: &Path) -> anyhow::Result<Option<ProcessIdentity>> {
    let path = identity_file(folder);
    match fs::read(&path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok().filter(|host: &ProcessIdentity| host.is_alive())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(path.display().to_string()),
    }
}

/// What the process in the background does.
pub(super) async fn run(folder: &Path, end_with: Option<u32>) -> anyhow::Result<()> {
    // A session of its own: Ctrl-C and the end of the terminal do not reach it. Fails if it has one already.
    let _ = setsid();
    let _lock = lock(folder)?;
    let shutdown = Shutdown::new()?;
    fs::write(identity_file(folder), serde_json::to_string(&ProcessIdentity::current()?)?)?;
    let result = tokio::select! {
        result = serve(folder) => result,
        () = shutdown.requested() => Ok(()),
        () = end_of(end_with) => Ok(()),
    };
    remove(&kubeconfig(folder))?;
    result
}

/// Waits until a process has ended; without one, forever.
async fn end_of(process: Option<u32>) {
    let Some(pid) = process else { return std::future::pending().await };
    while is_alive(pid) {
        tokio::time::sleep(OWNER_POLL).await;
    }
}

/// Runs the control plane until the future is dropped.
async fn serve(folder: &Path) -> anyhow::Result<()> {
    let cluster = Cluster::builder().controllers(CONTROLLERS).start().await?;
    let (aside, kubeconfig) = (folder.join(".kubeconfig"), kubeconfig(folder));
    fs::copy(cluster.access().kubeconfig(&Identity::Admin).await?, &aside)?;
    let mut kubectl = cluster.access().kubectl_command(&Identity::Admin).await?;
    kubectl.args(["config", "set-context", "--current", "--namespace", CONTEXT_NAMESPACE]);
    let status = kubectl.env("KUBECONFIG", &aside).status()?;
    ensure!(status.success(), "kubectl config set-context failed ({status})");
    let _stand_in = nodes::start(&cluster).await?;
    fs::rename(&aside, &kubeconfig)?;
    println!("{} is ready", kubeconfig.display());
    std::future::pending().await
}

/// A lock that this process holds until it ends.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = lock_file(folder);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => bail!("another process holds {}", path.display()),
        Err(TryLockError::Error(error)) => Err(error).context(path.display().to_string()),
    }
}
