//! What must hold for every write of an operator. A write is checked when it is carried out, against the configurations as
//! the operator had read them when it sent the request.

use advisor::drift;
use api::virt_platform_config::{Item, ItemState, Operation};
use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{
        Request, Target,
        kinds::{CONFIGS, named},
        store::Key,
    },
    cluster::{ModelCluster, Process, SentRequest},
};

pub(crate) const NAMESPACE: &str = "openshift-cnv";

/// If there is a lease, only its holder writes.
pub(crate) fn only_the_leader_writes(cluster: &mut ModelCluster, process: Process, label: &str) {
    let lease = Key::new(named("leases"), NAMESPACE, advisor::access::LEASE);
    let Some(lease) = cluster.store.get(&lease) else { return };
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    if holder != process.to_string() {
        cluster.report_violation(format!("{process} sends {label}, and {holder:?} holds the lease"));
    }
}

pub(crate) fn check(
    cluster: &mut ModelCluster,
    sent: &SentRequest,
    request: &Request,
    target: &Target,
    live: Option<&Value>,
) {
    let final_checks = match target.resource.plural == CONFIGS {
        true => of_config(request, target),
        false => of_target(cluster, sent, request, target, live),
    };
    if let Err(why) = final_checks {
        cluster.report_violation(format!("{} by {}: {why}", sent.label, sent.process));
    }
}

/// The operator writes the status of a configuration, and the annotations of one that it offers.
fn of_config(request: &Request, target: &Target) -> Result<(), String> {
    let touches_spec = request.body.get("spec").is_some() && !target.is_status && request.method != Method::POST;
    let offers = request.method != Method::POST || request.body["spec"]["action"] == "Ignore";
    if touches_spec || !offers || request.method == Method::DELETE {
        return Err("the spec is not the operator's".into());
    }
    Ok(())
}

fn of_target(
    cluster: &mut ModelCluster,
    sent: &SentRequest,
    request: &Request,
    target: &Target,
    live: Option<&Value>,
) -> Result<(), String> {
    let planned = sent.known.iter().find_map(|config| Some((config, item_of(config, target)?)));
    let (config, item) = planned.ok_or("no plan that the operator was told of has it in progress")?;
    let (spec, status) = (&config["spec"], &config["status"]);
    if spec["action"] != "Apply" {
        return Err(format!("action is {}", spec["action"]));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|known| known["type"] == "InputDependencyDrift" && known["status"] == "True") {
        return Err("the plan has to be reviewed first".into());
    }
    let digest = status["planDigest"].as_str().unwrap_or_default();
    if spec["approval"]["planDigest"].as_str().is_some_and(|approved| approved != digest) {
        return Err("another plan was approved".into());
    }
    same_content(request, &item)?;
    let is_bypassed = spec["bypassOptimisticLock"] == true;
    let as_found = item.source_fingerprint.as_deref() == Some(&drift::fingerprint(&item, live));
    if !is_bypassed && !as_found && !drift::is_applied(&item, live) {
        return Err("the target is not as the plan found it".into());
    }
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let generation = config["metadata"]["generation"].as_i64().unwrap_or_default();
    let plan = cluster.carried_out.entry((text("/metadata/uid"), generation)).or_insert_with(|| digest.to_owned());
    if plan != digest {
        return Err(format!("plans {plan} and {digest} are both carried out under generation {generation}"));
    }
    Ok(())
}

fn item_of(config: &Value, target: &Target) -> Option<Item> {
    let items = config["status"]["items"].as_array()?;
    let items = items.iter().filter_map(|item| serde_json::from_value::<Item>(item.clone()).ok());
    items.into_iter().find(|item| {
        let place = &item.target_ref;
        item.state == ItemState::InProgress
            && place.kind == target.resource.kind
            && Some(&place.name) == target.name.as_ref()
            && place.namespace.as_deref().unwrap_or_default() == target.namespace
    })
}

/// The request is what the item says, with the version that was compared as its precondition.
fn same_content(request: &Request, item: &Item) -> Result<(), String> {
    let unlocked = || Err("it names no version".to_owned());
    if request.method == Method::DELETE {
        let lock = &request.body["preconditions"];
        return match item.operation {
            _ if !lock["uid"].is_string() || !lock["resourceVersion"].is_string() => unlocked(),
            Operation::Delete => Ok(()),
            Operation::Apply => Err("nobody planned a removal".into()),
        };
    }
    if request.content.contains("json-patch") {
        let steps: Vec<&Value> = request.body.as_array().into_iter().flatten().collect();
        let tests = steps.iter().filter(|step| step["op"] == "test").count();
        let planned = |step: &Value| {
            let path = step["path"].as_str().unwrap_or_default().trim_start_matches('/').replace('/', ".");
            item.removes.contains(&path)
        };
        let all = steps.iter().filter(|step| step["op"] != "test").all(|step| step["op"] == "remove" && planned(step));
        return match (tests, all) {
            (2, true) => Ok(()),
            (2, false) => Err("nobody planned to take that out".into()),
            _ => unlocked(),
        };
    }
    let mut fields = request.body.clone();
    let metadata = fields["metadata"].as_object_mut().ok_or("no metadata")?;
    let (uid, version) = (metadata.remove("uid"), metadata.remove("resourceVersion"));
    if version.is_none() || (uid.is_none() && version != Some(json!("1"))) {
        return unlocked();
    }
    match item.operation == Operation::Apply && fields == json!(item.desired_state) {
        true => Ok(()),
        false => Err("it is not what the plan says".into()),
    }
}
