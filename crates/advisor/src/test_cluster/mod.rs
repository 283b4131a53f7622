//! An in-memory cluster for the tests of this crate and of others: it answers the queries of a profile and previews its intents.
//! Its server-side apply covers what plans depend on: maps are merged field by field, lists and atomic maps as a whole, defaults come
//! from the schema, and `managedFields` has the owners.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod arbitrary;
mod changes;
pub mod damage;
mod definitions;
pub mod records;
pub mod server_side_apply;
pub mod sharing;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs,
    path::Path,
    sync::Mutex,
};

use crate::{
    Answer, Change, Draft, Facts, Intent, Kind, ObjectRef, Plan, PlannedItem, Planner, Preview, PreviewOutcome,
    Profile, ProfileInfo, Query, Refusal, field_manager, fields,
    fingerprint::sha256,
    kernel_arguments,
    kind::{CUSTOM_RESOURCE_DEFINITION, HYPER_CONVERGED},
    profiles,
};
use api::{names::FIELD_MANAGER, virt_platform_config::Options};
use serde_json::{Value, json};

pub use definitions::{spec_schema, stored, unknown_fields};

pub const ROLE: &str = "machineconfiguration.openshift.io/role";

/// The documents of a YAML file of this repository, parsed only once, because that is slow.
pub fn documents(file: &str) -> Vec<Value> {
    static READ: Mutex<BTreeMap<String, Vec<Value>>> = Mutex::new(BTreeMap::new());
    READ.lock().unwrap().entry(file.to_owned()).or_insert_with(|| read(file)).clone()
}

fn read(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The definition of a third party's kind, as `kubedescheduler-5.1`.
pub fn definition(name: &str) -> Value {
    documents(&format!("config/crd/third-party/{name}.yaml")).remove(0)
}

/// A sample object of a third party.
pub fn sample(name: &str) -> Value {
    documents(&format!("config/samples/third-party/{name}.yaml")).remove(0)
}

pub fn options(value: Value) -> Option<Options> {
    serde_json::from_value(value).unwrap()
}

pub fn planner(profile: &str, given: Value) -> Box<dyn Planner> {
    profiles::find(profile).unwrap().resolve(options(given).as_ref()).unwrap()
}

/// A pool that selects the configs of these roles, and whose nodes run `rendered-<name>`.
pub fn pool(name: &str, roles: &[&str], nodes: i32) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": name},
        "spec": {"machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": roles}]}},
        "status": {"configuration": {"name": format!("rendered-{name}"), "source": []}, "machineCount": nodes},
    })
}

pub fn machine_config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"labels": {ROLE: "worker"}, "name": name},
        "spec": spec,
    })
}

/// A rendered config of OpenShift 4.21 with these arguments.
pub fn rendered(name: &str, arguments: &[&str]) -> Value {
    let mut spec = rendered_kubelet(true);
    spec["kernelArguments"] = json!(arguments);
    machine_config(name, spec)
}

/// The kubelet's part of a rendered config. Since 4.21 the kubelet allows swap and reads a folder of further settings.
pub fn rendered_kubelet(accepts_swap: bool) -> Value {
    let (unit, source) = match accepts_swap {
        true => (
            "--config=/etc/kubernetes/kubelet.conf --config-dir=/etc/openshift/kubelet.conf.d",
            "data:,failSwapOn%3A%20false%0A",
        ),
        false => ("--config=/etc/kubernetes/kubelet.conf", "data:,maxPods%3A%20250%0A"),
    };
    let unit = format!("[Service]\nExecStart=/usr/bin/kubelet {unit}\n");
    let settings = json!({"path": "/etc/kubernetes/kubelet.conf", "contents": {"source": source}});
    json!({"config": {"storage": {"files": [settings]}, "systemd": {"units": [{"name": "kubelet.service", "contents": unit}]}}})
}

/// A rendered config of OpenShift 4.21 that is merged from these configs as the machine config operator does it: arguments one after
/// another, files and units by their keys. Its name follows from its content.
pub fn merged<'a>(configs: impl IntoIterator<Item = &'a Value>) -> Value {
    let mut spec = rendered_kubelet(true);
    spec["kernelArguments"] = json!([]);
    for config in configs {
        let arguments = kernel_arguments::entries(config).map(Value::from);
        spec["kernelArguments"].as_array_mut().unwrap().extend(arguments);
        for (list, key) in [("/config/storage/files", "path"), ("/config/systemd/units", "name")] {
            let entries = config.pointer(&format!("/spec{list}")).and_then(Value::as_array).cloned();
            let merged = spec.pointer_mut(list).and_then(Value::as_array_mut).unwrap();
            for entry in entries.unwrap_or_default() {
                merged.retain(|known| known[key] != entry[key]);
                merged.push(entry);
            }
        }
    }
    machine_config(&format!("rendered-worker-{}", &sha256(&spec)[..12]), spec)
}

