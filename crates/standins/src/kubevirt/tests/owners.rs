use super::*;

fn template(strategy: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"evictionStrategy": strategy, "domain": {}}})
}

fn set(replicas: u64) -> (Kind, DynamicObject) {
    let spec = json!({"replicas": replicas, "template": template("None")});
    (Kind::ReplicaSet, object(json!({"metadata": {"name": "set", "uid": "s"}, "spec": spec})))
}

fn pool(replicas: u64) -> (Kind, DynamicObject) {
    let machine = json!({"spec": {"runStrategy": "Manual", "template": template("None")}});
    let spec = json!({"replicas": replicas, "virtualMachineTemplate": machine});
    (Kind::VirtualMachinePool, object(json!({"metadata": {"name": "pool", "uid": "o"}, "spec": spec})))
}

fn owned(mut object: DynamicObject, name: &str, uid: &str) -> DynamicObject {
    let owner = json!([{"apiVersion": "v", "kind": "k", "name": "x", "uid": uid, "controller": true}]);
    object.metadata.owner_references = serde_json::from_value(owner).unwrap();
    object.metadata.name = Some(name.to_owned());
    object.metadata.uid = Some(name.to_owned());
    object
}

/// A guest of the set, and its pod.
fn member(name: &str, status: Value) -> Vec<(Kind, DynamicObject)> {
    let guest = owned(guest("None", status), name, "s");
    let mut pod = pod(&format!("pod-{name}"), Some("one"), None);
    pod.metadata.labels.as_mut().unwrap().insert("kubevirt.io/created-by".into(), name.into());
    vec![(Kind::Instance, guest), (Kind::Pod, pod)]
}

#[test]
fn a_replica_set_starts_another_guest_as_soon_as_one_shuts_down() {
    let running = json!({"phase": "Running", "nodeName": "one"});
    let start = "starting another guest of n/set";
    assert_eq!(told(100, &[set(2)]), [start, start]);
    let first = next_at(100, &[set(1)]);
    let Write::Create(created) = &first.requests[0].write else { panic!("{first:?}") };
    assert_eq!(created["metadata"]["generateName"], "set", "each has a name of its own");
    assert_eq!(created["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(created["metadata"]["ownerReferences"][0]["kind"], "VirtualMachineInstanceReplicaSet");

    let whole = [vec![set(2)], member("a", running.clone()), member("b", running.clone())].concat();
    assert_eq!(told(100, &whole), [""; 0]);
    let mut shutting_down = whole;
    let since = [("advisor.kubevirt.io/stand-in-since".to_owned(), "1970-01-01T00:01:40Z".to_owned())];
    shutting_down[1].1.metadata.annotations = Some(since.into());
    shutting_down[2].1 = ending(shutting_down[2].1.clone());
    assert_eq!(told(100, &shutting_down), [start]);
    let ended = [vec![set(1)], member("a", json!({"phase": "Succeeded"})), member("b", running.clone())].concat();
    assert_eq!(told(100, &ended), ["removing the end of n/a", "letting go of pod n/pod-a"]);
    let surplus = [vec![set(1)], member("a", running.clone()), member("b", running)].concat();
    assert_eq!(told(100, &surplus), ["stopping n/b"]);
    let mut paused = set(2);
    paused.1.data["spec"]["paused"] = true.into();
    assert_eq!(told(100, &[paused]), [""; 0]);
}

#[test]
fn a_pool_has_machines_that_start_again_by_their_own_run_strategy() {
    let machine = |name: &str, strategy: &str| (Kind::VirtualMachine, owned(machine(strategy), name, "o"));
    assert_eq!(told(0, &[pool(2)]), ["adding n/pool-0", "adding n/pool-1"]);
    let next = next_at(0, &[pool(2), machine("pool-1", "Manual")]);
    assert_eq!(next.requests.len(), 1, "the number that is free: {next:?}");
    let Write::Create(created) = &next.requests[0].write else { panic!("{next:?}") };
    assert_eq!((&created["kind"], &created["metadata"]["name"]), (&json!("VirtualMachine"), &json!("pool-0")));
    assert_eq!(created["metadata"]["ownerReferences"][0]["apiVersion"], "pool.kubevirt.io/v1beta1");
    assert_eq!(created["spec"]["runStrategy"], "Manual");
    assert_eq!(told(0, &[pool(1), machine("pool-0", "RerunOnFailure")]), [""; 0], "its pool does not start it");
    assert_eq!(told(0, &[pool(1), machine("pool-0", "Always")]), ["starting n/pool-0"]);
    assert_eq!(told(0, &[pool(0), machine("pool-0", "Manual")]), ["taking away n/pool-0"]);
}
