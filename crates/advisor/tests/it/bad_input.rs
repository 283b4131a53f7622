//! With arbitrary answers of the API server and an arbitrary status, nothing panics and every session ends.
//! The objects are those of a settled cluster, damaged at random: stored objects need not fit their schemas, others may write the
//! status, and lists may be long. `BAD_INPUT=n` tries n cases of each.

use std::{collections::BTreeSet, sync::OnceLock};

use advisor::{
    Answer, Facts, Plan, PlannedItem, Preview, PreviewOutcome, Query, Refusal, drift,
    machine::{Intervals, PlanFailure},
    profile, profiles,
    session::{Context, Input, Outcome, RecordInput, Request, Session, Step},
    test_cluster::{
        TestCluster, arbitrary,
        damage::{Damage, damage},
        machine_config, ours, set_by,
    },
    writing,
};
use api::VirtPlatformConfig;
use k8s_openapi::jiff::Timestamp;
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

/// No session takes more requests than this.
const REQUESTS: usize = 100;

fn cases(usual: u32) -> ProptestConfig {
    let wanted = std::env::var("BAD_INPUT").ok().and_then(|count| count.parse().ok());
    arbitrary::cases(wanted.unwrap_or(usual))
}

/// A cluster with all objects that the profiles change, set by the operator or by others.
fn cluster() -> TestCluster {
    let hyper_converged = json!({
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv", "uid": "h", "resourceVersion": "1"},
        "spec": {
            "liveMigrationConfig": {"parallelMigrationsPerCluster": 7, "parallelOutboundMigrationsPerNode": 3},
            "higherWorkloadDensity": {"memoryOvercommitPercentage": 130},
            "ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"a": "b"}}},
        },
    });
    let descheduler = json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
        "spec": {"deschedulingIntervalSeconds": 600, "profiles": ["LongLifecycle"], "evictionLimits": {"total": 3}},
    });
    TestCluster::with_descheduler("5.1")
        .with(set_by("kubectl", "Apply", hyper_converged))
        .with(set_by("argocd", "Apply", descheduler))
        .with(ours(machine_config("99-worker-psi-karg", json!({"kernelArguments": ["psi=1", "quiet"]}))))
        .with(set_by("a", "Update", machine_config("90-worker-kubelet-swap", json!({"config": {"storage": {}}}))))
}

fn config(profile: &str, action: &str, options: &Value, status: Value) -> Value {
    json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1",
        "kind": "VirtPlatformConfig",
        "metadata": {"name": profile, "uid": "u", "generation": 2, "resourceVersion": "5"},
        "spec": {"profile": profile, "action": action, "options": options, "waitTimeout": "1h"},
        "status": status,
    })
}

fn profile_and_options() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        Just(("load-aware-rebalancing", json!({}))),
        Just(("load-aware-rebalancing", json!({"loadAware": {"enablePSIMetrics": false}}))),
        Just(("virt-higher-density", json!({}))),
        Just(("virt-higher-density", json!({"virtHigherDensity": {"enableSwap": false}}))),
        Just(("example-profile", json!({}))),
    ]
}

/// An API server with damaged objects.
#[derive(Debug, Clone)]
struct Server {
    cluster: TestCluster,
    damages: Vec<(Index, Damage)>,
    /// The kinds of answers to previews and writes, in turn.
    moods: Vec<Index>,
}

impl Server {
    fn sound() -> Self {
        Server { cluster: cluster(), damages: Vec::new(), moods: Vec::new() }
    }

    fn hit(&self, object: &mut Value, salt: usize) {
        for (number, (which, damage)) in self.damages.iter().enumerate() {
            if (which.index(7) + number + salt).is_multiple_of(3) {
                damage.inflict(object, &["/spec", "/status", "/metadata/labels", "/metadata/managedFields", "/data"]);
            }
        }
    }

    fn answer(&self, query: &Query, salt: usize) -> Answer {
        let mut answer = self.cluster.answer(query);
        match &mut answer {
            Answer::Object { object, .. } => self.hit(object, salt),
            Answer::List { items, .. } => items.iter_mut().enumerate().for_each(|(at, item)| self.hit(item, salt + at)),
            Answer::KindMissing | Answer::Denied | Answer::Absent { .. } => {}
        }
        answer
    }

    /// All facts that are wanted. Like the operator, it stops a profile that keeps wanting more.
    fn facts(&self, planner: &dyn advisor::Planner) -> Option<Facts> {
        let mut facts = Facts::default();
        for _ in 0..5 {
            let queries = facts.unanswered(planner.wants(&facts));
            if queries.is_empty() {
                return Some(facts);
            }
            for (salt, query) in queries.into_iter().enumerate() {
                let answer = self.answer(&query, salt);
                facts.insert(query, answer);
            }
        }
        None
    }

    fn mood(&self, turn: usize, of: usize) -> usize {
        if self.moods.is_empty() { 0 } else { self.moods[turn % self.moods.len()].index(of) }
    }

