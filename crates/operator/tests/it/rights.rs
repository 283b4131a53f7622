//! Every single right of the operator is taken away in turn: what no longer works then, who is told, and that it works again
//! when the right is back. A right that nothing here needs has no place in the role.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use advisor::{
    access::{self, NAMESPACE},
    machine::Rhythm,
};
use futures::future::join_all;
use operator::{LeaseSettings, Settings, election::Times};
use serde_json::{Value, json};
use testkit::{
    configs::{config, is_waiting_for_nodes, phase},
    eventually,
    files::rbac_documents,
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config},
    rbac::{Permission, permissions},
    rollout::{PSI, SWAP},
    running_operator::{OPERATOR, RunningOperator},
};

use crate::webhook::Gate;

const EXAMPLE: &str = "example-profile";
const MAGIC: &str = "memory-magic";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const LANES: usize = 3;

/// What the operator does that takes a right, and how it is seen that it does it again.
#[derive(Debug, Clone)]
enum Deed {
    /// Offers the profiles and says that they are ignored.
    Offer,
    /// Describes an offered profile in today's words.
    Describe,
    /// Goes on with a plan after a restart.
    GoOn,
    /// Tells an object that it cannot be read.
    Report,
    /// Draws up a plan.
    Plan(&'static str),
    /// Draws up a plan for nodes of which nobody can tell what they run.
    PlanBlindly(&'static str),
    /// Draws up a plan to take back what it did to the nodes with this config.
    Undo(&'static str, &'static str),
    /// Notices that somebody changed this.
    Notice(&'static str, Value),
    /// Follows the nodes.
    Follow,
    /// Leads, when there is no lease yet or one that was given up.
    Lead { given_up: bool },
    /// Tells what it did.
    Tell,
}

/// Where it is told that the right is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Condition(&'static str),
    Event(&'static str),
    /// The plan is possible without, and says what could not be read.
    Note(&'static str),
    /// There is no object to tell it at, or no way. The log tells, and the operator is not ready or not leading.
    Log,
}

fn example() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "example-config", "namespace": NAMESPACE},
        "data": {"somebody": "else"},
    })
}

fn some_descheduler() -> Value {
    descheduler(json!({"managementState": "Managed", "deschedulingIntervalSeconds": 60, "profiles": ["LongLifecycle"]}))
}

/// A Deployment of the descheduler or of its operator.
fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": "none"}]}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "openshift-kube-descheduler-operator"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    })
}

fn policy() -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "MachineConfiguration",
        "metadata": {"name": "cluster"},
        "spec": {"managementState": "Managed"},
    })
}

