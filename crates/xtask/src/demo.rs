//! Shows the main job of the product on a real API server: a plan is made, read, approved, rolled out node by node, and watched.
//!
//! Everything is real except the nodes and the machine config operator, which `standins::machine_config` replaces.

mod rollout;

use std::{
    io::{IsTerminal, Write},
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use devcluster::{Cluster, Identity, RunningProgram};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use serde_json::Value;
use standins::machine_config::StandIn;

use crate::{cluster::stay_up, nodes, root};

const PROFILE: &str = "load-aware-rebalancing";
const NODES: usize = 6;
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn run() -> anyhow::Result<()> {
    let demo = Demo::start().await?;
    demo.refuse_bad_input().await?;
    demo.plan().await?;
    if demo.is_approved().await? {
        demo.apply().await?;
        demo.drift().await?;
    } else {
        println!("Not approved: nothing was written. The plan stays where it is.");
    }
    step("Ready");
    stay_up(&demo.cluster, "virtplatformconfigs,machineconfigpools,nodes").await?;
    let Demo { operator, stand_in, .. } = demo;
    operator.stop(Duration::from_secs(5)).await?;
    stand_in.shutdown().await?;
    Ok(())
}

struct Demo {
    cluster: Cluster,
    client: Client,
    stand_in: StandIn,
    operator: RunningProgram,
}

impl Demo {
    async fn start() -> anyhow::Result<Self> {
        step("Starting etcd and kube-apiserver");
        let cluster = Cluster::builder().start().await?;
        let client = kube_io::connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;

        step("Installing our custom resources, and what OpenShift would bring (stand-ins, here)");
        for args in [
            &["apply", "--server-side", "-k", "config/crd"][..],
            &["apply", "--server-side", "-k", "config/crd/third-party"],
            &["wait", "--for=condition=Established", "crd", "--all"],
            &["apply", "--server-side", "-k", "config/samples/third-party"],
        ] {
            kubectl(&cluster, args).await?;
        }
        let status = "config/samples/third-party/status.yaml";
        kubectl(&cluster, &["apply", "--server-side", "--subresource=status", "-f", status]).await?;

        step(&format!("{NODES} nodes, and a stand-in for the machine config operator that looks after them"));
        nodes::create(&client, "worker", NODES).await?;
        let stand_in = nodes::look_after(&cluster).await?;
        rollout::at_rest(&client, NODES).await?;
        kubectl(&cluster, &["get", "nodes"]).await?;

        step("Starting the operator, which offers its profiles");
        let program = std::env::current_exe()?.with_file_name("virt-advisor");
        ensure!(program.is_file(), "{} is not built: run `make demo`, or `make build` first", program.display());
        let operator = cluster.access().run(&Identity::Admin, "virt-advisor", &program, &["operator"]).await?;
        println!("its log: {}", operator.log().display());
        let demo = Demo { cluster, client, stand_in, operator };
        demo.until("Ignored").await?;
        demo.kubectl(&["get", "virtplatformconfigs"]).await?;
        Ok(demo)
    }

    async fn refuse_bad_input(&self) -> anyhow::Result<()> {
        step("The API server refuses bad input: overcommitting memory by half without swap");
        let args = ["apply", "-f", "config/samples/rejected/ratio_without_swap.yaml", "--dry-run=server"];
        let refused = show(&self.cluster, &args).await?;
        ensure!(!refused.status.success(), "the API server accepted what it should have refused");
        Ok(())
    }

    async fn plan(&self) -> anyhow::Result<()> {
        step("Asking for a plan: nothing is written with DryRun");
        self.act("DryRun").await?;
        self.until("ReviewRequired").await?;
        self.kubectl(&["get", "virtplatformconfig", PROFILE]).await?;
        self.preview().await
    }

    /// Runs `virt-advisor` from the folder of this binary.
    async fn preview(&self) -> anyhow::Result<()> {
        println!("\n$ virt-advisor preview {PROFILE}");
        let program = std::env::current_exe()?.with_file_name("virt-advisor");
        let kubeconfig = self.cluster.access().kubeconfig(&Identity::Admin).await?;
        let mut command = Command::new(program);
        command.args(["preview", PROFILE]).env("KUBECONFIG", kubeconfig);
        let status = tokio::task::spawn_blocking(move || command.status()).await??;
        ensure!(status.success(), "virt-advisor preview failed");
        Ok(())
    }

    async fn is_approved(&self) -> anyhow::Result<bool> {
        step("Your decision");
        if std::env::var_os("DEMO_YES").is_some_and(|yes| yes == "1") {
            println!("approved by DEMO_YES=1");
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("nobody is there to approve the plan: run it in a terminal, or with DEMO_YES=1");
        }
        print!("Approve this plan? It reboots {NODES} (pretended) nodes, one after the other. [y/N] ");
        std::io::stdout().flush()?;
        let read = || {
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer).map(|_| answer)
        };
        let answer = tokio::task::spawn_blocking(read).await??;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    async fn apply(&self) -> anyhow::Result<()> {
        step("Approved: the plan is applied and followed to the nodes");
        self.act("Apply").await?;
        let arrived = self.until("Completed");
        rollout::follow(&self.client, arrived).await?;
        self.kubectl(&["get", "virtplatformconfig", PROFILE]).await?;
        let messages = r#"jsonpath={range .status.items[*]}{.name}: {.message}{"\n"}{end}"#;
        self.kubectl(&["get", "virtplatformconfig", PROFILE, "-o", messages]).await
    }

    async fn drift(&self) -> anyhow::Result<()> {
        step("Somebody else edits what was applied: the operator says who, and leaves it");
        let patch = r#"{"spec": {"deschedulingIntervalSeconds": 3600}}"#;
        let namespace = "openshift-kube-descheduler-operator";
        let args = [
            "patch",
            "kubedescheduler",
            "cluster",
            "-n",
            namespace,
            "--type=merge",
            "--field-manager=jane",
            "-p",
            patch,
        ];
        self.kubectl(&args).await?;
        self.until("Drifted").await?;
        self.kubectl(&["get", "virtplatformconfig", PROFILE, "-o", "wide"]).await?;
        let who = r#"jsonpath={range .status.items[?(@.driftedBy)]}{.name}: {.message}{"\n"}{.diff}{end}"#;
        self.kubectl(&["get", "virtplatformconfig", PROFILE, "-o", who]).await?;
        let about = format!("regarding.name={PROFILE}");
        let columns = "custom-columns=TYPE:.type,REASON:.reason,NOTE:.note";
        self.kubectl(&["get", "events.events.k8s.io", "--field-selector", &about, "-o", columns]).await
    }

    async fn act(&self, action: &str) -> anyhow::Result<()> {
        let patch = format!(r#"{{"spec": {{"action": "{action}"}}}}"#);
        self.kubectl(&["patch", "virtplatformconfig", PROFILE, "--type=merge", "-p", &patch]).await
    }

    async fn until(&self, phase: &str) -> anyhow::Result<()> {
        let kind = GroupVersionKind::gvk("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig");
        let configs: Api<DynamicObject> = Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind));
        let arrived = async {
            loop {
                let config = configs.get_opt(PROFILE).await?;
                let found = config.map(|config| config.data["status"]["phase"].clone());
                if found.as_ref().and_then(Value::as_str) == Some(phase) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let late = || format!("{PROFILE} did not become {phase}; the operator says:\n{}", self.operator.log_tail());
        tokio::time::timeout(TIMEOUT, arrived).await.with_context(late)?
    }

    async fn kubectl(&self, args: &[&str]) -> anyhow::Result<()> {
        kubectl(&self.cluster, args).await
    }
}

fn step(title: &str) {
    println!("\n== {title}");
}

async fn kubectl(cluster: &Cluster, args: &[&str]) -> anyhow::Result<()> {
    let output = show(cluster, args).await?;
    ensure!(output.status.success(), "kubectl {} failed", args.join(" "));
    Ok(())
}

/// Runs kubectl from the root of the repository. Prints the command and its output.
async fn show(cluster: &Cluster, args: &[&str]) -> anyhow::Result<Output> {
    println!("\n$ kubectl {}", args.iter().map(|arg| quoted(arg)).collect::<Vec<_>>().join(" "));
    let mut command = cluster.access().kubectl_command(&Identity::Admin).await?;
    command.args(args).current_dir(root());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    std::io::stdout().write_all(&output.stdout)?;
    std::io::stdout().write_all(&output.stderr)?;
    Ok(output)
}

/// The argument as a shell needs it.
fn quoted(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,".contains(c);
    if arg.chars().all(plain) { arg.to_owned() } else { format!("'{arg}'") }
}
