//! What the operator costs: how long people wait for it, how many requests a whole life takes, and how much memory it needs.
//!
//! The operator is the optimized binary, as its own process, on a real API server. Pools are moved by hand, so that only the
//! operator's own time is measured.

use std::{
    collections::BTreeMap,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use devcluster::{Cluster, Identity, Request, RunningProgram};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    discovery::ApiResource,
    runtime::watcher::{self, Event, watcher},
};
use serde_json::{Value, json};
use testkit::rollout::{NODES, PSI, Rollout};
use tokio::sync::mpsc;

use crate::root;

const RUNS: usize = 50;
const PROFILE: &str = "load-aware-rebalancing";
const OPERATOR: &str = "virt-advisor-operator-bench";
const PATIENCE: Duration = Duration::from_secs(20);

/// Other people's MachineConfigs, and how big they are.
const FOREIGN: usize = 2000;
const FOREIGN_BYTES: usize = 64 * 1024;

/// What is measured, and what the reference implementation took on the same server.
const STEPS: [(&str, f64); 4] = [
    ("created -> ReviewRequired", 60.0),
    ("approved -> both objects written", 52.0),
    ("pool ready -> Completed", 75.0),
    ("foreign edit -> Drifted", 58.0),
];

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("Building the operator, and starting a control plane with the third parties' kinds");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--release", "--bin", "virt-advisor"])
        .current_dir(root())
        .status()?;
    ensure!(built.success(), "the operator could not be built");
    let cluster = Cluster::builder().start().await?;
    let client = kube_io::connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    for args in [
        &["apply", "--server-side", "-k", "config/crd"][..],
        &["apply", "--server-side", "-k", "config/crd/third-party"],
        &["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"],
        &["apply", "--server-side", "-k", "config/samples/third-party"],
        &["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"],
    ] {
        let mut kubectl = cluster.access().kubectl_command(&Identity::Admin).await?;
        let output = kubectl.args(args).current_dir(root()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let program = std::env::current_exe()?.with_file_name("virt-advisor");
    let who = Identity::user(OPERATOR, &["system:masters"]);
    let start = async || cluster.access().run(&who, "virt-advisor", &program, &["operator"]).await;
    let operator = start().await?;
    let mut bench = Bench::new(client.clone()).await?;
    bench.until("offered", |kind, object| kind == "VirtPlatformConfig" && phase(object) == "Ignored").await?;
    let idle = memory(&operator)?;

    let mut lives = Vec::new();
    let mut requests = Vec::new();
    for _ in 0..RUNS {
        let before = cluster.audit().position(&client).await?;
        lives.push(bench.life().await?);
        requests.push(counted(cluster.audit().since(before, &client).await?));
        bench.clean_up().await?;
    }
    let totals: Vec<usize> = requests.iter().map(|kinds| kinds.values().sum()).collect();
    let (least, most) = (totals.iter().min().copied().unwrap_or(0), totals.iter().max().copied().unwrap_or(0));
    println!("\nRequests of a whole life, watches and events aside: {least} to {most} (reference: 70 to 76)");
    for (kind, count) in requests.last().context("there were runs")? {
        println!("  {count:>3} {kind}");
    }
    let busy = memory(&operator)?;
    println!("\nResident memory: {idle:.1} MiB idle, {busy:.1} MiB after {RUNS} lives (reference: 54 MiB)");

    println!("Adding {FOREIGN} MachineConfigs of {} KiB of other people's", FOREIGN_BYTES / 1024);
    foreign(&client).await?;
    let crowded = memory(&operator)?;
    operator.stop(Duration::from_secs(5)).await?;
    let mut bare = Vec::new();
    for _ in 0..RUNS {
        bare.push(bench.bare_life().await?);
    }
    let operator = start().await?;
    bench.ignore().await?;
    bench.life().await?;
    let restarted = memory(&operator)?;
    println!(
        "Resident memory: {crowded:.1} MiB beside them, {restarted:.1} MiB after a restart and one more life (reference: 206 MiB beside 1,000)"
    );
    let size = std::fs::metadata(&program)?.len() as f64 / 1e6;
    println!("Binary: {size:.1} MB (reference: 74 MB)");
    show(&lives, &bare);
    Ok(())
}

/// How long people wait, beside the least that the same writes take on the same API server in the same run.
fn show(lives: &[[Duration; 4]], bare: &[[Duration; 4]]) {
    println!("\nOne life of {PROFILE}, {RUNS} times, and what the same writes take without an operator:\n");
    println!(
        "{:<34} {:>9} {:>9} {:>10} {:>8} {:>15} {:>7}",
        "", "p50 [ms]", "p99 [ms]", "bare [ms]", "to bare", "reference [ms]", "ratio"
    );
    for (step, (name, reference)) in STEPS.iter().enumerate() {
        let of = |lives: &[[Duration; 4]]| lives.iter().map(|life| life[step]).collect::<Vec<_>>();
        let (half, most, bare) = (percentile(of(lives), 0.5), percentile(of(lives), 0.99), percentile(of(bare), 0.5));
        println!(
            "{name:<34} {half:>9.1} {most:>9.1} {bare:>10.1} {:>8.2} {reference:>15.0} {:>7.2}",
            half / bare,
            half / reference
        );
    }
}

/// In milliseconds.
fn percentile(mut times: Vec<Duration>, share: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1000.0
}

fn memory(operator: &RunningProgram) -> anyhow::Result<f64> {
    Ok(operator.resident_memory()? as f64 / 1024.0 / 1024.0)
}

/// Requests by what they do, without watches, the lists with which they begin, and events.
fn counted(requests: Vec<Request>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for request in requests {
        let is_watch = request.verb == "watch" || request.verb == "list" && request.uri.contains("fieldSelector");
        if request.user == OPERATOR && !is_watch && !request.uri.contains("/events") {
            let path = request.uri.split('?').next().unwrap_or_default().to_owned();
            let path = path.replace("rendered-worker-d9366560000b5d89c5825f832fda0bd6", "rendered-*");
            *counts.entry(format!("{} {path}", request.verb)).or_insert(0) += 1;
        }
    }
    counts
}

fn phase(object: &Value) -> &str {
    object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

/// The eyes and hands of a person at the API server.
struct Bench {
    client: Client,
    sightings: mpsc::UnboundedReceiver<(&'static str, Value, Instant)>,
    /// The configuration as it was seen last.
    config: Value,
    /// As it was seen in each step of the last life, whenever its status was another.
    story: [Vec<Value>; 4],
    step: usize,
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: format!("{group}/{version}"),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
    }
}

const MCO: &str = "machineconfiguration.openshift.io";

impl Bench {
    async fn new(client: Client) -> anyhow::Result<Self> {
        let (seen, sightings) = mpsc::unbounded_channel();
        let watched = [
            ("VirtPlatformConfig", resource("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig"), PROFILE),
            ("MachineConfig", resource(MCO, "v1", "MachineConfig"), PSI),
            ("KubeDescheduler", resource("operator.openshift.io", "v1", "KubeDescheduler"), "cluster"),
        ];
        for (kind, resource, name) in watched {
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            let seen = seen.clone();
            tokio::spawn(async move {
                let mut events = std::pin::pin!(watcher(api, config));
                while let Some(event) = events.next().await {
                    if let Ok(Event::Apply(object) | Event::InitApply(object)) = event {
                        let _ = seen.send((kind, json!(object), Instant::now()));
                    }
                }
            });
        }
        Ok(Bench { client, sightings, config: Value::Null, story: Default::default(), step: 0 })
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&str, &Value) -> bool) -> anyhow::Result<Instant> {
        let found = async {
            loop {
                let (kind, object, time) = self.sightings.recv().await.context("the watches have ended")?;
                let is_it = holds(kind, &object);
                if kind == "VirtPlatformConfig" {
                    if object["status"] != self.config["status"] {
                        self.story[self.step].push(object.clone());
                    }
                    self.config = object;
                }
                if is_it {
                    return anyhow::Ok(time);
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.with_context(|| format!("never: {what}"))?
    }

    /// Until the configuration says this somewhere, which it may have said already.
    async fn until_said(&mut self, message: &str) -> anyhow::Result<()> {
        let says = |object: &Value| object.to_string().contains(message);
        if !says(&self.config) {
            self.until(message, |_, object| says(object)).await?;
        }
        Ok(())
    }

    fn api(&self, group: &str, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = resource(group, version, kind);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    fn configs(&self) -> Api<DynamicObject> {
        self.api("advisor.kubevirt.io", "v1alpha1", "VirtPlatformConfig", None)
    }

    fn descheduler(&self) -> Api<DynamicObject> {
        self.api("operator.openshift.io", "v1", "KubeDescheduler", Some("openshift-kube-descheduler-operator"))
    }

    async fn patch(&self, api: &Api<DynamicObject>, name: &str, patch: Value) -> anyhow::Result<DynamicObject> {
        Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// From the first plan to drift. How long each step took.
    async fn life(&mut self) -> anyhow::Result<[Duration; 4]> {
        let configs = self.configs();
        let arrived = |wanted: &'static str| {
            move |kind: &str, object: &Value| kind == "VirtPlatformConfig" && phase(object) == wanted
        };

        self.story = Default::default();
        self.step = 0;
        let start = Instant::now();
        self.patch(&configs, PROFILE, json!({"spec": {"action": "DryRun"}})).await?;
        let planned = self.until("ReviewRequired", arrived("ReviewRequired")).await? - start;

        self.step = 1;
        let start = Instant::now();
        self.patch(&configs, PROFILE, json!({"spec": {"action": "Apply"}})).await?;
        let first = self.until("an object", |kind, _| kind != "VirtPlatformConfig").await?;
        let second = self.until("both objects", |kind, _| kind != "VirtPlatformConfig").await?;
        let written = first.max(second) - start;

        self.until_said("is processing changes").await?;
        self.roll(1).await?;
        self.until_said("Updated: 1/3").await?;
        self.step = 2;
        let start = Instant::now();
        self.roll(3).await?;
        let completed = self.until("Completed", arrived("Completed")).await? - start;

        self.step = 3;
        let start = Instant::now();
        self.patch(&self.descheduler(), "cluster", json!({"spec": {"deschedulingIntervalSeconds": 180}})).await?;
        let drifted = self.until("Drifted", arrived("Drifted")).await? - start;
        Ok([planned, written, completed, drifted])
    }

    /// The last life again, without an operator: the same edits, and right after them the writes that the seeds ask for, one
    /// after the other. Less is not possible on this API server.
    async fn bare_life(&mut self) -> anyhow::Result<[Duration; 4]> {
        let configs = self.configs();
        let [planned, written, completed, drifted] = self.story.clone();
        let action = |action: &str| json!({"spec": {"action": action}});
        self.patch(&configs, PROFILE, action("Ignore")).await?;

        let start = Instant::now();
        let mut config = self.patch(&configs, PROFILE, action("DryRun")).await?;
        let until_planned = self.record_all(&mut config, &planned).await? - start;

        let items = planned.last().and_then(|config| config.pointer("/status/items")).context("a plan")?;
        let (first, second) = (&items[0], &items[1]);
        let start = Instant::now();
        let mut config = self.patch(&configs, PROFILE, action("Apply")).await?;
        tokio::try_join!(self.apply(first, true), self.apply(second, true))?;
        self.record_all(&mut config, &written[..1]).await?;
        self.apply(first, false).await?;
        self.record_all(&mut config, &written[1..2]).await?;
        self.apply(second, false).await?;
        let until_written = start.elapsed();

        self.roll(1).await?;
        let start = Instant::now();
        self.roll(3).await?;
        let until_completed = self.record_all(&mut config, &completed).await? - start;

        let start = Instant::now();
        self.patch(&self.descheduler(), "cluster", json!({"spec": {"deschedulingIntervalSeconds": 180}})).await?;
        let until_drifted = self.record_all(&mut config, &drifted).await? - start;
        self.tidy_up().await?;
        Ok([until_planned, until_written, until_completed, until_drifted])
    }

    /// Writes what the operator wrote in a step. When that was done.
    async fn record_all(&self, config: &mut DynamicObject, story: &[Value]) -> anyhow::Result<Instant> {
        let configs = self.configs();
        for told in story {
            config.data["status"] = told["status"].clone();
            config.metadata.managed_fields = None;
            *config = configs.replace_status(PROFILE, &Default::default(), config).await?;
        }
        Ok(Instant::now())
    }

    async fn apply(&self, item: &Value, dry_run: bool) -> anyhow::Result<()> {
        let target = &item["targetRef"];
        let text = |field: &str| target[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').context("a group")?;
        let params = PatchParams { dry_run, ..PatchParams::apply("bench").force() };
        let api = self.api(group, version, text("kind"), target["namespace"].as_str());
        api.patch(text("name"), &params, &Patch::Apply(&item["desiredState"])).await?;
        Ok(())
    }

    /// Everything as it was: ignored, nothing applied, the pool at rest.
    async fn clean_up(&mut self) -> anyhow::Result<()> {
        self.ignore().await?;
        self.tidy_up().await
    }

    async fn ignore(&mut self) -> anyhow::Result<()> {
        self.patch(&self.configs(), PROFILE, json!({"spec": {"action": "Ignore"}})).await?;
        self.until("Ignored", |kind, object| kind == "VirtPlatformConfig" && phase(object) == "Ignored").await?;
        Ok(())
    }

    async fn tidy_up(&self) -> anyhow::Result<()> {
        self.descheduler().delete("cluster", &Default::default()).await?;
        self.api(MCO, "v1", "MachineConfig", None).delete(PSI, &Default::default()).await?;
        self.roll(0).await
    }

    /// Writes the worker pool as if so many of its nodes ran our config. With none, the pool is as in the samples.
    async fn roll(&self, updated: i64) -> anyhow::Result<()> {
        let pools = self.api(MCO, "v1", "MachineConfigPool", None);
        let rollout = match updated {
            0 => Rollout { configs: &[], updated: NODES },
            updated => Rollout { configs: &[PSI], updated },
        };
        let patch = Patch::Merge(json!({"spec": rollout.pool_spec()}));
        let pool = pools.patch("worker", &PatchParams::default(), &patch).await?;
        let status = rollout.pool_status(&json!(pool.metadata.generation));
        pools.patch_status("worker", &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
        Ok(())
    }
}

async fn foreign(client: &Client) -> anyhow::Result<()> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(MCO, "v1", "MachineConfig"));
    let payload = "x".repeat(FOREIGN_BYTES);
    stream::iter(0..FOREIGN)
        .map(|number| {
            let (api, payload) = (api.clone(), payload.clone());
            async move {
                let source = format!("data:,{payload}");
                let object: DynamicObject = serde_json::from_value(json!({
                    "apiVersion": format!("{MCO}/v1"),
                    "kind": "MachineConfig",
                    "metadata": {"name": format!("50-other-{number:04}"), "labels": {format!("{MCO}/role"): "other"}},
                    "spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/other", "contents": {"source": source}}]}}},
                }))?;
                api.create(&Default::default(), &object).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(8)
        .try_collect()
        .await
}
