//! The end of a run, and two ends compared.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{TARGETS, holding};
use crate::{
    api::{kinds::CONFIGS, store::Key},
    cluster::ModelCluster,
};

/// The end of a run: phases, reasons, items and targets. Rendered configs are left out.
pub(crate) fn end(cluster: &ModelCluster) -> Value {
    let configs = cluster.store.list(CONFIGS).map(|(key, object)| {
        let status = &object["status"];
        let item = |item: &Value| {
            let target = &item["targetRef"]["name"];
            json!({"name": item["name"], "state": item["state"], "operation": item["operation"], "target": target})
        };
        let items = || status["items"].as_array().into_iter().flatten();
        let ran_out = |item: &Value| item["message"].as_str().is_some_and(|text| text.starts_with("Timeout waiting"));
        let shown = json!({
            "spec": object["spec"], "generation": object["metadata"]["generation"], "ranOutOfTime": items().any(ran_out),
            "hasEnd": had_end(cluster, key),
            "course": {
                "phase": status["phase"], "conditions": holding(status), "observed": status["observedGeneration"],
                "items": items().map(item).collect::<Vec<_>>(),
            },
        });
        (key.name.clone(), shown)
    });
    let all = TARGETS.iter().flat_map(|kind| cluster.store.list(kind));
    let targets = all.filter(|(key, _)| !key.name.starts_with("rendered-")).map(|(key, object)| {
        (
            key.to_string(),
            json!({"labels": object["metadata"]["labels"], "spec": object["spec"], "data": object["data"]}),
        )
    });
    json!({"configs": configs.collect::<BTreeMap<_, _>>(), "targets": targets.collect::<BTreeMap<_, _>>()})
}

/// Whether an approval of the configuration had an end or a window: then it depends on seconds what was applied before it closed.
fn had_end(cluster: &ModelCluster, config: &Key) -> bool {
    let versions = cluster.store.history.iter().filter(|change| change.key == *config);
    let mut approvals = versions.filter_map(|change| change.after.as_ref().ok()?.pointer("/spec/approval"));
    approvals.any(|approval| !approval["notAfter"].is_null() || !approval["window"].is_null())
}

/// Two ends without what depends on seconds: whether a rollout ended before its time limit, whether it ended before an edit of
/// its config, and what an approval with an end let through.
pub(crate) fn comparable(mut one: Value, mut other: Value) -> (Value, Value) {
    let names: Vec<String> =
        one["configs"].as_object().into_iter().flat_map(|configs| configs.keys().cloned()).collect();
    for name in names {
        let ends = [&one["configs"][&name], &other["configs"][&name]];
        let [timeouts, overtaken, limited] = [ran_out_of_time, is_overtaken, has_end].map(|test| ends.map(test));
        if timeouts[0] == timeouts[1] && overtaken[0] == overtaken[1] && limited == [false, false] {
            continue;
        }
        let targets: Vec<String> = ends.iter().flat_map(|end| targets(end)).collect();
        for end in [&mut one, &mut other] {
            end["configs"][&name]["course"] = Value::Null;
            end["configs"][&name]["ranOutOfTime"] = Value::Null;
            if (overtaken.contains(&true) || limited.contains(&true))
                && let Some(found) = end["targets"].as_object_mut()
            {
                found.retain(|key, _| !targets.iter().any(|target| key.ends_with(&format!("/{target}"))));
            }
        }
    }
    (one, other)
}

fn ran_out_of_time(end: &Value) -> bool {
    end["ranOutOfTime"] == true
}

fn has_end(end: &Value) -> bool {
    end["hasEnd"] == true
}

fn is_overtaken(end: &Value) -> bool {
    let items = end["course"]["items"].as_array();
    let is_rolling = items.is_some_and(|items| items.iter().any(|item| item["state"] == "InProgress"));
    end["course"]["phase"] == "Drifted" && is_rolling
}

fn targets(end: &Value) -> Vec<String> {
    let items = end["course"]["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["target"].as_str().map(str::to_owned)).collect()
}