    fn plan(&self, profile: &str, options: &Value) -> Result<Plan, PlanFailure> {
        let profile = profiles::find(profile).unwrap();
        let options = serde_json::from_value(options.clone()).unwrap();
        let planner = profile.resolve(Some(&options)).map_err(PlanFailure::from)?;
        let facts =
            self.facts(planner.as_ref()).ok_or_else(|| PlanFailure::Impossible("it wants more and more".into()))?;
        if let Some(missing) = profile::missing(&planner.requirements(&facts), &facts) {
            return Err(PlanFailure::Missing(missing));
        }
        let draft = planner.plan(&facts);
        let preview = |(turn, intent): (usize, &advisor::Intent)| {
            let live = facts.object(&intent.target).cloned();
            let target = intent.target.to_string();
            let outcome = match self.mood(turn, 5) {
                4 => PreviewOutcome::Refused(Refusal::Forbidden { target, message: "no".into() }),
                3 => PreviewOutcome::Gone,
                mood => {
                    let mut object = match (&intent.change, &live) {
                        (advisor::Change::Apply { fields, .. }, _) if mood == 0 => fields.clone(),
                        (_, live) => live.clone().unwrap_or_default(),
                    };
                    self.hit(&mut object, turn);
                    PreviewOutcome::Object(object)
                }
            };
            Preview { live, outcome, takes_over: Vec::new() }
        };
        let previews = draft.intents.iter().enumerate().map(preview).collect();
        Ok(Plan::assemble(profile.about(), draft, previews, facts))
    }

    fn target(&self, turn: usize, planned: &PlannedItem, request: &writing::Request) -> writing::Input {
        let live = self.cluster.find(planned.target.kind, planned.target.namespace, &planned.target.name);
        match (self.mood(turn, 5), request) {
            (4, _) => writing::Input::Failed("no".into()),
            (3, _) => writing::Input::Conflict,
            (2, _) => writing::Input::Absent,
            (_, writing::Request::Apply(fields)) => {
                let mut object = fields.clone();
                self.hit(&mut object, turn);
                writing::Input::Object(Box::new(object))
            }
            _ => live.map_or(writing::Input::Absent, |live| {
                let mut object = live.clone();
                self.hit(&mut object, turn);
                writing::Input::Object(Box::new(object))
            }),
        }
    }

    /// Runs one session to its end.
    fn reconcile(&self, config: VirtPlatformConfig, epoch: Option<i64>) -> VirtPlatformConfig {
        let profile = profiles::find(config.metadata.name.as_deref().unwrap()).unwrap();
        let context = Context {
            profile,
            version: "v9",
            epoch,
            intervals: Intervals::default(),
            approval_mode: Default::default(),
        };
        let options = json!(config.spec.options.clone().unwrap_or_default());
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut session = Session::new(config, None);
        let mut step = session.start(&context, now);
        for turn in 0..REQUESTS {
            let request = match step {
                Step::Send(request) => request,
                Step::Done(outcome) => {
                    let is_error = matches!(outcome, Outcome::Retry(why) if why.contains("error in the operator"));
                    assert!(!is_error, "{outcome:?}");
                    return session.config().unwrap().clone();
                }
            };
            let input = match request {
                Request::UpdateStatus(new) => Input::StatusUpdated(new),
                Request::ReadConfig => Input::Config(session.config().map(|config| Box::new(config.clone()))),
                Request::FetchFacts => {
                    let options = serde_json::from_value(options.clone()).unwrap();
                    let facts = profile.resolve(Some(&options)).ok().and_then(|planner| self.facts(planner.as_ref()));
                    Input::Facts(facts.unwrap_or_default())
                }
                Request::MakePlan { .. } => Input::Plan(Box::new(self.plan(profile.about().name, &options))),
                Request::WriteTarget { planned, request } => Input::Target(self.target(turn, &planned, &request)),
                Request::CreateRecord(record) => match self.mood(turn, 4) {
                    3 => Input::Record(RecordInput::Refused("no".into())),
                    2 => Input::Record(RecordInput::Exists(record)),
                    _ => Input::Record(RecordInput::Created),
                },
                Request::ListRecords { .. } => Input::Record(RecordInput::Listed(Vec::new())),
                Request::CloseRecord { .. } if self.mood(turn, 2) == 1 => Input::Record(RecordInput::NotClosed),
                Request::CloseRecord { .. } => Input::Record(RecordInput::Closed),
            };
            step = session.next(&context, now, input);
        }
        panic!("not settled after {REQUESTS} requests: {step:?}");
    }
}

fn server() -> impl Strategy<Value = Server> {
    let damages = proptest::collection::vec((any::<Index>(), damage()), 1..8);
    let moods = proptest::collection::vec(any::<Index>(), 1..6);
    (damages, moods).prop_map(|(damages, moods)| Server { cluster: cluster(), damages, moods })
}

/// Whether somebody else may have emptied the messages. They are not restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Ours,
    Anybodys,
}

