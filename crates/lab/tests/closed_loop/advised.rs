//! The advisor and the lab together: from a plan without approval to a cluster that is rebalanced.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    fmt::{self, Debug},
    time::Duration,
};

use api::{VirtPlatformConfig, virt_platform_config::Phase};
use devcluster::Identity;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
    runtime::wait::await_condition,
};
use lab::{
    play::{LoadSchedule, NewVm, Placement, node_sizes, set_utilization},
    up::{Descheduling, Lab, Options},
};
use lab_parts::soft_tainter::taints::OVERUTILIZED;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sim::{
    ClusterModel, Scenario,
    scenario::{Load, NodeGroup, VmGroup},
    units::{Bytes, Span},
};
use standins::descheduler::{Mode, names};
use testkit::within;
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use crate::{
    course::{Metrics, TIME_SCALE, end, follow},
    observer::Observer,
};

const PROFILE: &str = "load-aware-rebalancing";
const PSI: &str = "99-worker-psi-karg";
const TIMEOUT: Duration = Duration::from_secs(120);

/// The number of VMs before the rollout.
const FIRST: usize = 10;
/// The number of VMs that are created after the rollout.
const NEWCOMERS: usize = 100;
const ASLEEP: f64 = 0.0;
const IDLE: f64 = 0.2;
const BUSY: f64 = 0.95;
/// The spread is at least this when some of these VMs are busy.
const SKEWED: f64 = 0.18;

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_moves_nothing_until_it_is_approved_then_balances_and_is_kept_when_it_is_ignored() {
    let advised = AdvisedLab::start().await;
    let observer = Observer::start(&advised.lab).await;
    let advisor = Advisor::start(&advised.lab).await;

    let limits = json!({"loadAware": {"evictionLimitTotal": 4}});
    advised.say(json!({"action": "DryRun", "options": limits})).await;
    let reviewed = advised.phase(Phase::ReviewRequired).await;
    let diffs: Vec<String> = reviewed.status.unwrap().items.into_iter().filter_map(|item| item.diff).collect();
    assert!(diffs.iter().any(|diff| diff.contains("total: 4")), "{diffs:?}");
    assert!(advised.descheduler.get_opt(names::OBJECT).await.unwrap().is_none(), "nothing is applied in a dry run");
    assert!(advised.configs.get_opt(PSI).await.unwrap().is_none(), "nothing is applied in a dry run");
    assert_eq!(advised.starts(), 0, "no descheduler runs in a dry run");
    assert_eq!(observer.moves(), [], "nothing moves in a dry run");

    advised.say(json!({"action": "Apply"})).await;
    let refuses =
        "profile KubeVirtRelieveAndMigrate can only be used when PSI metrics are enabled for the worker nodes";
    let told = |object: &DynamicObject| object.data["status"]["conditions"][0]["reason"] == refuses;
    until(&advised.descheduler, names::OBJECT, "no descheduler runs before the pools have rolled", told).await;
    assert_eq!(advised.starts(), 0);
    advised.phase(Phase::Completed).await;
    let pid = advised.runs_as_planned().await;
    assert!(observer.moves().len() >= advised.guests, "every VM had to leave the node that it began on");

    advised.rest().await;
    advised.fill().await;
    advised.load(&observer).await;
    let record = follow(&advised.lab, &observer).await;
    println!("with the advisor: {:?}", record.course);
    record.course.settles(0.60);

    let (descheduler, config) = advised.applied().await;
    advised.say(json!({"action": "Ignore"})).await;
    advised.phase(Phase::Ignored).await;
    advised.two_more_cycles().await;
    assert_eq!(advised.applied().await, (descheduler, config), "what was applied stays");
    assert_eq!((advised.starts(), advised.pid()), (1, Some(pid)), "the descheduler goes on");

    advisor.stop().await;
    observer.check_history().await;
    drop(observer);
    end(advised.lab).await;
}

fn guest(name: String, cpu_use: f64) -> NewVm {
    NewVm { name, cores: 1.0, memory_bytes: 2 << 30, cpu_use, memory_use: 0.5 }
}

