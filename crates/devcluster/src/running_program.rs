//! A program that a test runs beside a cluster: an operator, or a watch whose output is read later.
//!
//! It ends when it is dropped, and with this process, however that ends.

use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    Access, Identity,
    error::Result,
    process::{Invocation, Process, resident_memory},
};

#[derive(Debug)]
pub struct RunningProgram(Process);

impl Access {
    /// Runs `program` with the kubeconfig of `who` in `KUBECONFIG`. Its output goes to a log beside the kubeconfig files.
    pub async fn run(
        &self,
        who: &Identity,
        name: &'static str,
        program: &Path,
        args: &[&str],
    ) -> Result<RunningProgram> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let kubeconfig = self.kubeconfig(who).await?;
        let folder = kubeconfig.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        let invocation = Invocation {
            name,
            program: program.to_owned(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            log: folder.join(format!("{name}-{}.log", COUNT.fetch_add(1, Ordering::Relaxed))),
            folder,
            env: vec![("KUBECONFIG", kubeconfig)],
        };
        Process::spawn(&invocation).map(RunningProgram)
    }
}

impl RunningProgram {
    /// Runs `program` in `folder`. Its output is appended to `log`.
    pub fn spawn(
        name: &'static str,
        program: &Path,
        args: Vec<String>,
        folder: &Path,
        log: &Path,
    ) -> Result<RunningProgram> {
        let (program, folder, log) = (program.to_owned(), folder.to_owned(), log.to_owned());
        Process::spawn(&Invocation { name, program, args, folder, log, env: Vec::new() }).map(RunningProgram)
    }

    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Resident memory in bytes.
    pub fn resident_memory(&self) -> Result<u64> {
        resident_memory(self.pid())
    }

    /// Where its standard output and its standard error go.
    pub fn log(&self) -> &Path {
        self.0.log()
    }

    /// The last lines of its log, indented.
    pub fn log_tail(&self) -> String {
        self.0.log_tail()
    }

    /// How it ended, if it has.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.0.exit_status()
    }

    /// Asks it to end with SIGTERM, and kills it when it has not after `grace`. Returns how it ended.
    pub async fn stop(&self, grace: Duration) -> Result<Option<ExitStatus>> {
        self.0.stop(grace).await?;
        Ok(self.0.exit_status())
    }

    /// Ends it with SIGKILL.
    pub fn kill(&self) {
        self.0.kill();
    }
}
