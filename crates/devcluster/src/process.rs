//! One running program: its log, its signals, its readiness, its end.
//!
//! Built on blocking `std::process` with short polls instead of tokio's child: a cluster shared by many tests outlives
//! the runtime of the test that started it, and a tokio child does not.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kube::Client;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::{
    error::{Context, Error, Result},
    leash,
};

const POLL: Duration = Duration::from_millis(20);
const ANSWER: Duration = Duration::from_secs(2);
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
    life: Mutex<Life>,
}

/// The child, and how it ended. Once it has been waited for, its id may belong to somebody else: nobody signals it then.
#[derive(Debug)]
struct Life {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Life {
    fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.end(status);
        }
        self.ended
    }

    fn end(&mut self, status: ExitStatus) {
        leash::free(self.child.id());
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
            leash::spawn(program, args, |command| {
                // No program shall read or leave anything in the user's home.
                command.current_dir(folder).env("HOME", folder).stdout(out).stderr(err);
                command.envs(env.iter().map(|(name, value)| (name, value)));
            })
        };
        let child = start().context(|| format!("starting {}", program.display()))?;
        Ok(Process { name, log: log.clone(), pid: child.id(), life: Mutex::new(Life { child, ended: None }) })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the program ended, if it has.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        self.life().ended()
    }

    /// Sends a signal unless the program has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let mut life = self.life();
        if life.ended().is_some() {
            return Ok(());
        }
        kill_process(Pid::from_child(&life.child), signal)
            .map_err(std::io::Error::from)
            .context(|| format!("signalling {} (pid {})", self.name, self.pid))
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
            let last = match tokio::time::timeout(ANSWER, client.request_text(request)).await {
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
                Err(_) => format!("no answer within {} s", ANSWER.as_secs()),
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
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks the program to end, and kills it when it has not after `grace`.
    pub(crate) async fn stop(&self, grace: Duration) -> Result<()> {
        self.signal(Signal::TERM)?;
        let start = Instant::now();
        while self.exit_status().is_none() && start.elapsed() < grace {
            tokio::time::sleep(POLL).await;
        }
        self.kill();
        Ok(())
    }

    /// SIGKILL, to everything the program started too. Returns when it is gone.
    pub(crate) fn kill(&self) {
        let mut life = self.life();
        if life.ended().is_none() {
            let _ = kill_process_group(Pid::from_child(&life.child), Signal::KILL);
            if let Ok(status) = life.child.wait() {
                life.end(status);
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

/// What a process has in memory, in bytes.
pub(crate) fn resident_memory(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).context(|| format!("reading {path}"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    Ok(kib.unwrap_or(0) * 1024)
}
