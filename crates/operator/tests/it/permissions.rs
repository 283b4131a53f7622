//! The permissions of the operator and of people: each one is needed, and none is missing.

mod purpose;
mod steps;

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use advisor::access;
use futures::future::join_all;
use operator::{LeaseSettings, OperatorSettings};
use serde_json::{Value, json};
use testkit::{
    eventually,
    files::rbac_documents,
    platform::Platform,
    rbac::{Permission, permissions},
    running_operator::{OPERATOR, RunningOperator},
};

use purpose::{Report, deployment, example, purpose};
use steps::{begin, finish, prepare};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const CLUSTERS: usize = 3;

/// Takes away one permission at a time.
#[tokio::test(flavor = "multi_thread")]
async fn every_right_is_needed_its_lack_is_told_and_its_return_is_noticed() {
    let all = permissions(&access::operator());
    let unused: Vec<String> =
        all.iter().filter(|permission| purpose(permission).is_none()).map(ToString::to_string).collect();
    assert!(unused.is_empty(), "nothing breaks without these: {unused:#?}");
    let wanted = std::env::var("RIGHT").unwrap_or_default();
    let all: VecDeque<Permission> =
        all.into_iter().filter(|permission| permission.to_string().contains(&wanted)).collect();
    let count = all.len();
    let queue = Mutex::new(all);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let clusters = (0..CLUSTERS).map(async |_| {
        let platform = Platform::shared().await;
        platform.operator().await;
        while let Some(permission) = next() {
            without(&platform, &permission).await;
        }
    });
    join_all(clusters).await;
    println!("{count} permissions were taken away in turn");
}

/// The role that grants a permission, without that permission.
fn role_without(permission: &Permission) -> Value {
    let is_it = |role: &&Value| {
        role["metadata"]["name"] == permission.role && role["metadata"]["namespace"].as_str() == permission.namespace
    };
    let mut role = rbac_documents("role.yaml").iter().find(is_it).unwrap().clone();
    let mut left = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let has = |list: &str, value: &str| rule[list].as_array().is_some_and(|list| list.contains(&value.into()));
        let names = rule["resourceNames"].as_array();
        let is_named = match (&permission.name, names) {
            (Some(name), Some(_)) => has("resourceNames", name),
            (name, names) => name.is_none() == names.is_none(),
        };
        if !has("apiGroups", permission.group)
            || !has("resources", permission.resource)
            || !has("verbs", permission.verb)
            || !is_named
        {
            left.push(rule.clone());
            continue;
        }
        // The other verbs of these names, and this verb of the other names.
        let without = |list: &Value, value: &str| -> Vec<Value> {
            list.as_array().unwrap().iter().filter(|entry| *entry != value).cloned().collect()
        };
        let mut verbs = rule.clone();
        verbs["verbs"] = without(&rule["verbs"], permission.verb).into();
        left.push(verbs);
        if let Some(name) = &permission.name {
            let mut names = rule.clone();
            (names["verbs"], names["resourceNames"]) =
                (json!([permission.verb]), without(&rule["resourceNames"], name).into());
            left.push(names);
        }
    }
    left.retain(|rule| rule["verbs"] != json!([]) && rule.get("resourceNames") != Some(&json!([])));
    role["rules"] = left.into();
    role
}

async fn without(platform: &Platform, permission: &Permission) {
    let (task, report) = purpose(permission).unwrap();
    platform.tidy_up().await;
    platform.delete(&example()).await;
    for name in ["descheduler", "descheduler-operator"] {
        platform.delete(&deployment(name)).await;
    }
    platform.populate().await;
    let settings = prepare(platform, &task).await;
    platform.apply("installer", &role_without(permission), "").await;
    eventually("the right is gone", async || (!platform.may(OPERATOR, permission).await).then_some(())).await;

    let forbidden = platform.forbidden_requests().await;
    let mut operator = RunningOperator::start_with(platform, settings).await;
    begin(platform, &task).await;
    eventually(&format!("without the right to {permission} something is refused"), async || {
        let (resource, _) = permission.resource.split_once('/').unwrap_or((permission.resource, ""));
        forbidden.list().await.iter().any(|request| request.resource == resource).then_some(())
    })
    .await;
    let said = match report {
        Report::Note(_) => "may not be read".to_owned(),
        _ => format!("cannot {} resource \"{}\"", permission.verb, permission.resource),
    };
    let what = format!("the lack of the right to {permission} is told: {report:?}");
    let hint = eventually(&what, async || texts(platform, report).await.into_iter().find(|text| text.contains(&said)));
    if report != Report::Log {
        let text = hint.await;
        let is_hint = matches!(report, Report::Note(_));
        assert!(is_hint || text.contains("Grant this right") || text.contains("apply its roles again"), "{text}");
    }

    for role in rbac_documents("role.yaml") {
        platform.apply("installer", &role, "").await;
    }
    eventually("the right is back", async || platform.may(OPERATOR, permission).await.then_some(())).await;
    finish(platform, permission, &task).await;
    operator.end().await;
    // Everything else that was forbidden belongs to the same permission.
    let (resource, _) = permission.resource.split_once('/').unwrap_or((permission.resource, ""));
    let others: Vec<String> =
        forbidden.list().await.iter().filter(|request| request.resource != resource).map(ToString::to_string).collect();
    assert!(others.is_empty(), "without the right to {permission} this was refused, too: {others:#?}");
}

