//! Who starts guests: VirtualMachines, the pools that create these, and replica sets, which have guests of their own.

use kube::{ResourceExt, api::DynamicObject};
use kube_io::ObjectKey;
use serde_json::{Value, json};

use super::{
    Actions, Cluster, Write,
    cluster::Kind,
    instance_view::{InstanceView, is_ending, owner},
};

pub(super) fn run_owners(cluster: &Cluster, actions: &mut Actions) {
    for pool in acting(cluster, Kind::VirtualMachinePool) {
        fill_pool(cluster, pool, actions);
    }
    for set in acting(cluster, Kind::ReplicaSet) {
        fill_set(cluster, set, actions);
    }
    for machine in acting(cluster, Kind::VirtualMachine) {
        run_machine(cluster, machine, actions);
    }
}

fn acting(cluster: &Cluster, kind: Kind) -> impl Iterator<Item = &DynamicObject> {
    let is_paused = |object: &DynamicObject| object.data.pointer("/spec/paused") == Some(&Value::Bool(true));
    cluster.objects(kind).iter().filter(move |object| !is_ending(object) && !is_paused(object))
}

fn owned<'a>(cluster: &'a Cluster, kind: Kind, owner: &DynamicObject) -> impl Iterator<Item = &'a DynamicObject> {
    let uid = owner.uid();
    let is_own = move |object: &&DynamicObject| {
        let mut owners = object.owner_references().iter();
        !is_ending(object) && owners.any(|it| it.controller == Some(true) && Some(&it.uid) == uid.as_ref())
    };
    cluster.objects(kind).iter().filter(is_own)
}

fn replicas(owner: &DynamicObject) -> usize {
    let replicas = owner.data.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    usize::try_from(replicas).unwrap_or(usize::MAX)
}

fn delete(doing: &str, kind: Kind, object: &DynamicObject, actions: &mut Actions) {
    actions.request(doing, kind, ObjectKey::of(object), Write::Delete(object.uid().unwrap_or_default()));
}

/// The VM controller: starts what always has to run, and stops what has to be off. Nobody starts anything else again.
fn run_machine(cluster: &Cluster, machine: &DynamicObject, actions: &mut Actions) {
    let strategy = machine.data.pointer("/spec/runStrategy").and_then(Value::as_str);
    let older = match machine.data.pointer("/spec/running").and_then(Value::as_bool) {
        Some(true) => "Always",
        Some(false) => "Halted",
        None => "",
    };
    let key = ObjectKey::of(machine);
    let guest = cluster.objects(Kind::Instance).find(&key.namespace, &key.name);
    match (strategy.unwrap_or(older), guest) {
        ("Always", None) => {
            let guest = from_template(machine, "VirtualMachine", "/spec/template", json!({"name": key.name}));
            actions.request("starting", Kind::Instance, key, Write::Create(guest));
        }
        // What is being deleted is not asked for again.
        (_, Some(guest)) if is_ending(guest) => {}
        ("Always", Some(guest)) if InstanceView(guest).is_final() => {
            delete("removing the end of", Kind::Instance, guest, actions);
        }
        ("Halted", Some(guest)) => delete("stopping", Kind::Instance, guest, actions),
        _ => {}
    }
}

/// The replica set controller. A guest that shuts down does not count any more, so another one is started at once.
fn fill_set(cluster: &Cluster, set: &DynamicObject, actions: &mut Actions) {
    let own = || owned(cluster, Kind::Instance, set).map(InstanceView);
    own().filter(|guest| guest.is_final()).for_each(|guest| {
        delete("removing the end of", Kind::Instance, guest.0, actions);
    });
    let running = || own().filter(|guest| !guest.is_final() && guest.stopping_since().is_none());
    let (count, wanted) = (running().count(), replicas(set));
    for _ in count..wanted {
        let guest = from_template(
            set,
            "VirtualMachineInstanceReplicaSet",
            "/spec/template",
            json!({"generateName": set.name_any()}),
        );
        actions.request("starting another guest of", Kind::Instance, ObjectKey::of(set), Write::Create(guest));
    }
    running().skip(wanted).for_each(|guest| delete("stopping", Kind::Instance, guest.0, actions));
}

/// The pool controller: it creates VirtualMachines, and their own run strategy decides whether they are started again.
fn fill_pool(cluster: &Cluster, pool: &DynamicObject, actions: &mut Actions) {
    let own: Vec<&DynamicObject> = owned(cluster, Kind::VirtualMachine, pool).collect();
    let wanted = replicas(pool);
    let namespace = pool.namespace().unwrap_or_default();
    let name =
        |number: usize| ObjectKey { namespace: namespace.clone(), name: format!("{}-{number}", pool.name_any()) };
    let is_free = |key: &ObjectKey| cluster.objects(Kind::VirtualMachine).find(&key.namespace, &key.name).is_none();
    for key in (0..).map(name).filter(is_free).take(wanted.saturating_sub(own.len())) {
        let machine =
            from_template(pool, "VirtualMachinePool", "/spec/virtualMachineTemplate", json!({"name": key.name}));
        actions.request("adding", Kind::VirtualMachine, key, Write::Create(machine));
    }
    own.into_iter().skip(wanted).for_each(|machine| delete("taking away", Kind::VirtualMachine, machine, actions));
}

/// What an owner creates from its template: a guest, or a VirtualMachine.
fn from_template(from: &DynamicObject, kind: &str, template: &str, mut metadata: Value) -> Value {
    let template = from.data.pointer(template).unwrap_or(&Value::Null);
    let (version, created) = match kind {
        "VirtualMachinePool" => (Kind::VirtualMachinePool.resource().api_version, "VirtualMachine"),
        _ => (Kind::VirtualMachine.resource().api_version, "VirtualMachineInstance"),
    };
    metadata["namespace"] = json!(from.namespace());
    metadata["labels"] = template["metadata"]["labels"].clone();
    metadata["annotations"] = template["metadata"]["annotations"].clone();
    metadata["ownerReferences"] = json!([owner(from, kind, &version)]);
    json!({"apiVersion": "kubevirt.io/v1", "kind": created, "metadata": metadata, "spec": template["spec"]})
}
