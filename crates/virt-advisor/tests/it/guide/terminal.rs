//! A terminal in which the guides' commands work as printed: `oc`, `kubectl` and `virt-advisor`, also as a plugin, are there, and whoever
//! sits at it is the administrator.

use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use devcluster::{
    Access, Identity, RunningProgram,
    tools::{self, Program},
};
use serde_json::Value;
pub(crate) use testkit::files::root;
use testkit::poll;

pub(crate) struct Terminal {
    /// In the cluster's own folder, which goes with it: there is a key in here.
    folder: PathBuf,
}

impl Terminal {
    /// Some of the guides' commands omit `-n`, so the current namespace is the descheduler's.
    pub(crate) async fn open(access: &Access) -> Terminal {
        let kubeconfig = access.kubeconfig(&Identity::Admin).await.unwrap();
        let folder = kubeconfig.with_file_name("terminal");
        std::fs::create_dir(&folder).unwrap();
        let kubectl = tools::ensure(Program::Kubectl).unwrap();
        for name in ["oc", "kubectl"] {
            symlink(&kubectl, folder.join(name)).unwrap();
        }
        for name in ["virt-advisor", "kubectl-virt_advisor"] {
            symlink(env!("CARGO_BIN_EXE_virt-advisor"), folder.join(name)).unwrap();
        }
        std::fs::copy(kubeconfig, folder.join("kubeconfig")).unwrap();
        let terminal = Terminal { folder };
        terminal.run("kubectl config set-context --current --namespace=openshift-kube-descheduler-operator").await;
        terminal
    }

    /// Runs a command in the root of the repository, whatever comes of it.
    pub(crate) async fn try_run(&self, command: &str) -> Output {
        self.try_run_by("sh", command).await
    }

    /// The same in another shell.
    pub(crate) async fn try_run_by(&self, shell: &str, command: &str) -> Output {
        let mut shell = Command::new(shell);
        shell.args(["-c", &self.with_path(command)]).current_dir(root());
        shell.env("KUBECONFIG", self.kubeconfig()).env("HOME", &self.folder).env("NO_COLOR", "1");
        tokio::task::spawn_blocking(move || shell.output()).await.unwrap().unwrap()
    }

    /// Runs a command that has to succeed, and returns what it printed.
    pub(crate) async fn run(&self, command: &str) -> String {
        let output = self.try_run(command).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}\n{}: {said}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that prints one object.
    pub(crate) async fn yaml(&self, command: &str) -> Value {
        let text = self.run(command).await;
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{command}: {error}\n{text}"))
    }

    /// Runs a command that goes on until it is dropped.
    pub(crate) async fn start(&self, access: &Access, command: &str) -> RunningProgram {
        let command = self.with_path(&format!("exec {command}"));
        access.run(&Identity::Admin, "terminal", Path::new("sh"), &["-c", &command]).await.unwrap()
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    fn with_path(&self, command: &str) -> String {
        format!("PATH='{}':\"$PATH\"\n{command}", self.folder.display())
    }
}

/// Waits until a command that goes on has shown enough, and returns all of it.
pub(crate) async fn shown(command: &RunningProgram, is_enough: impl Fn(&str) -> bool) -> String {
    let enough = async || {
        let text = std::fs::read_to_string(command.log()).unwrap();
        if is_enough(&text) { Ok(text) } else { Err(text) }
    };
    poll(Duration::from_secs(100), enough).await.unwrap_or_else(|text| panic!("it shows no more than\n{text}"))
}
