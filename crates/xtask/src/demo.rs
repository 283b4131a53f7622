//! Shows the main job of the product on a real API server: a plan is made, read, approved, rolled out node by node, and watched.
//!
//! Everything is real except the nodes and the machine config operator, which `standins::machine_config` replaces.

use std::{
    io::{IsTerminal, Write},
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use api::VirtPlatformConfig;
use devcluster::{Cluster, Identity, RunningProgram};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;
use standins::machine_config::{MachineConfigPool, StandIn};

use crate::{cluster::stay_up, nodes, root};

const PROFILE: &str = "load-aware-rebalancing";
const NODES: usize = 6;
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) async fn run() -> anyhow::Result<()> {
    let demo = Demo::start().await?;
    demo.refuse_bad_input().await?;
    demo.plan().await?;
    demo.impact().await?;
    if demo.approve().await? {
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
        nodes::create(&client, "worker", 0..NODES).await?;
        let stand_in = nodes::look_after(&cluster).await?;
        at_rest(&client, NODES).await?;
        kubectl(&cluster, &["get", "nodes"]).await?;

        step("Starting the operator, which offers its profiles");
        let program = std::env::current_exe()?.with_file_name("virt-advisor");
        ensure!(program.is_file(), "{} is not built: run `make demo`, or `make build` first", program.display());
        let operator = cluster.access().run(&Identity::Admin, "virt-advisor", &program, &["operator"]).await?;
        println!("its log: {}", operator.log().display());
        let demo = Demo { cluster, client, stand_in, operator };
        demo.until("Ignored").await?;
        demo.advisor(&["list"]).await?;
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
        self.advisor(&["wait", PROFILE, "--for=planned"]).await?;
        self.advisor(&["list"]).await?;
        self.advisor(&["plan", PROFILE]).await
    }

    /// Virtual machines of every class. There is no KubeVirt here, so they do nothing but stand on their nodes.
    async fn impact(&self) -> anyhow::Result<()> {
        step("What the plan does to virtual machines: two of them would block the drain of their nodes");
        let folder = "config/samples/virtual-machines";
        self.kubectl(&["apply", "--server-side", "-k", folder]).await?;
        let status = format!("{folder}/status.yaml");
        self.kubectl(&["apply", "--server-side", "--subresource=status", "-f", &status]).await?;
        self.advisor(&["impact", PROFILE]).await?;
        step("So somebody takes care of those that block, before the plan is approved");
        self.kubectl(&["-n", "guests", "delete", "virtualmachineinstances.kubevirt.io", "db-1", "hosted-node"]).await
    }

    /// Whether the plan was approved.
    async fn approve(&self) -> anyhow::Result<bool> {
        step("Your decision");
        if std::env::var_os("DEMO_YES").is_some_and(|yes| yes == "1") {
            let report: Value =
                serde_json::from_slice(&self.advisor_output(&["impact", PROFILE, "-o", "json"]).await?)?;
            let plan = &report["plans"][0];
            let risks = plan["impact"]["risks"].as_array().into_iter().flatten();
            let risks: Vec<&str> = risks.filter_map(|risk| risk["name"].as_str()).collect();
            let digest = plan["planDigest"].as_str().context("the plan has a digest")?;
            let risks = risks.join(",");
            let accepting: &[&str] = if risks.is_empty() { &[] } else { &["--accept-risk", &risks] };
            let args = [&["approve", PROFILE, "--digest", digest, "--reason", "DEMO_YES=1"], accepting].concat();
            self.advisor(&args).await?;
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("nobody is there to approve the plan: run it in a terminal, or with DEMO_YES=1");
        }
        self.try_advisor(&["approve", PROFILE, "--reason", "the demo"]).await
    }

    async fn apply(&self) -> anyhow::Result<()> {
        step("Approved: the plan is applied and followed to the nodes");
        self.advisor(&["status", PROFILE, "-w"]).await?;
        self.advisor(&["history", PROFILE]).await
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
        self.advisor(&["drift", PROFILE]).await?;
        let about = format!("regarding.name={PROFILE}");
        let columns = "custom-columns=TYPE:.type,REASON:.reason,NOTE:.note";
        self.kubectl(&["get", "events.events.k8s.io", "--field-selector", &about, "-o", columns]).await
    }

    /// Runs `virt-advisor` from the folder of this binary, at this terminal.
    async fn advisor(&self, args: &[&str]) -> anyhow::Result<()> {
        ensure!(self.try_advisor(args).await?, "virt-advisor {} failed", args.join(" "));
        Ok(())
    }

    /// Whether it succeeded.
    async fn try_advisor(&self, args: &[&str]) -> anyhow::Result<bool> {
        println!("\n$ virt-advisor {}", args.join(" "));
        let mut command = self.advisor_command(args).await?;
        Ok(tokio::task::spawn_blocking(move || command.status()).await??.success())
    }

    async fn advisor_output(&self, args: &[&str]) -> anyhow::Result<Vec<u8>> {
        let mut command = self.advisor_command(args).await?;
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        ensure!(output.status.success(), "virt-advisor {} failed", args.join(" "));
        Ok(output.stdout)
    }

    async fn advisor_command(&self, args: &[&str]) -> anyhow::Result<Command> {
        let program = std::env::current_exe()?.with_file_name("virt-advisor");
        let kubeconfig = self.cluster.access().kubeconfig(&Identity::Admin).await?;
        let mut command = Command::new(program);
        // What is shown stays on the screen, one command after another.
        command.args(args).env("KUBECONFIG", kubeconfig).env("PAGER", "cat");
        Ok(command)
    }

    async fn act(&self, action: &str) -> anyhow::Result<()> {
        let patch = format!(r#"{{"spec": {{"action": "{action}"}}}}"#);
        self.kubectl(&["patch", "virtplatformconfig", PROFILE, "--type=merge", "-p", &patch]).await
    }

    async fn until(&self, phase: &str) -> anyhow::Result<()> {
        let resource = ApiResource::erase::<VirtPlatformConfig>(&());
        let configs: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let arrived = async {
            loop {
                let config = configs.get_opt(PROFILE).await?;
                let found = config.map(|config| config.data["status"]["phase"].clone());
                if found.as_ref().and_then(Value::as_str) == Some(phase) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let late = || format!("{PROFILE} did not become {phase}; the operator says:\n{}", self.operator.log_tail());
        tokio::time::timeout(TIMEOUT, arrived).await.with_context(late)?
    }

    async fn kubectl(&self, args: &[&str]) -> anyhow::Result<()> {
        kubectl(&self.cluster, args).await
    }
}

/// Waits until the worker pool has all of its nodes and is updated.
async fn at_rest(client: &Client, nodes: usize) -> anyhow::Result<()> {
    let resource = ApiResource::erase::<MachineConfigPool>(&());
    let pools: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let rested = async {
        loop {
            let status = pools.get("worker").await?.data["status"].clone();
            if ["machineCount", "updatedMachineCount", "readyMachineCount"].iter().all(|count| status[count] == nodes) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, rested).await.context("the worker pool did not settle")?
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
