//! What was collected and what was not, with the reason: `index.json` for programs, `summary.txt` for people.

use kube_io::{Class, RequestError};
use serde::Serialize;
use serde_json::Value;

use crate::{
    prose::{hanging, indented, outdented},
    reader::why,
};

/// The summary is a file, and whoever reads it may have a small terminal.
const WIDTH: usize = 80;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    Collected,
    /// There is no such object.
    Absent,
    Unreadable,
}

/// One thing that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    pub(crate) what: String,
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// Why it was not collected, and in which words the API server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl Entry {
    pub(crate) fn collected(what: String, path: String) -> Self {
        Entry { what, state: State::Collected, path: Some(path), reason: None, message: None }
    }

    pub(crate) fn absent(what: String) -> Self {
        Entry { what, state: State::Absent, path: None, reason: None, message: None }
    }

    pub(crate) fn failed(what: String, error: &RequestError) -> Self {
        match error.class.is_absent() {
            true => Entry { reason: Some(why(&error.class)), ..Entry::absent(what) },
            false => Entry {
                what,
                state: State::Unreadable,
                path: None,
                reason: Some(why(&error.class)),
                message: Some(error.message.clone()),
            },
        }
    }

    /// For what must be there: whatever the answer was, something is missing.
    pub(crate) fn refused(what: String, error: &RequestError) -> Self {
        Entry { state: State::Unreadable, message: Some(error.message.clone()), ..Entry::failed(what, error) }
    }

    pub(crate) fn unreadable(what: String, message: &str) -> Self {
        let message = Some(message.to_owned());
        Entry { what, state: State::Unreadable, path: None, reason: None, message }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) collected_at: String,
    pub(crate) client: &'static str,
    /// Of the API server.
    pub(crate) server: Option<String>,
    /// By the statuses of the configurations.
    pub(crate) operators: Vec<String>,
    pub(crate) namespace: String,
    pub(crate) entries: Vec<Entry>,
}

impl Index {
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.entries.iter().filter(|entry| entry.state == state).count()
    }

    /// The summary; `configs` are the configurations as they were read.
    pub(crate) fn summary(&self, configs: &[Value]) -> String {
        let mut text = format!("virt-advisor gather, {}\n\n", self.collected_at);
        text += &format!("client       {}\n", self.client);
        text += &format!("API server   {}\n", self.server.as_deref().unwrap_or("version unknown"));
        let operators =
            if self.operators.is_empty() { "version unknown".to_owned() } else { self.operators.join(", ") };
        text += &hanging("operator", &format!("{operators}, looked for in namespace {}", self.namespace), 13, WIDTH);
        text += "\nConfigurations\n";
        if configs.is_empty() {
            text += "  none\n";
        }
        text.extend(configs.iter().map(line));
        text += &format!(
            "\nCollected {}, not there {}, could not be read {}.\n",
            self.count(State::Collected),
            self.count(State::Absent),
            self.count(State::Unreadable),
        );
        for (state, title) in
            [(State::Unreadable, "Could not be read"), (State::Absent, "Not there"), (State::Collected, "Collected")]
        {
            text += &self.section(state, title);
        }
        let masked = "Values of Secrets are masked, and the contents of files in rendered MachineConfigs are left out.";
        text + "\n" + &outdented(masked, WIDTH)
    }

    fn section(&self, state: State, title: &str) -> String {
        let entries: Vec<&Entry> = self.entries.iter().filter(|entry| entry.state == state).collect();
        if entries.is_empty() {
            return String::new();
        }
        let line = |entry: &&Entry| {
            let reason = entry.reason.map_or_else(String::new, |reason| format!(": {reason}"));
            // Who may not read something knows enough; index.json has the words of the API server.
            let message = entry.message.as_ref().filter(|_| entry.reason != Some(why(&Class::Forbidden)));
            let message = message.map_or_else(String::new, |message| indented(message, 6, WIDTH));
            match &entry.path {
                // Whatever its length: it is to be copied.
                Some(path) => format!("  {path}\n"),
                None => hanging("  ", &format!("{}{reason}", entry.what), 2, WIDTH) + &message,
            }
        };
        format!("\n{title}\n{}", entries.iter().map(line).collect::<String>())
    }
}