/// The object as if a field manager had set its labels, annotations and everything below `spec` and `data`.
pub fn set_by(manager: &str, operation: &str, mut object: Value) -> Value {
    server_side_apply::record(&mut object, manager, operation);
    object
}

/// The object as an earlier version applied it, when all profiles shared one field manager.
pub fn ours(object: Value) -> Value {
    set_by(FIELD_MANAGER, "Apply", object)
}

#[derive(Clone, Default)]
pub struct TestCluster {
    objects: Vec<Value>,
    missing: BTreeSet<&'static Kind>,
    /// HyperConverged is served as v1 only.
    v1_only: bool,
    /// A webhook denies every change.
    pub denies: bool,
}

/// The objects, without definitions.
impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.objects.iter().filter(|object| object["kind"] != CUSTOM_RESOURCE_DEFINITION.kind);
        objects.into_iter().try_for_each(|object| write!(f, "\n{object}"))
    }
}

impl TestCluster {
    /// All kinds are served, and there are no objects.
    pub fn empty() -> Self {
        TestCluster::default()
    }

    /// Updated pools `master` and `worker` with three nodes each, and this version of the descheduler operator.
    pub fn with_descheduler(version: &str) -> Self {
        TestCluster::empty()
            .with(definition(&format!("kubedescheduler-{version}")))
            .with(pool("master", &["master"], 3))
            .with(pool("worker", &["worker"], 3))
            .with(rendered("rendered-worker", &["psi=0"]))
    }

    /// Adds an object, or replaces the one of its name.
    pub fn with(mut self, object: Value) -> Self {
        self.put(object);
        self
    }

    pub fn put(&mut self, object: Value) {
        self.objects.retain(|known| !same(known, &object));
        self.objects.push(object);
    }

    pub fn without(mut self, kind: &'static Kind) -> Self {
        self.missing.insert(kind);
        self
    }

    /// The same objects, with the served kinds of another cluster.
    pub fn serving(mut self, other: &TestCluster) -> Self {
        self.missing.clone_from(&other.missing);
        self
    }

    pub fn serving_v1_only(mut self) -> Self {
        self.v1_only = true;
        self
    }

