//! What must hold at the end of a run: no more writes, few requests, and a status that fits the spec and the cluster.

use std::{collections::BTreeMap, time::Duration};

use advisor::{Plan, drift, profiles};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{Item, ItemState, Phase},
};
use operator::{ApiServer, PlanError, make_plan};
use serde_json::{Value, json};

use crate::{
    administrators::{DENSITY, EXAMPLE, LOAD_AWARE},
    api::{
        kinds::{CONFIGS, named, resources},
        store::{Key, Store},
    },
    client,
    cluster::{ModelCluster, Server},
    schedule::Schedule,
};

/// The resource versions of all objects except events and the lease.
pub(crate) fn written(store: &Store) -> BTreeMap<Key, String> {
    let counts = |plural: &str| plural != "events" && plural != "leases";
    let kinds = resources().iter().filter(|resource| counts(&resource.plural));
    let version = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    kinds.flat_map(|kind| store.list(&kind.plural)).map(|(key, object)| (key.clone(), version(object))).collect()
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
        let plan = make_plan(&kubernetes, known, config.spec.options.as_ref()).await;
        let final_checks = fits(&server.cluster(), &config, &object, &plan);
        if let Err(why) = final_checks {
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

fn fits(
    cluster: &ModelCluster,
    config: &VirtPlatformConfig,
    object: &Value,
    plan: &Result<Plan, PlanError>,
) -> Result<(), String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let phase = config.status.as_ref().and_then(|status| status.phase).ok_or("it has no phase")?;
    if status["observedGeneration"] != object["metadata"]["generation"] {
        return Err("its newest spec was not acted on".into());
    }
    if (spec["action"] == "Ignore") != (phase == Phase::Ignored) {
        return Err(format!("{} and {phase:?}", spec["action"]));
    }
    if phase == Phase::Ignored {
        return Ok(());
    }
    let reasons = holding(status);
    let reason = |kind: &str| reasons[kind].as_str().unwrap_or_default().to_owned();
    let plan = match plan {
        Ok(plan) => plan,
        Err(PlanError::Request(error)) => return Err(format!("no plan could be drawn up: {error}")),
        // A failed plan waits for a person, whatever is missing.
        Err(_) if matches!(phase, Phase::PrerequisiteFailed | Phase::Failed) => return Ok(()),
        Err(error) => return Err(format!("{phase:?}, and {error}")),
    };
    let items = || config.status.iter().flat_map(|status| &status.items);
    let drifted = items().any(|item| is_drifted(item, plan));
    // The impact may have changed since: then the plan is made again when it is approved.
    let is_current = items().count() == plan.items.len() && items().all(|item| is_planned(item, plan));
    let is_ours = |item: &&Item| is_drifted(item, plan) && is_planned(item, plan);
    match phase {
        Phase::Failed | Phase::CompletedWithErrors => Ok(()),
        // An approval of another plan is reported before a changed target.
        Phase::ReviewRequired if ["PlanStale", "ApprovalMismatch"].contains(&&*reason("ReviewRequired")) => Ok(()),
        Phase::ReviewRequired if !plan.has_changes() => Err("there is nothing to review".into()),
        Phase::ReviewRequired if !is_current => Err("the plan is not the current one".into()),
        Phase::ReviewRequired if spec["action"] == "Apply" => {
            let waits = !reason("InputDependencyDrift").is_empty();
            waits.then_some(()).ok_or_else(|| "it was approved".into())
        }
        Phase::ReviewRequired => Ok(()),
        Phase::Completed if drifted => Err("it has drifted".into()),
        Phase::Completed if plan.has_changes() && !cluster.was_stale => Err("something is left to do".into()),
        Phase::Completed => Ok(()),
        Phase::Drifted if !drifted => Err("nothing has drifted".into()),
        Phase::Drifted => {
            // If a plan that is made now would differ, a person has to decide.
            let nothing = items().find(is_ours).is_none();
            let gives_up = reason("Drifted") == "RemediationStalled" || !is_aggressive(spec, status) || nothing;
            gives_up.then_some(()).ok_or_else(|| "it should have been reverted".into())
        }
        // Known limit: a config that is changed or removed during its rollout never reaches the nodes.
        Phase::InProgress if drifted => Ok(()),
        Phase::InProgress if items().any(|item| went_unnoticed(cluster, item)) => Ok(()),
        Phase::InProgress => {
            let pool = plan
                .facts
                .list(&advisor::kind::MACHINE_CONFIG_POOL)
                .iter()
                .any(|pool| pool["metadata"]["name"] == "worker");
            (!pool).then_some(()).ok_or_else(|| "nothing keeps it from ending".into())
        }
        other => Err(format!("{other:?} is no phase to rest in")),
    }
}

fn is_drifted(item: &Item, plan: &Plan) -> bool {
    let live = plan.facts.target(&item.target_ref).flatten();
    item.applied_fingerprint.as_ref().is_some_and(|baseline| *baseline != drift::fingerprint(item, live))
}

/// Known limit: the operator waits until the pool renders another config than before the write. A pool that did not notice an
/// edit of somebody else has nothing to render when the operator reverts it.
fn went_unnoticed(cluster: &ModelCluster, item: &Item) -> bool {
    let pools = item.impact_detail.iter().flat_map(|detail| &detail.pools);
    let mut noted = pools.filter(|pool| pool.name == "worker").filter_map(|pool| pool.rendered.as_ref());
    let (configs, pools) = ("machineconfigs", "machineconfigpools");
    let since = cluster.store.history.iter().rev();
    let since = since.take_while(|change| change.key.plural != configs || change.key.name != item.target_ref.name);
    let target = |pool: &Value| pool["spec"]["configuration"]["name"].as_str().map(str::to_owned);
    let mut targets = since.filter(|change| change.key.plural == pools && change.key.name == "worker").map(|change| {
        let after = change.after.as_ref().ok();
        (change.before.as_deref().and_then(target), after.and_then(|pool| target(pool)))
    });
    let now = cluster.store.get(&Key::new(named(pools), "", "worker")).and_then(|pool| target(pool));
    item.state == ItemState::InProgress
        && noted.any(|noted| now.as_ref() == Some(noted))
        && targets.all(|(before, after)| before == after)
}

/// Whether a plan that is made now has the same item.
fn is_planned(item: &Item, plan: &Plan) -> bool {
    plan.items.iter().any(|planned| {
        let new = &planned.item;
        (&new.name, &new.target_ref, new.operation, &new.desired_state, &new.removes)
            == (&item.name, &item.target_ref, item.operation, &item.desired_state, &item.removes)
    })
}

/// Whether the operator reverts drift by itself.
fn is_aggressive(spec: &Value, status: &Value) -> bool {
    let approved = spec["approval"]["planDigest"].as_str().is_none_or(|digest| status["planDigest"] == digest);
    spec["action"] == "Apply" && spec["bypassOptimisticLock"] == true && approved
}

/// The conditions that are True, with their reasons.
fn holding(status: &Value) -> Value {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let holding = conditions.filter(|condition| condition["status"] == "True");
    let named = |condition: &Value| Some((condition["type"].as_str()?.to_owned(), condition["reason"].clone()));
    Value::Object(holding.filter_map(named).collect())
}

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
            "course": {
                "phase": status["phase"], "conditions": holding(status), "observed": status["observedGeneration"],
                "items": items().map(item).collect::<Vec<_>>(),
            },
        });
        (key.name.clone(), shown)
    });
    let kinds = ["kubedeschedulers", "machineconfigs", "hyperconvergeds", "configmaps"];
    let all = kinds.iter().flat_map(|kind| cluster.store.list(kind));
    let targets = all.filter(|(key, _)| !key.name.starts_with("rendered-")).map(|(key, object)| {
        (
            key.to_string(),
            json!({"labels": object["metadata"]["labels"], "spec": object["spec"], "data": object["data"]}),
        )
    });
    json!({"configs": configs.collect::<BTreeMap<_, _>>(), "targets": targets.collect::<BTreeMap<_, _>>()})
}

/// Two ends without what depends on seconds: whether a rollout ended before its time limit, and whether it ended before an
/// edit of its config.
pub(crate) fn comparable(mut one: Value, mut other: Value) -> (Value, Value) {
    let names: Vec<String> =
        one["configs"].as_object().into_iter().flat_map(|configs| configs.keys().cloned()).collect();
    for name in names {
        let ends = [&one["configs"][&name], &other["configs"][&name]];
        let [timeouts, overtaken] = [ran_out_of_time, is_overtaken].map(|test| ends.map(test));
        if timeouts[0] == timeouts[1] && overtaken[0] == overtaken[1] {
            continue;
        }
        let targets: Vec<String> = ends.iter().flat_map(|end| targets(end)).collect();
        for end in [&mut one, &mut other] {
            end["configs"][&name]["course"] = Value::Null;
            end["configs"][&name]["ranOutOfTime"] = Value::Null;
            if overtaken.contains(&true)
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

fn is_overtaken(end: &Value) -> bool {
    end["course"]["phase"] == "InProgress" && end["course"]["conditions"]["Drifted"].is_string()
}

fn targets(end: &Value) -> Vec<String> {
    let items = end["course"]["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["target"].as_str().map(str::to_owned)).collect()
}