/// `  load-aware-rebalancing   InProgress   Stalled: NoProgress: …`
fn line(config: &Value) -> String {
    let status = &config["status"];
    let conditions = || status["conditions"].as_array().into_iter().flatten();
    let holds = |kind: &str| conditions().find(|condition| condition["type"] == kind && condition["status"] == "True");
    let told = ["Stalled", "Reconciling", "Ready"].into_iter().find_map(|kind| holds(kind).map(|found| (kind, found)));
    let told = told.map_or_else(String::new, |(kind, condition)| {
        let [reason, message] = ["reason", "message"].map(|field| condition[field].as_str().unwrap_or("-"));
        indented(&format!("{kind} ({reason}): {message}"), 6, WIDTH)
    });
    let name = config["metadata"]["name"].as_str().unwrap_or("-");
    let phase = status["phase"].as_str().unwrap_or("no status yet");
    format!("  {name:<28} {phase}\n{told}")
}

#[cfg(test)]
fn error(class: Class) -> RequestError {
    let message = "events is forbidden: User \"Zoë 東京\" cannot list resource \"events\" in API group \"\" in the namespace \"default\"";
    RequestError::other("reading x".into(), message.into(), class)
}

/// What somebody has collected who may not read everything.
#[cfg(test)]
pub(super) fn collected() -> (Index, Vec<Value>) {
    let definition = "cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/virtplatformconfigs.advisor.kubevirt.io.yaml";
    let index = Index {
        api_version: "v1",
        kind: "GatherIndex",
        collected_at: "2026-01-12T09:30:00Z".into(),
        client: "v0.1.0",
        server: Some("v1.36.0".into()),
        operators: vec!["v0.1.0".into()],
        namespace: "openshift-cnv".into(),
        entries: vec![
            Entry::collected("CustomResourceDefinition".into(), definition.into()),
            Entry::failed("events about configurations".into(), &error(Class::Forbidden)),
            Entry::failed("current log of virt-advisor-operator-0/manager".into(), &error(Class::Unknown)),
            Entry::failed(
                "KubeDescheduler openshift-kube-descheduler-operator/cluster-with-a-long-name".into(),
                &error(Class::NotFound),
            ),
            Entry::failed(
                "Deployment openshift-cnv/virt-advisor-operator-controller-manager-größer".into(),
                &error(Class::Forbidden),
            ),
        ],
    };
    let message =
        "enable-psi: MachineConfigPool 'worker' is degraded: Node wörker-3 is reporting: \"failed to drain node\"";
    let stalled = serde_json::json!({"type": "Stalled", "status": "True", "reason": "NoProgress", "message": message});
    let status =
        serde_json::json!({"phase": "InProgress", "conditions": [{"type": "Ready", "status": "False"}, stalled]});
    let named = |name: &str| serde_json::json!({"metadata": {"name": name}});
    let mut configs = vec![named("load-aware-rebalancing"), named("virt-higher-density")];
    configs[0]["status"] = status;
    (index, configs)
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn what_is_not_there_is_no_failure_and_what_is_refused_says_why() {
        for (class, state, reason) in [
            (Class::NotFound, State::Absent, "not found (404)"),
            (Class::KindMissing, State::Absent, "not served (404)"),
            (Class::Forbidden, State::Unreadable, "forbidden (403)"),
            (Class::Unauthenticated, State::Unreadable, "not authenticated (401)"),
            (Class::Unknown, State::Unreadable, "no answer"),
        ] {
            let entry = Entry::failed("x".into(), &error(class));
            assert_eq!((entry.state, entry.reason), (state, Some(reason)));
        }
    }

    #[test]
    fn the_log_of_a_pod_that_is_there_is_never_just_absent() {
        let entry = Entry::refused("log".into(), &error(Class::NotFound));
        assert_eq!((entry.state, entry.reason), (State::Unreadable, Some("not found (404)")));
        assert!(entry.message.is_some());
    }

    #[test]
    fn the_summary_begins_with_who_needs_a_person_and_names_what_is_missing() {
        let (index, configs) = collected();
        let summary = index.summary(&configs);
        let is_path = |line: &str| line.trim_start().starts_with("cluster-scoped-resources/");
        assert!(summary.lines().all(|line| line.width() <= WIDTH || is_path(line)), "{summary}");
        insta::assert_snapshot!("summary", summary);
    }
}
