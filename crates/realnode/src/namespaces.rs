//! Entering and leaving the namespaces.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context, ensure};
use devcluster::{
    Component,
    tools::{self, Program},
};

use crate::{Host, NAME, Node, archive, prerequisites};

const WATCHDOG: &str = include_str!("watchdog.sh");

/// Says that this process is in the namespaces, and which folder it has.
const FOLDER: &str = "VIRT_ADVISOR_NODE_FOLDER";

/// What runs beside the pods.
const CONTROL_PLANE: [Component; 4] =
    [Component::Etcd, Component::ApiServer, Component::ControllerManager, Component::Scheduler];

/// Runs the test of this thread on a node: `images` writes archives of images into a folder, `test` is run in the namespaces.
///
/// # Panics
/// When the test fails, when something of the machine is different afterwards, or when the machine cannot run a node.
pub fn run(images: impl FnOnce(&Path), test: impl AsyncFnOnce(&Node)) {
    match env::var_os(FOLDER) {
        Some(folder) => inside(Path::new(&folder), test),
        None => {
            if let Err(error) = outside(images) {
                panic!("{error:#}");
            }
        }
    }
}

fn inside(folder: &Path, test: impl AsyncFnOnce(&Node)) {
    let runtime = tokio::runtime::Runtime::new().unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(async {
        let node = Node::start(folder).await.unwrap_or_else(|error| panic!("{error:#}"));
        test(&node).await;
    });
}

fn outside(images: impl FnOnce(&Path)) -> anyhow::Result<()> {
    prerequisites::check()?;
    let _lock = lock()?;
    // There is no way to download anything later.
    let mut programs: Vec<Program> = CONTROL_PLANE.map(Component::program).to_vec();
    programs.push(Program::Kubectl);
    programs.extend(Program::OF_A_NODE);
    tools::ensure_all(&programs)?;
    let folder = tempfile::Builder::new().prefix("node-").tempdir().context("creating a temporary folder")?.keep();
    let archives = folder.join("images");
    fs::create_dir(&archives)?;
    archive::write_basics(&archives)?;
    images(&archives);

    let before = Host::read()?;
    let mut watchdog = watchdog(&folder)?.spawn().context("starting the watchdog")?;
    let stdin = watchdog.stdin.take();
    let status = watchdog.wait()?;
    drop(stdin);
    let changes = before.changes(&Host::read()?);
    ensure!(status.success(), "the test has failed on the node ({status})");
    ensure!(changes.is_empty(), "the machine is not as it was before:\n{}", changes.join("\n"));
    Ok(())
}

/// Starts this test again, in the namespaces.
fn watchdog(folder: &Path) -> anyhow::Result<Command> {
    let thread = thread::current();
    let test = thread.name().context("the thread of a test has its name")?;
    let mut command = Command::new("sh");
    command.args(["-c", WATCHDOG, "watchdog", NAME]).arg(folder).arg(env::current_exe()?);
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    // Programs write neither into the temporary folder of the machine nor into the home folder of the user.
    command.env(FOLDER, folder).env("TMPDIR", folder).env("HOME", folder).env("VIRT_ADVISOR_CACHE", tools::cache());
    // Ctrl-C ends this process, and the watchdog sees that and cleans up.
    command.stdin(Stdio::piped()).process_group(0);
    Ok(command)
}

/// Names, addresses and cgroups are the same for every node, so there is one at a time. Held until it is dropped.
fn lock() -> anyhow::Result<fs::File> {
    let path: PathBuf = tools::cache().join("node.lock");
    fs::create_dir_all(tools::cache()).with_context(|| format!("creating {}", tools::cache().display()))?;
    let file = fs::File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    file.lock().with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}