/// What a right is for, and who hears of it when it is missing.
fn purpose(right: &Permission) -> Option<(Deed, Told)> {
    let of_config = |name: &str, plan: Deed, undo: Deed, profile: &'static str, verb: &str| match verb {
        "create" | "patch" => (plan, Told::Condition(profile)),
        "delete" => (undo, Told::Condition(profile)),
        _ => (Deed::Notice(profile, machine_config(name, json!({"kernelArguments": ["a"]}))), Told::Event(profile)),
    };
    Some(match (right.resource, right.name.as_deref(), right.verb) {
        ("virtplatformconfigs", None, "create" | "list" | "watch") => (Deed::Offer, Told::Log),
        ("virtplatformconfigs", None, "get") => (Deed::GoOn, Told::Event(LOAD_AWARE)),
        ("virtplatformconfigs", None, "patch") => (Deed::Describe, Told::Event(LOAD_AWARE)),
        ("virtplatformconfigs/status", None, "update") => (Deed::Offer, Told::Event(LOAD_AWARE)),
        ("virtplatformconfigs/status", None, "patch") => (Deed::Report, Told::Log),
        ("customresourcedefinitions", None, "list" | "watch") => {
            (Deed::Notice(LOAD_AWARE, some_descheduler()), Told::Event(LOAD_AWARE))
        }
        ("customresourcedefinitions", Some("kubedeschedulers.operator.openshift.io"), "get") => {
            (Deed::Plan(LOAD_AWARE), Told::Condition(LOAD_AWARE))
        }
        ("hyperconvergeds", Some("kubevirt-hyperconverged"), "get") => {
            (Deed::Plan(LOAD_AWARE), Told::Condition(LOAD_AWARE))
        }
        ("hyperconvergeds", Some("kubevirt-hyperconverged"), "patch") => {
            (Deed::Plan(DENSITY), Told::Condition(DENSITY))
        }
        ("hyperconvergeds", Some("kubevirt-hyperconverged"), "list" | "watch") => {
            (Deed::Notice(DENSITY, hyper_converged(json!({}))), Told::Event(DENSITY))
        }
        ("machineconfigs", None, "get") => (Deed::Plan(LOAD_AWARE), Told::Condition(LOAD_AWARE)),
        ("machineconfigs", Some(PSI), verb) => {
            of_config(PSI, Deed::Plan(LOAD_AWARE), Deed::Undo(LOAD_AWARE, PSI), LOAD_AWARE, verb)
        }
        ("machineconfigs", Some(SWAP), verb) => {
            of_config(SWAP, Deed::Plan(DENSITY), Deed::Undo(DENSITY, SWAP), DENSITY, verb)
        }
        ("machineconfigpools", None, "list") => (Deed::Plan(LOAD_AWARE), Told::Condition(LOAD_AWARE)),
        ("machineconfigpools", None, "watch") => (Deed::Follow, Told::Event(LOAD_AWARE)),
        ("kubedeschedulers", Some("cluster"), "create" | "get" | "patch") => {
            (Deed::Plan(LOAD_AWARE), Told::Condition(LOAD_AWARE))
        }
        ("kubedeschedulers", Some("cluster"), "list" | "watch") => {
            (Deed::Notice(LOAD_AWARE, some_descheduler()), Told::Event(LOAD_AWARE))
        }
        ("machineconfigurations", Some("cluster"), "get") => (Deed::Plan(DENSITY), Told::Condition(DENSITY)),
        ("machineconfigurations", Some("cluster"), "list" | "watch") => {
            (Deed::Notice(DENSITY, policy()), Told::Event(DENSITY))
        }
        ("configmaps", Some("example-config"), "create" | "get" | "patch") => {
            (Deed::Plan(EXAMPLE), Told::Condition(EXAMPLE))
        }
        ("configmaps", Some("example-config"), "list" | "watch") => {
            (Deed::Notice(EXAMPLE, example()), Told::Event(EXAMPLE))
        }
        ("deployments", Some("descheduler-operator"), "get") => (Deed::Plan(LOAD_AWARE), Told::Note(LOAD_AWARE)),
        ("deployments", Some(name @ ("descheduler-operator" | "descheduler")), _) => {
            (Deed::Notice(LOAD_AWARE, deployment(name)), Told::Log)
        }
        ("clusterversions", Some("version"), "get") => (Deed::PlanBlindly(DENSITY), Told::Note(DENSITY)),
        ("leases", None, "create") => (Deed::Lead { given_up: false }, Told::Log),
        ("leases", Some("virt-advisor-operator"), "get" | "update") => (Deed::Lead { given_up: true }, Told::Log),
        ("events", None, "create") => (Deed::Tell, Told::Log),
        _ => return None,
    })
}

/// Nothing beyond what is needed, and a lack of it is no mystery.
#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_needed_its_lack_is_told_and_its_return_is_noticed() {
    let all = permissions(&access::operator());
    let unused: Vec<String> = all.iter().filter(|right| purpose(right).is_none()).map(ToString::to_string).collect();
    assert!(unused.is_empty(), "nothing breaks without these: {unused:#?}");
    let wanted = std::env::var("RIGHT").unwrap_or_default();
    let all: VecDeque<Permission> = all.into_iter().filter(|right| right.to_string().contains(&wanted)).collect();
    let count = all.len();
    let queue = Mutex::new(all);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let lanes = (0..LANES).map(async |_| {
        let platform = Platform::shared().await;
        platform.operator().await;
        while let Some(right) = next() {
            without(&platform, &right).await;
        }
    });
    join_all(lanes).await;
    println!("{count} permissions were taken away in turn");
}