/// Checks what must hold for every status.
fn check(config: &VirtPlatformConfig, words: Words) -> Result<(), TestCaseError> {
    let status = config.status.as_ref().unwrap();
    let phase = status.phase.unwrap();
    let told = status.conditions.iter().find(|condition| condition.type_ == phase.as_str());
    prop_assert!(
        told.is_some_and(|told| told.status == "True" && !(told.message.is_empty() && words == Words::Ours)),
        "{:?}: {:?}",
        phase,
        told
    );
    let size = json!(status).to_string().len();
    prop_assert!(size < 1_400_000, "etcd does not take {} bytes", size);
    let refused = refused(&json!(status), schema(), "status");
    prop_assert!(refused.is_empty(), "the API server does not take this: {:?}", refused);
    Ok(())
}

/// The schema of a status.
fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let definition = json!(api::crd::crds()[0]);
        assert_eq!(definition["spec"]["names"]["kind"], "VirtPlatformConfig");
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"].clone()
    })
}

/// The fields that are too long for their schema, and the lists with two items of one name.
fn refused(value: &Value, schema: &Value, path: &str) -> Vec<String> {
    let limit = |name: &str| schema[name].as_u64().unwrap_or(u64::MAX) as usize;
    let check = |length: usize, limit: usize| (length > limit).then(|| format!("{path}: {length} > {limit}"));
    match value {
        Value::String(text) => check(text.chars().count(), limit("maxLength")).into_iter().collect(),
        Value::Number(number) => {
            let is_low =
                schema["minimum"].as_f64().is_some_and(|least| number.as_f64().is_some_and(|value| value < least));
            is_low.then(|| format!("{path}: {number}")).into_iter().collect()
        }
        Value::Array(list) => {
            let below = list
                .iter()
                .enumerate()
                .flat_map(|(at, item)| refused(item, &schema["items"], &format!("{path}[{at}]")));
            let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let key = |item: &Value| keys.iter().map(|key| item[*key].to_string()).collect::<String>();
            let names: BTreeSet<String> = list.iter().map(key).collect();
            let is_repeated = !keys.is_empty() && names.len() < list.len();
            let repeated = is_repeated.then(|| format!("{path}: two of one name"));
            check(list.len(), limit("maxItems")).into_iter().chain(repeated).chain(below).collect()
        }
        Value::Object(fields) => {
            let below = |(name, value): (&String, &Value)| {
                refused(value, &schema["properties"][name], &format!("{path}.{name}"))
            };
            fields.iter().flat_map(below).collect()
        }
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(cases(256))]

    /// W23 (one bad object stops all): of any kind, in any place.
    #[test]
    fn a_plan_from_damaged_objects_is_a_plan_or_a_reason((profile, options) in profile_and_options(), server in server()) {
        if let Ok(plan) = server.plan(profile, &options) {
            for planned in &plan.items {
                let live = plan.facts.object(&planned.target);
                let _ = (drift::fingerprint(&planned.item, live), drift::is_applied(&planned.item, live));
                if let Some(live) = plan.facts.target(&planned.item.target_ref) {
                    let _ = drift::changed_by(&planned.item, live);
                }
            }
            prop_assert!(!plan.digest.is_empty() && !plan.snapshot.is_empty());
        }
    }

    #[test]
    fn a_round_over_damaged_objects_ends_in_a_phase_that_says_why(
        (profile, options) in profile_and_options(),
        action in proptest::sample::select(&["DryRun", "Apply", "Ignore"][..]),
        server in server(),
        epoch in proptest::option::of(0..i64::MAX),
    ) {
        let config = serde_json::from_value(config(profile, action, &options, Value::Null)).unwrap();
        check(&server.reconcile(config, epoch), Words::Ours)?;
    }

    /// A status that others have written is believed as far as it can be read, and no further.
    #[test]
    fn a_round_from_a_damaged_status_ends_in_a_phase_that_says_why(
        (profile, options) in profile_and_options(),
        (before, action) in (proptest::sample::select(&["DryRun", "Apply"][..]), proptest::sample::select(&["DryRun", "Apply", "Ignore"][..])),
        damages in proptest::collection::vec(damage(), 1..6),
        server in server(),
        is_sound in any::<bool>(),
    ) {
        let first = serde_json::from_value(config(profile, before, &options, Value::Null)).unwrap();
        let settled = Server::sound().reconcile(first, None);
        let mut now = config(profile, action, &options, json!(settled.status));
        damages.iter().for_each(|damage| damage.inflict(&mut now, &["/status"]));
        // A config that cannot be parsed is not reconciled, and one that is too long was never stored.
        let is_storable = refused(&now["status"], schema(), "status").is_empty();
        if let (Ok(now), true) = (serde_json::from_value::<VirtPlatformConfig>(now), is_storable) {
            let server = if is_sound { Server::sound() } else { server };
            check(&server.reconcile(now, None), Words::Anybodys)?;
        }
    }
}
