//! What must hold at the end of a run: no more writes, few requests, and a status that fits the spec and the cluster.

mod end;
mod fit;

use std::{collections::BTreeMap, time::Duration};

use advisor::{profiles, restore, start_time::start_time};
use api::{VirtPlatformConfig, virt_platform_config::Approval};
use kube_io::ApiServer;
use operator::{PlanError, make_plan_by};
use serde_json::{Value, json};

pub(crate) use end::{comparable, end};

use crate::{
    administrators::{DENSITY, EXAMPLE, LOAD_AWARE},
    api::{
        kinds::{CONFIGS, RECORDS, resources},
        store::{Key, Store},
    },
    client,
    cluster::{ModelCluster, Server},
    schedule::Schedule,
};

/// The kinds that plans change.
const TARGETS: [&str; 4] = ["kubedeschedulers", "machineconfigs", "hyperconvergeds", "configmaps"];

/// The resource versions of all objects except events and the lease.
pub(crate) fn written(store: &Store) -> BTreeMap<Key, String> {
    let counts = |plural: &str| plural != "events" && plural != "leases";
    let kinds = resources().iter().filter(|resource| counts(&resource.plural));
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    kinds.flat_map(|kind| store.list(&kind.plural)).map(|(key, object)| (key.clone(), version(object))).collect()
}

/// Whether the time of an approval begins or ends soon, so that there cannot be rest.
pub(crate) fn is_time_near(server: &Server, soon: Duration) -> bool {
    let now = (server.clock())();
    let changes = |approval: &Approval| start_time(Some(approval), now) != start_time(Some(approval), now + soon);
    let cluster = server.cluster();
    let approvals = cluster.store.list(CONFIGS).map(|(_, config)| config["spec"]["approval"].clone());
    approvals.filter_map(|approval| serde_json::from_value(approval).ok()).any(|approval| changes(&approval))
}

/// Nothing is written any more, and few requests are made.
pub(crate) fn rested(server: &Server, before: &BTreeMap<Key, String>, asked: u64, rest: Duration) {
    let mut cluster = server.cluster();
    let now = written(&cluster.store);
    if *before != now {
        let changed: Vec<String> = now
            .iter()
            .filter(|(key, version)| before.get(key) != Some(version))
            .map(|(key, _)| key.to_string())
            .collect();
        cluster.report_violation(format!("there is no rest: {} written", changed.join(", ")));
    }
    // A recheck reads its targets every five minutes; missing prerequisites are read every two.
    let most = 40 * (rest.as_secs() / 120 + 1);
    let asked = cluster.requests - asked;
    if asked > most {
        cluster.report_violation(format!("{asked} requests in {} min of rest", rest.as_secs() / 60));
    }
}

/// The number of requests is bounded by the numbers of edits, faults, starts and rechecks.
pub(crate) fn bounded(cluster: &mut ModelCluster, schedule: &Schedule) {
    let hours = cluster.store.now.as_secs() / 3600 + 1;
    let starts = cluster.log.iter().filter(|line| line.ends_with(" starts")).count() as u64;
    let most = 200 + 120 * (schedule.edits.len() as u64 + starts) + 40 * cluster.injected_faults + 900 * hours;
    let requests = cluster.requests;
    if requests > most {
        cluster.report_violation(format!("{requests} requests, where {most} should do"));
    }
}

/// A record that is not finished is the one of a plan that is being applied, or that goes on when a target is set back that somebody has
/// changed on its way to the nodes.
pub(crate) fn recorded(cluster: &mut ModelCluster) {
    let is_applied = |record: &Value| {
        let configs = cluster.store.list(CONFIGS).map(|(_, config)| config);
        configs.into_iter().any(|config| {
            let status = &config["status"];
            let mut items = status["items"].as_array().into_iter().flatten();
            let is_overtaken = status["phase"] == "Drifted" && items.any(|item| item["state"] == "InProgress");
            (status["phase"] == "InProgress" || is_overtaken) && status["record"]["name"] == record["metadata"]["name"]
        })
    };
    let open = cluster.store.list(RECORDS).filter(|(_, record)| !record["status"]["finishedAt"].is_string());
    let forgotten: Vec<String> =
        open.filter(|(_, record)| !is_applied(record)).map(|(key, _)| key.name.clone()).collect();
    for name in forgotten {
        cluster.report_violation(format!("the record {name} is not finished, and nothing is being applied"));
    }
}

/// Each configuration is in a phase that fits its spec and a plan that is made now.
pub(crate) async fn consistent(server: &Server) {
    let kubernetes = ApiServer::over(client::quiet(server));
    for profile in [LOAD_AWARE, DENSITY, EXAMPLE] {
        let config = server.cluster().config(profile).cloned();
        let Some(object) = config else {
            if profile != EXAMPLE {
                server.cluster().report_violation(format!("{profile} is not offered"));
            }
            continue;
        };
        let config: VirtPlatformConfig = match serde_json::from_value((*object).clone()) {
            Ok(config) => config,
            Err(_) => {
                let failed = object.pointer("/status/phase").is_some_and(|phase| phase == "Failed");
                if !failed {
                    server.cluster().report_violation(format!("{profile} is malformed, and nobody says so"));
                }
                continue;
            }
        };
        let known = profiles::find(profile).unwrap();
        let plan = match restore::planner(known, &config.spec) {
            Ok(planner) => make_plan_by(&kubernetes, known.about(), planner.as_ref()).await,
            Err(error) => Err(PlanError::from(error)),
        };
        let now = (server.clock())();
        let result = fit::fits(&fit::End { cluster: &server.cluster(), now, config: &config, object: &object }, &plan);
        if let Err(why) = result {
            let status = &object["status"];
            let shown = json!({"spec": object["spec"], "phase": status["phase"], "conditions": holding(status)});
            let plan = match &plan {
                Ok(plan) => format!("a plan with changes: {}, digest {}", plan.has_changes(), plan.digest),
                Err(error) => error.to_string(),
            };
            server.cluster().report_violation(format!("{profile}: {why}\n     {shown}\n     now: {plan}"));
        }
    }
}

/// The conditions that are True, with their reasons.
fn holding(status: &Value) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let holding = conditions.filter(|condition| condition["status"] == "True");
    let named = |condition: &Value| Some((condition["type"].as_str()?.to_owned(), condition["reason"].clone()));
    Value::Object(holding.filter_map(named).collect())
}
