//! kubectl, as the administrator. The harness is asked for it once per cluster: it writes the kubeconfig whenever it is
//! asked, and a kubectl that is just reading the file would find half of it.

use std::process::{Command, Output};

use devcluster::{Access, Identity};
use tokio::{sync::OnceCell, task::spawn_blocking};

use crate::{example_cluster, server::Server};

#[derive(Debug)]
pub(crate) struct Kubectl(Command);

impl Kubectl {
    /// For the server that all tests share. It may be somebody's: nothing but dry runs.
    pub(crate) async fn shared() -> &'static Self {
        static SHARED: OnceCell<Kubectl> = OnceCell::const_new();
        SHARED.get_or_init(async || Self::new(Server::shared_access().await).await).await
    }

    pub(crate) async fn for_example_cluster() -> &'static Self {
        static EXAMPLES: OnceCell<Kubectl> = OnceCell::const_new();
        EXAMPLES.get_or_init(async || Self::new(example_cluster::open().await).await).await
    }

    async fn new(access: &Access) -> Self {
        Kubectl(access.kubectl_command(&Identity::Admin).await.unwrap())
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(self.0.get_program());
        command.args(args).envs(self.0.get_envs().filter_map(|(name, value)| Some((name, value?))));
        spawn_blocking(move || command.output()).await.unwrap().unwrap()
    }
}
