mod migrations;
mod owners;

use std::time::Duration;

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{Actions, Answer, Cluster, KubeVirtSettings, Write, answer, cluster::Kind, decide};

fn object(mut object: Value) -> DynamicObject {
    object["metadata"]["namespace"] = "n".into();
    serde_json::from_value(object).unwrap()
}

fn machine(strategy: &str) -> DynamicObject {
    let template = json!({"spec": {"domain": {"memory": {"guest": "1Gi"}}}});
    object(json!({"metadata": {"name": "a", "uid": "m"}, "spec": {"runStrategy": strategy, "template": template}}))
}

/// A guest `a` with the UID `g`.
fn guest(strategy: &str, status: Value) -> DynamicObject {
    object(json!({
        "metadata": {"name": "a", "uid": "g"}, "spec": {"evictionStrategy": strategy, "domain": {}}, "status": status,
    }))
}

fn running(strategy: &str, migratable: &str) -> DynamicObject {
    let conditions = json!([{"type": "LiveMigratable", "status": migratable}]);
    guest(strategy, json!({"phase": "Running", "nodeName": "one", "conditions": conditions}))
}

fn marked() -> DynamicObject {
    let mut guest = running("LiveMigrate", "True");
    guest.data["status"]["evacuationNodeName"] = "one".into();
    guest
}

fn pod(name: &str, node: Option<&str>, job: Option<&str>) -> DynamicObject {
    let mut labels = json!({"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": "g"});
    if let Some(job) = job {
        labels["kubevirt.io/migrationJobUID"] = job.into();
    }
    let metadata = json!({"name": name, "labels": labels, "annotations": {"kubevirt.io/domain": "a"}});
    object(json!({"metadata": metadata, "spec": {"nodeName": node}}))
}

fn ending(mut object: DynamicObject) -> DynamicObject {
    object.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    object
}

fn migration(name: &str, phase: &str, vmi: &str) -> DynamicObject {
    let transitions = json!([{"phase": "Scheduling", "phaseTransitionTimestamp": "1970-01-01T00:01:40Z"}]);
    let state = json!({"sourceNode": "one"});
    object(json!({
        "metadata": {"name": name, "uid": name}, "spec": {"vmiName": vmi},
        "status": {"phase": phase, "phaseTransitionTimestamps": transitions, "migrationState": state},
    }))
}

fn cluster(objects: &[(Kind, DynamicObject)]) -> Cluster {
    let mut cluster = Cluster::default();
    for (kind, object) in objects {
        cluster.objects_mut(*kind).put(object.clone());
    }
    cluster
}

fn settings() -> KubeVirtSettings {
    let (migration, shutdown) = (Duration::from_secs(20), Duration::from_secs(10));
    KubeVirtSettings { migration, shutdown, ..KubeVirtSettings::default() }
}

fn next_at(second: i64, objects: &[(Kind, DynamicObject)]) -> Actions {
    decide(&cluster(objects), Timestamp::from_second(second).unwrap(), &settings())
}

fn told(second: i64, objects: &[(Kind, DynamicObject)]) -> Vec<String> {
    next_at(second, objects).requests.iter().map(ToString::to_string).collect()
}

#[test]
fn a_guest_is_started_in_a_pod_that_the_scheduler_places() {
    use Kind::{Instance, Pod, VirtualMachine};
    assert_eq!(told(0, &[(VirtualMachine, machine("Always"))]), ["starting n/a"]);
    assert_eq!(told(0, &[(VirtualMachine, machine("RerunOnFailure"))]), [""; 0], "nobody starts it again");
    let new = (Instance, guest("None", json!({})));
    assert_eq!(told(0, std::slice::from_ref(&new)), ["creating the pod of n/a"]);
    assert_eq!(told(0, &[new.clone(), (Pod, pod("p", None, None))]), [""; 0], "the scheduler is to act");
    assert_eq!(told(0, &[new, (Pod, pod("p", Some("one"), None))]), ["running n/a"]);
    assert_eq!(told(0, &[(VirtualMachine, machine("Halted")), (Instance, running("None", "True"))])[0], "stopping n/a");
    let adopted = next_at(0, &[(Instance, running("None", "True"))]);
    let Write::Create(created) = &adopted.requests[0].write else { panic!("{adopted:?}") };
    assert_eq!(created["spec"]["nodeName"], "one", "a guest that somebody wrote with its status");
}