/// The role that grants a right, without it.
fn role_without(right: &Permission) -> Value {
    let is_it = |role: &&Value| {
        role["metadata"]["name"] == right.role && role["metadata"]["namespace"].as_str() == right.namespace
    };
    let mut role = rbac_documents("role.yaml").iter().find(is_it).unwrap().clone();
    let mut left = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let has = |list: &str, value: &str| rule[list].as_array().is_some_and(|list| list.contains(&value.into()));
        let names = rule["resourceNames"].as_array();
        let is_named = match (&right.name, names) {
            (Some(name), Some(_)) => has("resourceNames", name),
            (name, names) => name.is_none() == names.is_none(),
        };
        if !has("apiGroups", right.group) || !has("resources", right.resource) || !has("verbs", right.verb) || !is_named
        {
            left.push(rule.clone());
            continue;
        }
        // The other verbs of these names, and this verb of the other names.
        let without = |list: &Value, value: &str| -> Vec<Value> {
            list.as_array().unwrap().iter().filter(|entry| *entry != value).cloned().collect()
        };
        let mut verbs = rule.clone();
        verbs["verbs"] = without(&rule["verbs"], right.verb).into();
        left.push(verbs);
        if let Some(name) = &right.name {
            let mut names = rule.clone();
            (names["verbs"], names["resourceNames"]) =
                (json!([right.verb]), without(&rule["resourceNames"], name).into());
            left.push(names);
        }
    }
    left.retain(|rule| rule["verbs"] != json!([]) && rule.get("resourceNames") != Some(&json!([])));
    role["rules"] = left.into();
    role
}

async fn without(platform: &Platform, right: &Permission) {
    let (deed, told) = purpose(right).unwrap();
    platform.tidy_up().await;
    platform.delete(&example()).await;
    for name in ["descheduler", "descheduler-operator"] {
        platform.delete(&deployment(name)).await;
    }
    platform.populate().await;
    let settings = prepare(platform, &deed).await;
    platform.apply("installer", &role_without(right), "").await;
    eventually("the right is gone", async || (!platform.may(OPERATOR, right).await).then_some(())).await;

    let forbidden = platform.forbidden_requests().await;
    let mut operator = RunningOperator::start_with(platform, settings).await;
    begin(platform, &deed).await;
    eventually(&format!("without the right to {right} something is refused"), async || {
        let (resource, _) = right.resource.split_once('/').unwrap_or((right.resource, ""));
        forbidden.list().await.iter().any(|request| request.resource == resource).then_some(())
    })
    .await;
    let said = match told {
        Told::Note(_) => "may not be read".to_owned(),
        _ => format!("cannot {} resource \"{}\"", right.verb, right.resource),
    };
    let what = format!("the lack of the right to {right} is told: {told:?}");
    let hint = eventually(&what, async || texts(platform, told).await.into_iter().find(|text| text.contains(&said)));
    if told != Told::Log {
        let text = hint.await;
        let is_hint = matches!(told, Told::Note(_));
        assert!(is_hint || text.contains("Grant this right") || text.contains("apply its roles again"), "{text}");
    }

    for role in rbac_documents("role.yaml") {
        platform.apply("installer", &role, "").await;
    }
    eventually("the right is back", async || platform.may(OPERATOR, right).await.then_some(())).await;
    finish(platform, right, &deed).await;
    operator.end().await;
    // What else it was refused belongs to the same right.
    let (resource, _) = right.resource.split_once('/').unwrap_or((right.resource, ""));
    let others: Vec<String> =
        forbidden.list().await.iter().filter(|request| request.resource != resource).map(ToString::to_string).collect();
    assert!(others.is_empty(), "without the right to {right} this was refused, too: {others:#?}");
}