    pub fn version(&self, kind: &'static Kind) -> &'static str {
        if self.v1_only && *kind == HYPER_CONVERGED { "v1" } else { kind.versions[0] }
    }

    pub fn find(&self, kind: &Kind, namespace: Option<&str>, name: &str) -> Option<&Value> {
        self.objects.iter().find(|object| {
            let metadata = &object["metadata"];
            object["kind"] == kind.kind && metadata["name"] == name && metadata["namespace"].as_str() == namespace
        })
    }

    pub fn answer(&self, query: &Query) -> Answer {
        match query {
            query if self.missing.contains(query.kind()) => Answer::KindMissing,
            Query::Object(reference) | Query::Optional(reference) => {
                let version = self.version(reference.kind);
                match self.find(reference.kind, reference.namespace, &reference.name) {
                    Some(object) => query.needed(Answer::Object { version, object: object.clone() }),
                    None => Answer::Absent { version },
                }
            }
            Query::List(kind) => {
                let items = self.objects.iter().filter(|object| object["kind"] == kind.kind).cloned().collect();
                Answer::List { version: self.version(kind), items }
            }
        }
    }

    /// Answers queries until everything wanted is known. Returns the queries of each round.
    pub fn rounds(&self, planner: &dyn Planner) -> (Vec<Vec<String>>, Facts) {
        let (mut facts, mut rounds) = (Facts::default(), Vec::new());
        loop {
            let queries = facts.unanswered(planner.wants(&facts));
            if queries.is_empty() {
                return (rounds, facts);
            }
            assert!(rounds.len() < 5, "there is no end to it: {queries:?}");
            assert_eq!(queries.iter().collect::<BTreeSet<_>>().len(), queries.len(), "asked twice: {queries:?}");
            rounds.push(queries.iter().map(spoken).collect());
            for query in queries {
                let answer = self.answer(&query);
                facts.insert(query, answer);
            }
        }
    }

    pub fn facts(&self, planner: &dyn Planner) -> Facts {
        self.rounds(planner).1
    }

    pub fn draft(&self, profile: &str, given: Value) -> Draft {
        let planner = planner(profile, given);
        planner.plan(&self.facts(planner.as_ref()))
    }

    /// The result of a dry run.
    pub fn preview(&self, about: &ProfileInfo, intent: &Intent) -> Preview {
        let live = self.find(intent.target.kind, intent.target.namespace, &intent.target.name);
        if self.denies {
            let refusal = Refusal::Webhook { target: intent.target.to_string(), message: "frozen".into() };
            return Preview { live: live.cloned(), outcome: PreviewOutcome::Refused(refusal), takes_over: Vec::new() };
        }
        match &intent.change {
            Change::Delete => Preview { live: live.cloned(), outcome: PreviewOutcome::Gone, takes_over: Vec::new() },
            Change::Apply { fields, remove } => {
                let manager = intent.field_manager(about, live);
                let (object, takes_over) = self.applied(&intent.target, intent.version, fields, remove, &manager);
                Preview { live: live.cloned(), outcome: PreviewOutcome::Object(object), takes_over }
            }
        }
    }

    /// The schema of a kind, if its definition exists.
    fn schema(&self, kind: &'static Kind, version: &str) -> Option<&Value> {
        let name = format!("{}.{}", kind.plural, kind.group);
        let definition = self.find(&CUSTOM_RESOURCE_DEFINITION, None, &name)?;
        let versions = definition.pointer("/spec/versions")?.as_array()?;
        versions.iter().find(|found| found["name"] == version)?.pointer("/schema/openAPIV3Schema")
    }

    pub fn plan(&self, profile: &str, given: Value) -> Plan {
        self.plan_of(profiles::find(profile).unwrap(), given)
    }

    pub fn plan_of(&self, profile: &dyn Profile, given: Value) -> Plan {
        self.plan_by(profile.about(), profile.resolve(options(given).as_ref()).unwrap().as_ref())
    }

    pub fn plan_by(&self, about: &'static ProfileInfo, planner: &dyn Planner) -> Plan {
        let facts = self.facts(planner);
        let draft = planner.plan(&facts);
        let previews = draft.intents.iter().map(|intent| self.preview(about, intent)).collect();
        Plan::assemble(about, draft, previews, facts)
    }

    /// Applies one item of a plan, and returns the object afterwards.
    pub fn carry_out(&mut self, planned: &PlannedItem) -> Option<Value> {
        let (reference, item) = (&planned.target, &planned.item);
        let live = self.find(reference.kind, reference.namespace, &reference.name).cloned();
        let Some(desired) = &item.desired_state else {
            self.objects.retain(|known| Some(known) != live.as_ref());
            return None;
        };
        let removes: Vec<_> = item.removes.iter().map(|path| fields::Path::parsed(path)).collect();
        let manager = field_manager::of_item(item);
        let (mut object, _) = self.applied(reference, planned.version, &json!(desired), &removes, manager);
        if planned.restores {
            for at in fields::entries_of(&object, manager).into_iter().rev() {
                object["metadata"]["managedFields"].as_array_mut().unwrap().remove(at);
            }
        }
        self.put(object.clone());
        Some(object)
    }

    /// Somebody else sets or removes a field.
    pub fn edit(&mut self, kind: &'static Kind, name: &str, path: &[&str], value: Option<Value>) {
        let same = |object: &&mut Value| object["kind"] == kind.kind && object["metadata"]["name"] == name;
        let Some(object) = self.objects.iter_mut().find(same) else { return };
        let (last, parents) = path.split_last().unwrap();
        let parent = parents.iter().fold(&mut *object, |value, name| &mut value[name]);
        match value {
            Some(value) => parent[last] = value,
            None => {
                parent.as_object_mut().unwrap().remove(*last);
            }
        }
        server_side_apply::disown(object, &format!("/{}", path.join("/")));
    }

    /// The object that a reference names.
    pub fn found(&self, target: &ObjectRef) -> Option<&Value> {
        self.find(target.kind, target.namespace, &target.name)
    }

    /// Somebody else deletes an object.
    pub fn delete(&mut self, kind: &'static Kind, name: &str) {
        self.objects.retain(|object| object["kind"] != kind.kind || object["metadata"]["name"] != name);
    }

    /// Applies everything that the profile intends.
    pub fn apply(&mut self, profile: &str, given: Value) {
        let about = profiles::find(profile).unwrap().about();
        for intent in self.draft(profile, given).intents {
            match self.preview(about, &intent) {
                Preview { outcome: PreviewOutcome::Object(object), .. } => self.put(object),
                Preview { outcome: PreviewOutcome::Gone, live: Some(live), .. } => {
                    self.objects.retain(|known| *known != live)
                }
                Preview { .. } => {}
            }
        }
    }
}

fn same(a: &Value, b: &Value) -> bool {
    let key = |object: &Value| {
        let metadata = &object["metadata"];
        (object["kind"].clone(), metadata["namespace"].clone(), metadata["name"].clone())
    };
    key(a) == key(b)
}

/// A query as text.
fn spoken(query: &Query) -> String {
    match query {
        Query::List(kind) => format!("all {}", kind.plural),
        query => query.to_string(),
    }
}