#[test]
fn an_evicted_guest_is_shut_down_and_its_machine_decides_whether_it_comes_back() {
    use Kind::{Instance, Pod, VirtualMachine};
    let pod = (Pod, ending(pod("p", Some("one"), None)));
    let mut guest = running("None", "True");
    assert_eq!(told(100, &[(Instance, guest.clone()), pod.clone()]), ["shutting down n/a"]);
    let since = [("advisor.kubevirt.io/stand-in-since".to_owned(), "1970-01-01T00:01:40Z".to_owned())];
    guest.metadata.annotations = Some(since.into());
    let waits = next_at(109, &[(Instance, guest.clone()), pod.clone()]);
    assert_eq!((waits.requests.len(), waits.wake_at), (0, Some(Timestamp::from_second(110).unwrap())));
    assert_eq!(told(110, &[(Instance, guest.clone()), pod.clone()]), ["noting the end of n/a"]);
    guest.data["status"]["phase"] = "Succeeded".into();
    let ended = (Instance, guest);
    assert_eq!(told(110, &[ended.clone(), pod.clone()]), ["letting go of pod n/p"]);
    for strategy in ["RerunOnFailure", "Manual", "Once"] {
        assert_eq!(told(110, &[(VirtualMachine, machine(strategy)), ended.clone()]), [""; 0], "{strategy}");
    }
    assert_eq!(told(110, &[(VirtualMachine, machine("Always")), ended.clone()]), ["removing the end of n/a"]);
    let gone = (Instance, ending(ended.1));
    assert_eq!(told(110, &[(VirtualMachine, machine("Always")), gone, pod.clone()]), [""; 0], "until it is gone");
    assert_eq!(told(110, &[pod]), ["letting go of pod n/p"], "its guest was deleted");
}

#[test]
fn evictions_are_answered_by_strategy_and_migratability() {
    let launcher = pod("p", Some("one"), None);
    let evacuate =
        || Answer::Evacuate { node: "one".into(), message: "Eviction triggered evacuation of VMI \"n/a\"".into() };
    let blocks = || Answer::Deny("VMI a is configured with an eviction strategy but is not live-migratable".into());
    for (strategy, default, migratable, expected) in [
        ("LiveMigrate", None, "True", evacuate()),
        ("LiveMigrate", None, "False", blocks()),
        ("LiveMigrateIfPossible", None, "True", evacuate()),
        ("LiveMigrateIfPossible", None, "False", Answer::Allow),
        ("None", Some("LiveMigrate"), "True", Answer::Allow),
        ("", Some("LiveMigrate"), "True", evacuate()),
        ("", Some("LiveMigrate"), "False", blocks()),
        ("", None, "True", Answer::Allow),
        ("External", None, "False", evacuate()),
    ] {
        let found = answer(&launcher, &running(strategy, migratable), default);
        assert_eq!(found, expected, "{strategy} {default:?} {migratable}");
    }
    let again = Answer::Deny("Evacuation in progress: Eviction triggered evacuation of VMI \"n/a\"".into());
    assert_eq!(answer(&launcher, &marked(), None), again);
    let target = pod("t", Some("two"), Some("m"));
    let denied = Answer::Deny("Eviction request for target Pod".into());
    assert_eq!(answer(&target, &running("LiveMigrate", "True"), None), denied);
}

#[test]
fn a_pod_has_the_labels_of_its_guest_and_a_target_stays_away_from_its_source() {
    let mut guest = running("LiveMigrate", "True");
    guest.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    let own = json!({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"});
    let anti_affinity = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    guest.data["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}});
    let pod = |job: Option<&str>| super::launcher::pod(super::instance_view::InstanceView(&guest), None, job);
    let (first, target) = (pod(None), pod(Some("m")));
    assert_eq!(first["metadata"]["labels"]["app"], "web");
    assert_eq!(first.pointer(anti_affinity), Some(&json!([own])));
    let terms = target.pointer(anti_affinity).unwrap();
    assert_eq!(
        (&terms[0], &terms[1]["labelSelector"]),
        (&own, &json!({"matchLabels": {"kubevirt.io/created-by": "g"}}))
    );
}