/// What conditions or events say.
async fn texts(platform: &Platform, told: Told) -> Vec<String> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    match told {
        Told::Condition(profile) => {
            let config = platform.config(profile).await;
            let conditions = config.pointer("/status/conditions").and_then(Value::as_array).cloned();
            let hold = conditions.into_iter().flatten().filter(|condition| condition["status"] == "True");
            hold.map(|condition| text(&condition, "message")).collect()
        }
        Told::Event(profile) => {
            let events = platform.request("GET", EVENTS, None, Value::Null).await;
            let about = |event: &&Value| event["regarding"]["name"] == profile && event["type"] == "Warning";
            events["items"].as_array().unwrap().iter().filter(about).map(|event| text(event, "note")).collect()
        }
        Told::Note(profile) => {
            let config = platform.config(profile).await;
            let list = |at: &str| config.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
            let notes = list("/status/notes").iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
            notes.into_iter().chain(list("/status/risks").iter().map(|risk| text(risk, "message"))).collect()
        }
        Told::Log => Vec::new(),
    }
}

/// What is there before the operator starts, and how it is started.
async fn prepare(platform: &Platform, deed: &Deed) -> Settings {
    let rhythm = Rhythm { prerequisites: Duration::from_millis(300), ..Rhythm::default() };
    let mut settings = Settings { rhythm, ..Settings::default() };
    match deed {
        Deed::Describe => {
            let mut older = config(LOAD_AWARE, json!({"action": "Ignore"}));
            older["metadata"]["annotations"] = json!({
                "advisor.kubevirt.io/auto-created": "true",
                "advisor.kubevirt.io/description": "older words",
            });
            let uri = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs?fieldManager=virt-advisor-operator";
            platform.request("POST", uri, Some("application/json"), older).await;
        }
        Deed::GoOn => {
            // Stopped in the middle of a write that never arrived: what is recorded need not be recorded again.
            let gate = Gate::closed().await;
            gate.webhook.protect(platform, &some_descheduler()).await;
            let mut operator = RunningOperator::start_with(platform, settings.clone()).await;
            platform.configure(LOAD_AWARE, json!({"action": "Apply", "options": super::life::no_psi()})).await;
            gate.reached().await;
            operator.end().await;
            gate.webhook.lift(platform, &some_descheduler()).await;
        }
        // What it has deployed is asked for where there is an operator.
        Deed::Notice(_, object) if object["metadata"]["name"] == "descheduler" => {
            platform.apply("installer", &deployment("descheduler-operator"), "").await;
        }
        Deed::PlanBlindly(_) => {
            let unknown = json!({"name": "rendered-worker-unknown", "source": []});
            platform.set_pool(json!({"configuration": unknown}), json!({"configuration": unknown})).await;
        }
        Deed::Report => {
            let mut object = config(MAGIC, json!({"action": "Apply"}));
            object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000009".into();
            object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
            object["metadata"]["generation"] = 1.into();
            let key = format!("/registry/advisor.kubevirt.io/virtplatformconfigs/{MAGIC}");
            platform.cluster.store(&key, object.to_string().as_bytes()).await.unwrap();
        }
        Deed::Lead { given_up } => {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": access::LEASE, "namespace": NAMESPACE},
                "spec": {"holderIdentity": "", "leaseTransitions": 0, "leaseDurationSeconds": 1},
            });
            platform.delete(&lease).await;
            if *given_up {
                platform.apply("somebody", &lease, "").await;
            }
            let times = Times {
                duration: Duration::from_secs(15),
                renew: Duration::from_secs(10),
                retry: Duration::from_millis(200),
            };
            settings.lease = Some(LeaseSettings { times, ..LeaseSettings::new(NAMESPACE.to_owned()) });
        }
        _ => {}
    }
    settings
}

