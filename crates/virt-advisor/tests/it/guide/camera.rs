//! Everything that a watch shows of one profile, state by state, to be looked at afterwards.

use devcluster::RunningProgram;
use serde_json::{Deserializer, Value};

use super::{stage::Stage, terminal::shown};

/// A watch that runs.
pub(crate) struct Camera(RunningProgram);

impl Camera {
    /// Returns when it has seen how things are.
    pub(crate) async fn start(stage: &Stage, profile: &str) -> Camera {
        let command = format!("kubectl get virtplatformconfig {profile} --watch -o json");
        let camera = Camera(stage.terminal.start(stage.cluster.access(), &command).await);
        camera.until(|states| !states.is_empty()).await;
        camera
    }

    /// Everything up to a state that was seen elsewhere, which it waits for.
    pub(crate) async fn up_to(&self, last: &Value) -> Vec<Value> {
        let version = &last["metadata"]["resourceVersion"];
        let position =
            |states: &[Value]| states.iter().position(|state| &state["metadata"]["resourceVersion"] == version);
        let mut states = self.until(|states| position(states).is_some()).await;
        states.truncate(position(&states).unwrap() + 1);
        states
    }

    async fn until(&self, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        // The last one may be half written.
        let states =
            |text: &str| -> Vec<Value> { Deserializer::from_str(text).into_iter().map_while(Result::ok).collect() };
        states(&shown(&self.0, |text| is_enough(&states(text))).await)
    }
}

/// The phases that were gone through.
pub(crate) fn phases(states: &[Value]) -> Vec<&str> {
    let mut phases: Vec<_> = states.iter().map(|state| state["status"]["phase"].as_str().unwrap_or("none")).collect();
    phases.dedup();
    phases
}

/// What an item said, each time it said something new.
pub(crate) fn messages<'a>(states: &'a [Value], item: &str) -> Vec<&'a str> {
    let message = |state: &'a Value| {
        let mut items = state["status"]["items"].as_array().into_iter().flatten();
        items.find(|found| found["name"] == item).and_then(|item| item["message"].as_str())
    };
    let mut messages: Vec<_> = states.iter().filter_map(message).collect();
    messages.dedup();
    messages
}
