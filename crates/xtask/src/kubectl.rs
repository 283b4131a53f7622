//! kubectl, on the cluster of the current kubeconfig or on one that flags name: the person's own, or that of this project.

use std::{
    env,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use devcluster::tools::{self, Program};
use serde_json::Value;

use crate::root;

/// What is new enough: the oldest Kubernetes and OpenShift that the operator supports.
const NEEDED: &str = "kubectl 1.30 or oc 4.17 or newer";

pub(crate) struct Kubectl {
    program: PathBuf,
    flags: Vec<String>,
}

impl Kubectl {
    /// The one of this project, of the version that tests use.
    pub(crate) fn pinned() -> anyhow::Result<Self> {
        Ok(Kubectl { program: tools::ensure(Program::Kubectl)?, flags: Vec::new() })
    }

    /// The person's own kubectl or oc, if one is new enough; else that of this project, which may have to be built.
    /// `TEST_ASSET_KUBECTL` counts more than both.
    pub(crate) fn of_person() -> anyhow::Result<Self> {
        let is_named = env::var_os(Program::Kubectl.variable()).is_some_and(|value| !value.is_empty());
        let mut too_old = Vec::new();
        for name in if is_named { &[][..] } else { &["kubectl", "oc"] } {
            match client_version(name) {
                Some(version) if is_new_enough(&version) => {
                    return Ok(Kubectl { program: name.into(), flags: Vec::new() });
                }
                Some(version) => too_old.push(format!("{name} is {version}")),
                None => {}
            }
        }
        if !too_old.is_empty() {
            eprintln!("{}, and {NEEDED} is needed: another one is used", too_old.join(", "));
        }
        Self::pinned().with_context(|| format!("install {NEEDED}, or let this command build kubectl"))
    }

    pub(crate) fn with_flag(mut self, flag: String) -> Self {
        self.flags.push(flag);
        self
    }

    /// Runs kubectl in the root of the repository. Its output is not captured.
    pub(crate) fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let status = self.command(args).status().with_context(|| self.line(args))?;
        ensure!(status.success(), "{} failed ({status})", self.line(args));
        Ok(())
    }

    /// Runs kubectl on these objects.
    pub(crate) fn run_on(&self, args: &[&str], objects: &[Value]) -> anyhow::Result<()> {
        self.feed(args, objects, Stdio::inherit()).map(drop)
    }

    /// Runs kubectl and returns its output.
    pub(crate) fn read(&self, args: &[&str]) -> anyhow::Result<String> {
        let output = self.command(args).stderr(Stdio::inherit()).output().with_context(|| self.line(args))?;
        ensure!(output.status.success(), "{} failed ({})", self.line(args), output.status);
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
        let output = run().with_context(|| self.line(args))?;
        ensure!(output.status.success(), "{} failed ({})", self.line(args), output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn line(&self, args: &[&str]) -> String {
        let name = self.program.file_name().map_or("kubectl".into(), |name| name.to_string_lossy());
        format!("{name} {}", args.join(" "))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).args(&self.flags).current_dir(root());
        command
    }
}

/// The version of a program on the PATH, if it is there and works.
fn client_version(program: &str) -> Option<String> {
    let output =
        Command::new(program).args(["version", "--client", "-o", "json"]).stderr(Stdio::null()).output().ok()?;
    let version: Value = serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success())?;
    // oc tells the version of OpenShift apart from its own, which says less.
    let told = [&version["releaseClientVersion"], &version["clientVersion"]["gitVersion"]];
    told.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// Whether a version of Kubernetes, or of OpenShift, is new enough.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(1)), Some(Ok(minor))) => minor >= 30,
        (Some(Ok(4)), Some(Ok(minor))) => minor >= 17,
        (Some(Ok(major)), _) => major > 4,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_kubernetes_and_openshift_are_told_apart() {
        for version in ["v1.30.0", "v1.36.3+k3s1", "4.17.0", "4.21.3", "5.1.0-202611.p0"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["v1.29.9", "4.16.40", "4", "", "latest"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }
}
