//! The project's kubectl, on the cluster that the current kubeconfig names, or on one that flags name.

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

    /// Runs it from the root of the repository and lets it say what it has to say.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let status = self.command(args).status().with_context(|| spoken(args))?;
        ensure!(status.success(), "{} failed ({status})", spoken(args));
        Ok(())
    }

    /// Runs it on these objects.
    pub(crate) fn run_on(&self, args: &[&str], objects: &[Value]) -> anyhow::Result<()> {
        self.feed(args, objects, Stdio::inherit()).map(drop)
    }

    /// What it prints.
    pub(crate) fn read(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(args).stderr(Stdio::inherit()).output().with_context(|| spoken(args))?;
        ensure!(output.status.success(), "{} failed ({})", spoken(args), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What it prints about these objects.
    pub(crate) fn read_on(&self, args: &[&str], objects: &[Value]) -> anyhow::Result<String> {
        self.feed(args, objects, Stdio::piped())
    }

    /// The objects that a kustomization consists of.
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
        let output = run().with_context(|| spoken(args))?;
        ensure!(output.status.success(), "{} failed ({})", spoken(args), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).args(&self.flags).current_dir(root());
        command
    }
}

fn spoken(args: &[&str]) -> String {
    format!("kubectl {}", args.join(" "))
}
