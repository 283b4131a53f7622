//! Child processes and folders that end with this process, even when it is killed with SIGKILL: a shell, the watchdog, reads a pipe
//! that only this process holds open, and kills the process groups that it was told. The kernel's parent-death signal would not do: it
//! follows the thread that forked, and test threads end before their process.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

/// The watchdog ignores signals and has its own process group: after Ctrl-C, this process stops its children in order.
const WATCHDOG: &str = r#"
trap '' HUP INT QUIT TERM PIPE
groups=
set --
while read -r verb what; do
  case $verb in
    kill) groups="$groups $what" ;;
    forget) kept=; for group in $groups; do [ "$group" = "$what" ] || kept="$kept $group"; done; groups=$kept ;;
    remove) set -- "$@" "$what" ;;
    keep) left=$#; while [ "$left" -gt 0 ]; do [ "$1" = "$what" ] || set -- "$@" "$1"; shift; left=$((left - 1)); done ;;
  esac
done
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
for folder in "$@"; do
  tries=0
  while [ -e "$folder" ] && [ "$tries" -lt 100 ]; do rm -rf "$folder" 2>/dev/null; tries=$((tries + 1)); done
done
"#;

/// Waits until the watchdog knows the process, then becomes the program. The process id stays the same.
const STARTER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// The pipe to the watchdog, which is started with the first child.
static WATCHDOG_PIPE: Mutex<Option<ChildStdin>> = Mutex::new(None);

fn start_watchdog() -> io::Result<ChildStdin> {
    let mut shell = Command::new("sh")
        .args(["-c", WATCHDOG, "watchdog"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?)
}

fn tell(verb: &str, what: impl std::fmt::Display) -> io::Result<()> {
    let mut pipe = WATCHDOG_PIPE.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = match &mut *pipe {
        Some(pipe) => pipe,
        none => none.insert(start_watchdog()?),
    };
    writeln!(pipe, "{verb} {what}")
}

/// Starts `program` as the leader of its own process group, which the watchdog kills when this process ends.
/// `configure` sets folder, environment and output of the child.
pub(crate) fn spawn(program: &Path, args: &[String], configure: impl FnOnce(&mut Command)) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", STARTER, "starter"]).arg(program).args(args);
    configure(&mut command);
    let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
    tell("kill", child.id())?;
    let mut go = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    writeln!(go, "go")?;
    Ok(child)
}

/// Call this once the child has been waited for: its id may now belong to another process.
pub(crate) fn forget(pid: u32) {
    let _ = tell("forget", pid);
}

/// Has the watchdog remove `folder` when this process ends without having removed it.
pub(crate) fn remove_on_exit(folder: &Path) -> io::Result<()> {
    tell("remove", folder.display())
}

/// Takes `remove_on_exit` back, for a folder that is already removed or that is kept for its logs.
pub(crate) fn keep(folder: &Path) {
    let _ = tell("keep", folder.display());
}