/// After two steps some VMs on the two fullest nodes become busy: on each as many as an even placement would put there.
fn scenario(homes: &BTreeMap<String, String>) -> Scenario {
    let mut on_node: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, home) in homes.iter().filter(|(name, _)| name.starts_with("new-")) {
        on_node.entry(home).or_default().push(name);
    }
    let mut fullest: Vec<Vec<&str>> = on_node.into_values().collect();
    fullest.sort_by_key(|names| Reverse(names.len()));
    let steps = [(0, IDLE), (15, IDLE), (30, BUSY)].map(|(second, share)| (Span(second), share));
    let vms = fullest.iter().enumerate().flat_map(|(rank, names)| {
        names.iter().enumerate().map(move |(number, name)| {
            let works = rank < 2 && number < NEWCOMERS / 5;
            let cpu = if works { Load::Points(steps.to_vec()) } else { Load::Constant(IDLE) };
            let NewVm { name, cores, memory_bytes, memory_use, .. } = guest((*name).to_owned(), IDLE);
            let memory_use = Load::Constant(memory_use);
            VmGroup { cores, memory: Bytes(memory_bytes), cpu, memory_use, ..VmGroup::new(&name) }
        })
    });
    let nodes = (1..=5).map(|number| NodeGroup::reference(&format!("kwok-node-{number}"))).collect();
    let mut scenario = Scenario::new("some get to work", nodes, vms.collect());
    (scenario.step, scenario.duration) = (Span(15), Span(45));
    scenario
}

struct AdvisedLab {
    lab: Lab,
    /// The number of VMs before the rollout.
    guests: usize,
    profiles: Api<VirtPlatformConfig>,
    descheduler: Api<DynamicObject>,
    configs: Api<DynamicObject>,
}

impl AdvisedLab {
    /// Starts a lab for the advisor. All VMs are on one node, so a descheduler that may evict has a reason to.
    async fn start() -> AdvisedLab {
        let options = Options {
            advisor: true,
            descheduling: Descheduling::Awaited,
            time_scale: TIME_SCALE,
            ..Options::default()
        };
        let lab = Lab::start(options, |_| {}).await.unwrap_or_else(|error| panic!("{error}"));
        let first = (0..FIRST).map(|number| (guest(format!("first-{number}"), BUSY), Some("kwok-node-1".to_owned())));
        let placement = Placement(first.collect());
        placement.create(lab.client()).await.unwrap();
        let kind = |group: &str, kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        let descheduler = kind("operator.openshift.io", "KubeDescheduler");
        let config = kind("machineconfiguration.openshift.io", "MachineConfig");
        AdvisedLab {
            guests: placement.0.len(),
            profiles: Api::all(lab.client().clone()),
            descheduler: Api::namespaced_with(lab.client().clone(), names::NAMESPACE, &descheduler),
            configs: Api::all_with(lab.client().clone(), &config),
            lab,
        }
    }

