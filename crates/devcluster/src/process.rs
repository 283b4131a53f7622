//! One running program: its log, its signals, its readiness, its end.
//! Uses `std::process` and polls: a cluster that tests share outlives the runtime of the test that started it, which a
//! child of tokio does not.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ::process::Memory;
use kube::Client;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{
    error::{Context, Error, Result},
    kill_on_exit,
};

const POLL_INTERVAL: Duration = Duration::from_millis(20);
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
const TAIL_LINES: usize = 20;

/// How long a program took from its start to its first answer, and to the answer that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Startup {
    pub answered: Duration,
    pub ready: Duration,
}

/// What to run, with what, and where its output goes.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) folder: PathBuf,
    pub(crate) log: PathBuf,
    /// Variables beyond those that this process has.
    pub(crate) env: Vec<(&'static str, PathBuf)>,
}

#[derive(Debug)]
pub(crate) struct Process {
    name: &'static str,
    log: PathBuf,
    pid: u32,
    state: Mutex<ChildState>,
}

/// The child, and how it ended. Once it has been waited for, it is not signaled: its id may belong to another process.
#[derive(Debug)]
struct ChildState {
    child: Child,
    ended: Option<ExitStatus>,
}

impl ChildState {
    fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.end(status);
        }
        self.ended
    }

    fn end(&mut self, status: ExitStatus) {
        kill_on_exit::forget(self.child.id());
        self.ended = Some(status);
    }
}

impl Process {
    /// Starts the program; a log that exists already is continued.
    pub(crate) fn spawn(invocation: &Invocation) -> Result<Self> {
        let Invocation { name, program, args, folder, log, env } = invocation;
        let start = || {
            let out = OpenOptions::new().create(true).append(true).open(log)?;
            let err = out.try_clone()?;
            kill_on_exit::spawn(program, args, |command| {
                // Programs neither read nor write the home folder of the user.
                command.current_dir(folder).env("HOME", folder).stdout(out).stderr(err);
                command.envs(env.iter().map(|(name, value)| (name, value)));
            })
        };
        let child = start().context(|| format!("starting {}", program.display()))?;
        Ok(Process { name, log: log.clone(), pid: child.id(), state: Mutex::new(ChildState { child, ended: None }) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn state(&self) -> MutexGuard<'_, ChildState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the program ended, if it has.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.state().ended()
    }

    /// Sends a signal unless the program has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let mut state = self.state();
        if state.ended().is_some() {
            return Ok(());
        }
        kill_process(Pid::from_child(&state.child), signal)
            .map_err(std::io::Error::from)
            .context(|| format!("signaling {} (pid {})", self.name, self.pid))
    }

    /// Asks for `path` until the answer is a good one, the program ends, or the time is over.
    pub(crate) async fn wait_ready(&self, limit: Duration, client: &Client, path: &str) -> Result<Startup> {
        let start = Instant::now();
        let mut answered = None;
        loop {
            if let Some(status) = self.exit_status() {
                return Err(Error::Exited { program: self.name, status, log: self.log.clone(), tail: self.log_tail() });
            }
            let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
            let request = request.context(|| format!("asking {} for {path}", self.name))?;
            let last = match tokio::time::timeout(ANSWER_LIMIT, client.request_text(request)).await {
                Ok(Ok(_)) => {
                    let ready = start.elapsed();
                    return Ok(Startup { answered: answered.unwrap_or(ready), ready });
                }
                Ok(Err(problem)) => {
                    if matches!(problem, kube::Error::Api(_)) {
                        answered.get_or_insert(start.elapsed());
                    }
                    problem.to_string()
                }
                Err(_) => format!("no answer within {} s", ANSWER_LIMIT.as_secs()),
            };
            if start.elapsed() > limit {
                return Err(Error::NotReady {
                    program: self.name,
                    waited: limit,
                    last,
                    log: self.log.clone(),
                    tail: self.log_tail(),
                });
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Asks the program to end, and kills it when it has not after `grace`.
    pub(crate) async fn stop(&self, grace: Duration) -> Result<()> {
        self.signal(Signal::TERM)?;
        let start = Instant::now();
        while self.exit_status().is_none() && start.elapsed() < grace {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        self.kill();
        Ok(())
    }

    /// Sends SIGKILL to the program and everything that it started. Returns when the program has ended.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        if state.ended().is_none() {
            let _ = kill_process_group(Pid::from_child(&state.child), Signal::KILL);
            if let Ok(status) = state.child.wait() {
                state.end(status);
            }
        }
    }

    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log, TAIL_LINES)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a file, indented so that they stand apart from the message around them.
fn tail(path: &Path, lines: usize) -> String {
    const ENOUGH: i64 = 16 * 1024;
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::End(-ENOUGH.min(length as i64)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    let last = &all[all.len().saturating_sub(lines)..];
    last.iter().map(|line| format!("    {line}\n")).collect()
}

/// Whether no thread of a process runs: a signal takes effect a moment after it was sent. A process that has ended has no threads.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let is_stopped = |folder: PathBuf| {
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('T') || rest.is_empty())
    };
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.filter_map(|thread| Some(thread.ok()?.path())).all(is_stopped)
}

/// What a process has in memory, in bytes.
pub(crate) fn resident_memory(pid: u32) -> Result<u64> {
    let memory = Memory::read(pid).context(|| format!("reading the memory of process {pid}"))?;
    Ok(memory.resident.unwrap_or(0))
}
