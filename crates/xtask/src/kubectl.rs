//! The kubectl of this project, on the cluster of the current kubeconfig or on one that flags name.

use std::{
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use devcluster::tools::{self, Program};
use serde_json::Value;

use crate::root;

pub(crate) struct Kubectl {
    program: PathBuf,
    flags: Vec<String>,
}

impl Kubectl {
    pub(crate) fn current() -> anyhow::Result<Self> {
        Ok(Kubectl { program: tools::ensure(Program::Kubectl)?, flags: Vec::new() })
    }

    pub(crate) fn with_flag(mut self, flag: String) -> Self {
        self.flags.push(flag);
        self
    }

    /// Runs kubectl in the root of the repository. Its output is not captured.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let status = self.command(args).status().with_context(|| command_line(args))?;
        ensure!(status.success(), "{} failed ({status})", command_line(args));
        Ok(())
    }

    /// Runs kubectl on these objects.
    pub(crate) fn run_on(&self, args: &[&str], objects: &[Value]) -> anyhow::Result<()> {
        self.feed(args, objects, Stdio::inherit()).map(drop)
    }

    /// Runs kubectl and returns its output.
    pub(crate) fn read(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(args).stderr(Stdio::inherit()).output().with_context(|| command_line(args))?;
        ensure!(output.status.success(), "{} failed ({})", command_line(args), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs kubectl on these objects and returns its output.
    pub(crate) fn read_on(&self, args: &[&str], objects: &[Value]) -> anyhow::Result<String> {
        self.feed(args, objects, Stdio::piped())
    }

    /// The objects of a kustomization.
    pub(crate) fn kustomize(&self, folder: &str) -> anyhow::Result<Vec<Value>> {
        let text = self.read(&["kustomize", folder])?;
        serde_saphyr::from_multiple(&text).with_context(|| format!("reading what {folder} renders to"))
    }

    fn feed(&self, args: &[&str], objects: &[Value], stdout: Stdio) -> anyhow::Result<String> {
        let documents: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
        let run = || -> anyhow::Result<_> {
            let mut command = self.command(args);
            command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(stdout);
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(documents.as_bytes())?;
            }
            Ok(child.wait_with_output()?)
        };
        let output = run().with_context(|| command_line(args))?;
        ensure!(output.status.success(), "{} failed ({})", command_line(args), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).args(&self.flags).current_dir(root());
        command
    }
}

fn command_line(args: &[&str]) -> String {
    format!("kubectl {}", args.join(" "))
}
