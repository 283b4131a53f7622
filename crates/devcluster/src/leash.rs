//! Child processes that cannot outlive this one, even when it is killed with SIGKILL.
//!
//! One small shell per process, the keeper, reads a pipe that only we hold open. We tell it which process groups are
//! ours; when the pipe closes, for whatever reason, it kills those groups and removes the folders they used. A child
//! starts only after the keeper knows it, so there is no moment in which a child could be lost. (The kernel's
//! parent-death signal does not serve: it follows the thread that forked, and test threads end before their process.)

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

/// Own process group and ignored signals: Ctrl-C in a terminal reaches us, who then stop things in order.
const KEEPER: &str = r#"
trap '' HUP INT QUIT TERM PIPE
groups=
set --
while read -r verb what; do
  case $verb in
    hold) groups="$groups $what" ;;
    free) kept=; for group in $groups; do [ "$group" = "$what" ] || kept="$kept $group"; done; groups=$kept ;;
    folder) set -- "$@" "$what" ;;
    keep) left=$#; while [ "$left" -gt 0 ]; do [ "$1" = "$what" ] || set -- "$@" "$1"; shift; left=$((left - 1)); done ;;
  esac
done
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
for folder in "$@"; do
  tries=0
  while [ -e "$folder" ] && [ "$tries" -lt 100 ]; do rm -rf "$folder" 2>/dev/null; tries=$((tries + 1)); done
done
"#;

/// Waits for the word that the keeper knows us, then becomes the program. The process id stays the same.
const STARTER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// The pipe to the keeper, which is started with the first child.
static KEEPER_PIPE: Mutex<Option<ChildStdin>> = Mutex::new(None);

fn start_keeper() -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?)
}

fn tell(verb: &str, what: impl std::fmt::Display) -> io::Result<()> {
    let mut pipe = KEEPER_PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = match &mut *pipe {
        Some(pipe) => pipe,
        none => none.insert(start_keeper()?),
    };
    writeln!(pipe, "{verb} {what}")
}

/// Starts `program` as the leader of a process group of its own, under the keeper.
/// `configure` sets folder, environment and output of the child.
pub(crate) fn spawn(program: &Path, args: &[String], configure: impl FnOnce(&mut Command)) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", STARTER, "starter"]).arg(program).args(args);
    configure(&mut command);
    let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
    tell("hold", child.id())?;
    let mut go = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    writeln!(go, "go")?;
    Ok(child)
}

/// To be called once the child has been waited for: its id may now belong to somebody else.
pub(crate) fn free(pid: u32) {
    let _ = tell("free", pid);
}

/// Has the keeper remove `folder` when this process is gone without having done so itself.
pub(crate) fn remove_at_death(folder: &Path) -> io::Result<()> {
    tell("folder", folder.display())
}

/// Takes `remove_at_death` back, for a folder that is gone already or that somebody will want to look into.
pub(crate) fn keep(folder: &Path) {
    let _ = tell("keep", folder.display());
}