/// What somebody wants of the operator.
async fn begin(platform: &Platform, deed: &Deed) {
    match deed {
        Deed::Plan(profile) | Deed::PlanBlindly(profile) | Deed::Notice(profile, _) => {
            platform.configure(profile, json!({"action": "DryRun"})).await;
        }
        Deed::Follow => {
            platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
        }
        Deed::Undo(profile, config) => {
            platform.complete(profile, json!({}), &[config]).await;
            let options = if *profile == DENSITY { super::life::no_swap() } else { super::life::no_psi() };
            platform.configure(profile, json!({"action": "DryRun", "options": options})).await;
        }
        _ => {}
    }
}

/// Now it works, without anybody asking again.
async fn finish(platform: &Platform, right: &Permission, deed: &Deed) {
    match deed {
        Deed::Offer | Deed::Lead { .. } => {
            platform.until_phase(LOAD_AWARE, "Ignored").await;
        }
        Deed::Describe => {
            let said =
                |config: &Value| config["metadata"]["annotations"]["advisor.kubevirt.io/description"] != "older words";
            platform.until(LOAD_AWARE, "described", said).await;
        }
        Deed::GoOn => {
            platform.until_phase(LOAD_AWARE, "Completed").await;
        }
        Deed::Report => {
            platform.until(MAGIC, "told", |config| phase(config) == "Failed").await;
        }
        Deed::Plan(profile) | Deed::PlanBlindly(profile) | Deed::Undo(profile, _) => {
            platform.until_phase(profile, "ReviewRequired").await;
        }
        Deed::Notice(_, object) => {
            // The regular look is minutes away.
            let mut touched = object.clone();
            touched["metadata"]["labels"]["touched"] = "true".into();
            let mark = platform.mark().await;
            platform.apply("somebody", &touched, "").await;
            let name = object["metadata"]["name"].as_str().unwrap();
            eventually(&format!("with the right to {right}, a change of {name} is noticed"), async || {
                let seen = platform.requests_since(mark).await;
                seen.iter().any(|request| request.verb == "get" && request.name == name).then_some(())
            })
            .await;
        }
        Deed::Follow => {
            platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
            platform.roll(&[PSI], 3).await;
            platform.until_phase(LOAD_AWARE, "Completed").await;
        }
        Deed::Tell => {
            platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
            eventually("events come again", async || {
                let events = platform.request("GET", EVENTS, None, Value::Null).await;
                (!events["items"].as_array().unwrap().is_empty()).then_some(())
            })
            .await;
        }
    }
}

/// The roles for people, as the API server judges them.
#[tokio::test(flavor = "multi_thread")]
async fn people_may_do_what_their_roles_say_and_nothing_else() {
    let platform = Platform::shared().await;
    let everything = permissions(&access::people());
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    for role in rbac_documents("user_roles.yaml") {
        platform.apply("installer", &role, "").await;
        let name = role["metadata"]["name"].as_str().unwrap();
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
        });
        platform.apply("installer", &binding, "").await;
        let granted: Vec<&Permission> = everything.iter().filter(|right| right.role == name).collect();
        eventually("the role counts", async || platform.may(name, granted[0]).await.then_some(())).await;
        for resource in ["virtplatformconfigs", "virtplatformconfigs/status", "machineconfigs", "kubedeschedulers"] {
            let group = match resource {
                "machineconfigs" => "machineconfiguration.openshift.io",
                "kubedeschedulers" => "operator.openshift.io",
                _ => "advisor.kubevirt.io",
            };
            for verb in verbs {
                let right = Permission { resource, verb, group, ..granted[0].clone() };
                let expected = granted.iter().any(|known| (known.resource, known.verb) == (resource, verb));
                assert_eq!(platform.may(name, &right).await, expected, "{name}: {right}");
            }
        }
    }
}
