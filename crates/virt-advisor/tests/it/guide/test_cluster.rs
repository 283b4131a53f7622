//! A control plane with the operator running under its own account, and the waiting that tests need.

use std::{path::Path, time::Duration};

use devcluster::{Access, Builder, Cluster, Identity, LogPosition, RunningProgram};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::Value;
use testkit::poll;

use super::terminal::{Terminal, root};

/// Long enough for a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_secs(180);

/// What OpenShift Virtualization brings along, without the descheduler.
pub(crate) const PLATFORM: &[&str] =
    &["machineconfig.yaml", "machineconfigpool.yaml", "machineconfiguration.yaml", "hyperconverged-v1beta1.yaml"];
pub(crate) const DESCHEDULER: &str = "kubedescheduler-5.1.yaml";

pub(crate) struct TestCluster {
    pub(crate) control_plane: Cluster,
    pub(crate) client: Client,
    pub(crate) terminal: Terminal,
    account: Identity,
    operator: RunningProgram,
    /// Before the operator was started.
    start: LogPosition,
}

impl TestCluster {
    /// OpenShift Virtualization at rest with three workers, and the operator; no descheduler yet.
    pub(crate) async fn with_platform() -> TestCluster {
        TestCluster::with_platform_and(Cluster::builder(), &["operator"]).await
    }

    /// The same with further components, and with the operator's own arguments.
    pub(crate) async fn with_platform_and(builder: Builder, args: &[&str]) -> TestCluster {
        let (control_plane, terminal) = build(builder, PLATFORM).await;
        terminal.run("kubectl apply --server-side -k config/samples/third-party").await;
        terminal
            .run("kubectl apply --server-side --subresource=status -f config/samples/third-party/status.yaml")
            .await;
        TestCluster::with_operator(control_plane, terminal, args).await
    }

    /// A cluster without virtualization, and the operator.
    pub(crate) async fn without_platform() -> TestCluster {
        let (control_plane, terminal) = build(Cluster::builder(), &[]).await;
        terminal.run("kubectl apply --server-side -f config/samples/third-party/namespaces.yaml").await;
        TestCluster::with_operator(control_plane, terminal, &["operator"]).await
    }

    async fn with_operator(control_plane: Cluster, terminal: Terminal, args: &[&str]) -> TestCluster {
        let client = control_plane.access().client().await.unwrap();
        let account = account(&terminal).await;
        let start = control_plane.audit().position(&client).await.unwrap();
        let operator = start_operator(control_plane.access(), &account, args).await;
        let cluster = TestCluster { control_plane, client, terminal, account, operator, start };
        for profile in ["load-aware-rebalancing", "virt-higher-density"] {
            cluster.reach(profile, "Ignored").await;
        }
        cluster
    }

    /// Waits until a profile is in a phase.
    pub(crate) async fn reach(&self, profile: &str, phase: &str) -> Value {
        self.until(profile, &format!("in phase {phase}"), |config| {
            config["status"]["phase"] == phase
                && config["status"]["observedGeneration"] == config["metadata"]["generation"]
        })
        .await
    }

    /// Waits until a condition holds for the configuration of a profile.
    pub(crate) async fn until(&self, profile: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
        self.object_until(&kind, None, profile, what, holds).await
    }

    /// Waits until a record is closed.
    pub(crate) async fn record_until_finished(&self, name: &str) -> Value {
        let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformPlanRecord");
        let is_finished = |record: &Value| record["status"]["finishedAt"].is_string();
        self.object_until(&kind, None, name, "finished", is_finished).await
    }

    /// Waits until a condition holds for an object. An absent object is null.
    pub(crate) async fn object_until(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let resource = ApiResource::from_gvk(kind);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let found = async || {
            let object = serde_json::to_value(api.get_opt(name).await.unwrap()).unwrap();
            match (holds(&object), self.operator.exit_status()) {
                (true, _) => Ok(Ok(object)),
                // Nobody goes on, so there is nothing to wait for.
                (false, Some(_)) => Ok(Err(object)),
                (false, None) => Err(object),
            }
        };
        poll(LIMIT, found).await.flatten().unwrap_or_else(|object| {
            let shown = serde_saphyr::to_string(&without_managers(object)).unwrap();
            let ended = self.operator.exit_status();
            let end = ended.map_or_else(String::new, |status| format!("The operator ended: {status}\n"));
            let log = self.operator.log_tail();
            panic!("{} {name} is not {what}\n{shown}\n{end}The operator's log:\n{log}", kind.kind);
        })
    }

    /// Ends the operator at once, without a word.
    pub(crate) fn kill_operator(&self) {
        self.operator.kill();
    }

    /// Starts the operator anew, with other arguments.
    pub(crate) async fn restart_operator(&mut self, args: &[&str]) {
        self.operator = start_operator(self.control_plane.access(), &self.account, args).await;
    }

    /// Ends the operator with SIGTERM. Fails if it ends with an error, or if RBAC refused a request of its.
    pub(crate) async fn finish(self) {
        let status = self.operator.stop(Duration::from_secs(60)).await.unwrap();
        let log = self.operator.log_tail();
        assert!(status.is_some_and(|status| status.success()), "the operator ended with {status:?}:\n{log}");
        let requests = self.control_plane.audit().since(self.start, &self.client).await.unwrap();
        let account = self.account.to_string();
        let own: Vec<_> = requests.iter().filter(|request| request.user == account).collect();
        assert!(own.iter().any(|request| request.is_write()), "it worked under its own account");
        let refused = self.control_plane.audit().refusals_since(self.start, &self.client, &account).await.unwrap();
        let refused: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert!(refused.is_empty(), "the rights that it is shipped with do not suffice:\n{}", refused.join("\n"));
    }
}

/// A control plane with our definitions and some of the third parties'.
async fn build(builder: Builder, definitions: &[&str]) -> (Cluster, Terminal) {
    let cluster = builder.start().await.unwrap();
    let terminal = Terminal::open(cluster.access()).await;
    define(&cluster, "config/crd/advisor.kubevirt.io_virtplatformconfigs.yaml").await;
    for definition in definitions {
        define(&cluster, &format!("config/crd/third-party/{definition}")).await;
    }
    (cluster, terminal)
}

pub(crate) async fn define(cluster: &Cluster, file: &str) {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let crds: Vec<_> = serde_saphyr::from_multiple(&text).unwrap();
    cluster.access().install_crds(&crds).await.unwrap();
}

/// The operator's account, with the permissions that it is installed with. Nothing runs the Deployment of the installation.
async fn account(terminal: &Terminal) -> Identity {
    terminal.run("kubectl apply --server-side --force-conflicts -k config/default").await;
    Identity::service_account("openshift-cnv", "virt-advisor-operator-controller-manager")
}

async fn start_operator(access: &Access, account: &Identity, args: &[&str]) -> RunningProgram {
    let program = Path::new(env!("CARGO_BIN_EXE_virt-advisor"));
    access.run(account, "operator", program, args).await.unwrap()
}

fn without_managers(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
