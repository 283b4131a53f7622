//! Records every state of a configuration that a watch shows, for the test to read afterwards.

use devcluster::RunningProgram;
use serde_json::{Deserializer, Value};

use super::{terminal::shown, test_cluster::TestCluster};

/// A watch of one configuration, which runs until this is dropped.
pub(crate) struct Recorder(RunningProgram);

impl Recorder {
    /// Returns when the watch has shown the current state.
    pub(crate) async fn start(cluster: &TestCluster, profile: &str) -> Recorder {
        let command = format!("kubectl get virtplatformconfig {profile} --watch -o json");
        let recorder = Recorder(cluster.terminal.start(cluster.control_plane.access(), &command).await);
        recorder.until(|states| !states.is_empty()).await;
        recorder
    }

    /// All states up to one that the test has read itself. Waits for it.
    pub(crate) async fn up_to(&self, last: &Value) -> Vec<Value> {
        let version = &last["metadata"]["resourceVersion"];
        let position =
            |states: &[Value]| states.iter().position(|state| &state["metadata"]["resourceVersion"] == version);
        let mut states = self.until(|states| position(states).is_some()).await;
        states.truncate(position(&states).unwrap() + 1);
        states
    }

    async fn until(&self, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        // The last state may be incomplete.
        let states =
            |text: &str| -> Vec<Value> { Deserializer::from_str(text).into_iter().map_while(Result::ok).collect() };
        states(&shown(&self.0, |text| is_enough(&states(text))).await)
    }
}

/// The phases of these states, without repetitions.
pub(crate) fn phases(states: &[Value]) -> Vec<&str> {
    let mut phases: Vec<_> = states.iter().map(|state| state["status"]["phase"].as_str().unwrap_or("none")).collect();
    phases.dedup();
    phases
}

/// The messages of an item, without repetitions.
pub(crate) fn messages<'a>(states: &'a [Value], item: &str) -> Vec<&'a str> {
    let message = |state: &'a Value| {
        let mut items = state["status"]["items"].as_array().into_iter().flatten();
        items.find(|found| found["name"] == item).and_then(|item| item["message"].as_str())
    };
    let mut messages: Vec<_> = states.iter().filter_map(message).collect();
    messages.dedup();
    messages
}