    /// Waits for the configuration that the operator creates, and edits its spec.
    async fn say(&self, spec: Value) {
        until(&self.profiles, PROFILE, "the advisor offers its profile", |_| true).await;
        let patch = Patch::Merge(json!({"spec": spec}));
        self.profiles.patch(PROFILE, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn phase(&self, phase: Phase) -> VirtPlatformConfig {
        let is = |config: &VirtPlatformConfig| {
            let status = config.status.as_ref();
            let is_current = status.and_then(|status| status.observed_generation) == config.metadata.generation;
            is_current && status.is_some_and(|status| status.phase.as_ref() == Some(&phase))
        };
        until(&self.profiles, PROFILE, &format!("it is {phase:?}"), is).await
    }

    fn starts(&self) -> u32 {
        self.lab.descheduler().unwrap().borrow().starts
    }

    fn pid(&self) -> Option<u32> {
        self.lab.descheduler().unwrap().borrow().pid
    }

    /// Checks that the descheduler has limits, mode, profile and thresholds of the plan. Returns its process ID.
    async fn runs_as_planned(&self) -> u32 {
        let mut states = self.lab.descheduler().unwrap();
        let ready = timeout(TIMEOUT, states.wait_for(|state| state.is_ready)).await.expect("a descheduler starts");
        let state = ready.unwrap().clone();
        assert_eq!(state.starts, 1, "it started once, when the nodes were ready for it");
        let started = state.policy.unwrap();
        assert_eq!((started.mode, started.interval.as_secs()), (Mode::Automatic, 3), "a minute, 20 times as fast");

        let spec = self.descheduler.get(names::OBJECT).await.unwrap().data["spec"].clone();
        assert_eq!(spec["mode"], "Automatic");
        assert_eq!(spec["evictionLimits"], json!({"total": 4, "node": 2}));
        assert_eq!(spec["profileCustomizations"]["devDeviationThresholds"], "AsymmetricLow");
        assert_eq!(spec["profiles"], json!(["KubeVirtRelieveAndMigrate"]));

        let text = std::fs::read_to_string(self.lab.policy().unwrap()).unwrap();
        let policy: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!((&policy["maxNoOfPodsToEvictTotal"], &policy["maxNoOfPodsToEvictPerNode"]), (&json!(4), &json!(2)));
        let [profile] = &policy["profiles"].as_array().unwrap()[..] else { panic!("{text}") };
        assert_eq!(profile["name"], "KubeVirtRelieveAndMigrate");
        let plugins = profile["pluginConfig"].as_array().unwrap();
        let plugin = &plugins.iter().find(|plugin| plugin["name"] == "LowNodeUtilization").unwrap()["args"];
        assert_eq!(plugin["evictionLimits"], json!({"node": 2}));
        assert_eq!(plugin["useDeviationThresholds"], true);
        assert_eq!(plugin["thresholds"], json!({"MetricResource": 0}));
        assert_eq!(plugin["targetThresholds"], json!({"MetricResource": 10}));
        state.pid.unwrap()
    }

    /// Takes the load off the first VMs, wherever the rollout has put them. Otherwise the descheduler would be at work when the
    /// load changes, and the scheduler would avoid some of the nodes.
    async fn rest(&self) {
        let asleep = (0..FIRST).map(|number| (format!("first-{number}"), [Some(ASLEEP), None]));
        set_utilization(self.lab.client(), asleep.collect()).await.unwrap();
        self.two_more_cycles().await;
        let nodes = Api::<Node>::all(self.lab.client().clone());
        let is_marked = |taint: &Taint| taint.key == OVERUTILIZED;
        let unmarked = async || {
            let nodes = nodes.list(&ListParams::default()).await.unwrap();
            let taints = nodes.into_iter().flat_map(|node| node.spec.unwrap_or_default().taints.unwrap_or_default());
            (!taints.into_iter().any(|taint| is_marked(&taint))).then_some(())
        };
        within(TIMEOUT, "no node counts as over-utilized", unmarked).await;
    }

    /// Creates VMs with equal load. The scheduler selects their nodes.
    async fn fill(&self) {
        let newcomers = (0..NEWCOMERS).map(|number| (guest(format!("new-{number}"), IDLE), None));
        Placement(newcomers.collect()).create(self.lab.client()).await.unwrap();
    }

    /// Plays the scenario as `rebalance-lab load` does, but without waiting between its steps.
    async fn load(&self, observer: &Observer) {
        let client = self.lab.client();
        let all = async || Some(observer.homes()).filter(|homes| homes.len() == self.guests + NEWCOMERS);
        let homes = within(TIMEOUT, "the observer has seen all VMs", all).await;
        let model = ClusterModel::new(&scenario(&homes)).unwrap();
        let mut load = LoadSchedule::new(&model, 0);
        let placement = load.placement(&node_sizes(client).await.unwrap()).unwrap();
        assert_eq!(placement.create_missing(client).await.unwrap(), 0, "all VMs are there already");
        for step in 1..=model.steps() {
            let changes = load.changes(step).into_iter();
            set_utilization(client, changes.map(|(name, uses)| (name, uses.map(Some))).collect()).await.unwrap();
        }
        let skewed = async || (observer.spread() >= SKEWED).then_some(());
        let spread = fmt::from_fn(|f| write!(f, "the spread is {}, not {SKEWED}", observer.spread()));
        within(TIMEOUT, spread, skewed).await;
    }

    /// The parts of the applied objects that only the advisor or a person changes.
    async fn applied(&self) -> (Value, Option<String>) {
        let descheduler = self.descheduler.get(names::OBJECT).await.unwrap();
        let metadata = &descheduler.metadata;
        let descheduler = json!([metadata.uid, metadata.generation, metadata.labels, descheduler.data["spec"]]);
        (descheduler, self.configs.get(PSI).await.unwrap().resource_version())
    }

    async fn two_more_cycles(&self) {
        let metrics = Metrics::of(&self.lab);
        let cycles = async || Some(metrics.read().await?.cycles);
        let before = within(TIMEOUT, "the descheduler tells its cycles", cycles).await;
        let more = async || cycles().await.filter(|now| *now >= before + 2);
        within(TIMEOUT, "the descheduler goes on", more).await;
    }
}

/// The operator runs as a task of the test process.
struct Advisor {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Advisor {
    async fn start(lab: &Lab) -> Advisor {
        let who = Identity::user("virt-advisor", &["system:masters"]);
        let config = lab.cluster().access().config(&who).await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let shutdown = async { drop(stopped.await) };
            operator::run(config, operator::OperatorSettings::default(), shutdown).await.unwrap();
        });
        Advisor { stop, task }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        timeout(TIMEOUT, self.task).await.expect("the advisor ends").unwrap();
    }
}

/// Waits until the object exists and `holds` is true for it.
async fn until<K>(api: &Api<K>, name: &str, what: &str, holds: impl Fn(&K) -> bool) -> K
where
    K: Clone + Debug + Send + DeserializeOwned + kube::Resource + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&holds);
    let waited = timeout(TIMEOUT, await_condition(api.clone(), name, condition)).await;
    waited.unwrap_or_else(|_| panic!("did not happen: {what}")).unwrap().unwrap()
}
