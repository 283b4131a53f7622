//! Running our commands and kubectl on a cluster, from the root of the repository.

use std::{
    path::Path,
    process::{Command, Output},
};

use devcluster::{
    Access, Identity,
    tools::{self, Program},
};
pub(crate) use testkit::files::root;

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What was printed by a command that has to succeed.
pub(crate) fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// One of our commands, on the cluster of a kubeconfig.
pub(crate) fn xtask(kubeconfig: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let kubectl = tools::ensure(Program::Kubectl).unwrap();
    command.args(args).env("KUBECONFIG", kubeconfig).env("TEST_ASSET_KUBECTL", kubectl).output().unwrap()
}

/// kubectl on the cluster of a kubeconfig.
pub(crate) fn kubectl(kubeconfig: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(tools::ensure(Program::Kubectl).unwrap());
    command.args(args).env("KUBECONFIG", kubeconfig).env("NO_COLOR", "1").current_dir(root()).output().unwrap()
}

/// kubectl as somebody.
pub(crate) async fn kubectl_as(access: &Access, who: &Identity, args: &[&str]) -> Output {
    kubectl(&access.kubeconfig(who).await.unwrap(), args)
}