/// Without configurations no reconciler runs, so only readiness and metrics can tell people.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_may_not_list_configurations_counts_errors_and_is_not_ready_although_it_leads() {
    let platform = Platform::shared().await;
    platform.operator().await;
    let is_list = |permission: &Permission| (permission.resource, permission.verb) == ("virtplatformconfigs", "list");
    let permission = permissions(&access::operator()).into_iter().find(is_list).unwrap();
    platform.apply("installer", &role_without(&permission), "").await;
    eventually("the right is gone", async || (!platform.may(OPERATOR, &permission).await).then_some(())).await;
    let lease = Some(LeaseSettings::new(access::NAMESPACE.into()));
    let settings = OperatorSettings { lease, ..OperatorSettings::default() };
    let (readiness, metrics) = (settings.readiness.clone(), settings.metrics.clone());
    let mut operator = RunningOperator::start_with(&platform, settings).await;
    let counted = "kubevirt_advisor_reconcile_errors_total{class=\"Forbidden\"}";
    eventually("errors are counted, and it is not ready", async || {
        let text = metrics.encode().unwrap();
        (text.contains(counted) && text.contains("kubevirt_advisor_leader 1") && !readiness.is_ready()).then_some(())
    })
    .await;
    for role in rbac_documents("role.yaml") {
        platform.apply("installer", &role, "").await;
    }
    eventually("it is ready", async || readiness.is_ready().then_some(())).await;
    operator.end().await;
}

/// The texts of conditions, events or notes.
async fn texts(platform: &Platform, report: Report) -> Vec<String> {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    match report {
        Report::Condition(profile) => {
            let config = platform.config(profile).await;
            let conditions = config.pointer("/status/conditions").and_then(Value::as_array).cloned();
            let hold = conditions.into_iter().flatten().filter(|condition| condition["status"] == "True");
            hold.map(|condition| text(&condition, "message")).collect()
        }
        Report::Event(profile) => {
            let events = platform.request("GET", EVENTS, None, Value::Null).await;
            let about = |event: &&Value| event["regarding"]["name"] == profile && event["type"] == "Warning";
            events["items"].as_array().unwrap().iter().filter(about).map(|event| text(event, "note")).collect()
        }
        Report::Note(profile) => {
            let config = platform.config(profile).await;
            let list = |at: &str| config.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
            let notes = list("/status/notes").iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
            notes.into_iter().chain(list("/status/risks").iter().map(|risk| text(risk, "message"))).collect()
        }
        Report::Log => Vec::new(),
    }
}

/// The roles for people, by SubjectAccessReviews.
#[tokio::test(flavor = "multi_thread")]
async fn people_may_do_what_their_roles_say_and_nothing_else() {
    let platform = Platform::shared().await;
    let everything = permissions(&access::people());
    let verbs =
        ["approve", "bypass", "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
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
        let granted: Vec<&Permission> = everything.iter().filter(|permission| permission.role == name).collect();
        eventually("the role counts", async || platform.may(name, granted[0]).await.then_some(())).await;
        for resource in [
            "virtplatformconfigs",
            "virtplatformconfigs/status",
            "virtplatformplanrecords",
            "virtplatformplanrecords/status",
            "machineconfigs",
            "kubedeschedulers",
        ] {
            let group = match resource {
                "machineconfigs" => "machineconfiguration.openshift.io",
                "kubedeschedulers" => "operator.openshift.io",
                _ => "advisor.kubevirt.io",
            };
            for verb in verbs {
                let permission = Permission { resource, verb, group, ..granted[0].clone() };
                let expected = granted.iter().any(|known| (known.resource, known.verb) == (resource, verb));
                assert_eq!(platform.may(name, &permission).await, expected, "{name}: {permission}");
            }
        }
    }
}
