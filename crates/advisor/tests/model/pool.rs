//! The pool of the model, and what it has rendered. There may be a MachineConfig of somebody else in it, which never changes.

use advisor::{Answer, Query};
use serde_json::{Value, json};

use crate::{
    cluster::MEDDLED,
    hashed::Hashed,
    profile::{Part, ROLE, ToyProfile},
};

/// The MachineConfig of somebody else. It has the argument that somebody sets in ours.
const OTHER: &str = "50-other";

/// The pool that is to run `rendered` and runs `rolled_out`: our MachineConfig as text, or none.
pub(crate) fn pool(
    profile: &ToyProfile,
    rendered: Option<&Hashed<String>>,
    rolled_out: Option<&Hashed<String>>,
) -> Value {
    let configuration = |taken_in: Option<&Hashed<String>>| {
        let name = format!("rendered-{}", taken_in.map_or("worker", |it| it.as_str()));
        let sources = profile.has_other_config.then_some(OTHER).into_iter().chain(taken_in.map(|_| Part::Nodes.name()));
        json!({"name": name, "source": sources.map(|name| json!({"name": name})).collect::<Vec<_>>()})
    };
    let is_updated = if rendered == rolled_out { "Updated" } else { "Updating" };
    json!({
        "metadata": {"name": "worker"},
        "spec": {
            "machineConfigSelector": {"matchLabels": {ROLE: "worker"}},
            "configuration": configuration(rendered),
        },
        "status": {
            "configuration": configuration(rolled_out),
            "machineCount": 1, "updatedMachineCount": 1, "readyMachineCount": 1,
            "conditions": [{"type": is_updated, "status": "True"}],
        },
    })
}

/// The answer to a query of a MachineConfig that is not a target.
pub(crate) fn answer(profile: &ToyProfile, query: &Query) -> Answer {
    let (Query::Object(reference) | Query::Optional(reference)) = query else { panic!("{query:?}") };
    let object = match reference.name.strip_prefix("rendered-") {
        Some(content) => rendered(profile, &reference.name, content),
        None if reference.name == OTHER => other(),
        None => panic!("{query:?}"),
    };
    Answer::Object { version: "v1", object }
}

fn other() -> Value {
    json!({"metadata": {"name": OTHER, "labels": {ROLE: "worker"}}, "spec": {"kernelArguments": [MEDDLED]}})
}

/// A rendered config. It never changes, so its name has its content: the arguments of our config, and then the labels.
fn rendered(profile: &ToyProfile, name: &str, content: &str) -> Value {
    let own = serde_json::Deserializer::from_str(content).into_iter::<Value>().next().and_then(Result::ok);
    let own = own.and_then(|own| own.as_array().cloned()).unwrap_or_default();
    let other = profile.has_other_config.then(|| json!(MEDDLED));
    json!({"metadata": {"name": name}, "spec": {"kernelArguments": other.into_iter().chain(own).collect::<Vec<_>>()}})
}
