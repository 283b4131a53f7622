//! The process that owns our own control plane in the background, and how it is started, found and ended.
//!
//! The control plane still ends with its owner; only that this owner outlives the command that started it, and the terminal.
//! It holds a lock for as long as it lives: the lock, and not a process id that may be somebody else's by now, tells that it
//! is there. Its kubeconfig is there while the control plane is ready.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use devcluster::{Cluster, Component, Identity, tools};
use rustix::process::{Pid, Signal, kill_process, setsid};
use tokio::signal::unix::{SignalKind, signal};

use super::CONTEXT_NAMESPACE;
use crate::nodes;

/// Without these, namespaces would never go away, and the roles `view`, `edit` and `admin` would not include ours.
const CONTROLLERS: &[&str] =
    &["namespace-controller", "garbage-collector-controller", "clusterrole-aggregation-controller"];

const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LOCK_LIMIT: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

fn lock_file(folder: &Path) -> PathBuf {
    folder.join("host.lock")
}

fn log_file(folder: &Path) -> PathBuf {
    folder.join("host.log")
}

fn kubeconfig(folder: &Path) -> PathBuf {
    folder.join("kubeconfig")
}

/// Starts it unless it is there, and returns its kubeconfig when it can be used.
pub(super) fn start(folder: &Path) -> anyhow::Result<PathBuf> {
    // What is missing is built here, where somebody sees the progress.
    let programs = [Component::Etcd, Component::ApiServer, Component::ControllerManager].map(Component::program);
    tools::ensure_all(&programs)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| folder.display().to_string())?;
    let kubeconfig = kubeconfig(folder);
    let mut host = None;
    if running(folder)?.is_some() {
        println!("it runs already");
    } else {
        remove(&kubeconfig)?;
        host = Some(spawn(folder)?);
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

/// Nobody waits for it: it is to outlive us.
fn spawn(folder: &Path) -> anyhow::Result<Child> {
    let log = File::create(log_file(folder)).with_context(|| log_file(folder).display().to_string())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("dev-host").arg("--folder").arg(folder).current_dir(folder);
    Ok(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
}

/// Ends it, if it is there, and returns when it is gone with all of its processes.
pub(super) fn stop(folder: &Path) -> anyhow::Result<()> {
    match running(folder)? {
        None => println!("There is no control plane of ours."),
        Some(pid) => {
            end(folder, pid)?;
            println!("The control plane has ended.");
        }
    }
    for file in [kubeconfig(folder), log_file(folder), lock_file(folder)] {
        remove(&file)?;
    }
    // Other files in there are not ours.
    let _ = fs::remove_dir(folder);
    Ok(())
}

/// Asks first. When it is killed its control plane ends, too.
fn end(folder: &Path, pid: Pid) -> anyhow::Result<()> {
    for signal in [Signal::TERM, Signal::KILL] {
        kill_process(pid, signal).with_context(|| format!("ending process {}", pid.as_raw_nonzero()))?;
        let start = Instant::now();
        while start.elapsed() < STOP_LIMIT {
            if running(folder)?.is_none() {
                return Ok(());
            }
            sleep(POLL);
        }
    }
    bail!("process {} does not end", pid.as_raw_nonzero())
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(file.display().to_string()),
        _ => Ok(()),
    }
}

/// The process that holds the lock.
fn running(folder: &Path) -> anyhow::Result<Option<Pid>> {
    let path = lock_file(folder);
    let start = Instant::now();
    loop {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(path.display().to_string()),
        };
        match file.try_lock_shared() {
            Ok(()) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).context(path.display().to_string()),
            Err(TryLockError::WouldBlock) => {}
        }
        // It says who it is a moment after it took the lock.
        if let Some(pid) = fs::read_to_string(&path)?.trim().parse().ok().and_then(Pid::from_raw) {
            return Ok(Some(pid));
        }
        ensure!(start.elapsed() < LOCK_LIMIT, "{} is held and does not say by which process", path.display());
        sleep(POLL);
    }
}

/// What the process in the background does.
pub(super) async fn run(folder: &Path) -> anyhow::Result<()> {
    // Away from the terminal: Ctrl-C there and its end are not meant for us. Fails if we are away already.
    let _ = setsid();
    let _lock = lock(folder)?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let result = tokio::select! {
        result = serve(folder) => result,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    remove(&kubeconfig(folder))?;
    result
}

/// Runs the control plane for as long as it is not dropped.
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

/// Whoever looks whether we are there holds the lock for a moment.
fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = lock_file(folder);
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_LIMIT => sleep(POLL),
            Err(TryLockError::WouldBlock) => bail!("another process holds {}", path.display()),
            Err(TryLockError::Error(error)) => return Err(error).context(path.display().to_string()),
        }
    }
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}
