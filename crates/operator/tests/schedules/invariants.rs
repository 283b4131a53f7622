//! What must hold for every write of an operator. A write is checked when it is carried out, against the configurations as
//! the operator had read them when it sent the request.

mod approval;

use advisor::{
    drift, field_manager,
    fields::Path,
    record::{Summary, expired},
};
use api::{
    VirtPlatformPlanRecord,
    virt_platform_config::{Item, ItemState, Operation},
};
use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{
        Request, Target,
        kinds::{CONFIGS, RECORDS, named},
        store::{Key, Store},
    },
    cluster::{ModelCluster, Process, SentRequest},
};

pub(crate) const NAMESPACE: &str = "openshift-cnv";

/// How many records of a profile the operator keeps: few, so that it has to delete some.
pub(crate) const RECORDS_KEPT: usize = 3;

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
    let result = match target.resource.plural.as_str() {
        CONFIGS => of_config(request, target),
        RECORDS => of_record(&cluster.store, request, target, live),
        _ => of_target(cluster, sent, request, target, live),
    };
    if let Err(why) = result {
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

/// The operator creates records, closes them, and deletes those that are not kept any longer.
fn of_record(store: &Store, request: &Request, target: &Target, live: Option<&Value>) -> Result<(), String> {
    match (request.method.as_str(), target.is_status) {
        ("POST", _) if request.body["spec"]["planDigest"].as_str().is_none_or(str::is_empty) => {
            Err("the record names no plan".into())
        }
        ("POST", _) => Ok(()),
        ("PATCH", true) if request.body["status"]["finishedAt"].is_string() => Ok(()),
        ("DELETE", _) => {
            let records = store.list(RECORDS).map(|(_, record)| &**record).chain(live);
            let parsed = records.filter_map(|record| serde_json::from_value(record.clone()).ok());
            let known: Vec<Summary> =
                parsed.filter_map(|record: VirtPlatformPlanRecord| Summary::of(&record)).collect();
            let is_expired = expired(&known, RECORDS_KEPT).iter().any(|name| Some(name) == target.name.as_ref());
            is_expired.then_some(()).ok_or_else(|| "the record has to be kept".into())
        }
        _ => Err("nothing of a record changes except that it is closed".into()),
    }
}

/// Whether the record that the status names was created before, for this plan of this configuration.
fn is_recorded(store: &Store, config: &Value) -> bool {
    let (status, uid) = (&config["status"], &config["metadata"]["uid"]);
    let name = status["record"]["name"].as_str().unwrap_or_default();
    let key = Key::new(named(RECORDS), "", name);
    let is_it = |record: &Value| {
        let spec = &record["spec"];
        spec["planDigest"] == status["planDigest"] && spec["configUid"] == *uid
    };
    // A request may arrive so late that its record is not kept any longer.
    store.history.iter().any(|change| change.key == key && change.after.as_ref().is_ok_and(|record| is_it(record)))
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
    let conditions = status["conditions"].as_array().into_iter().flatten();
    if conditions.into_iter().any(|known| known["type"] == "InputDependencyDrift" && known["status"] == "True") {
        return Err("the plan has to be reviewed first".into());
    }
    let digest = status["planDigest"].as_str().unwrap_or_default();
    approval::agrees(spec, digest, &item)?;
    approval::accepts_risks(config)?;
    approval::is_its_time(spec, &item, sent.at)?;
    if status["restore"] != spec["restore"] {
        return Err("the plan was made for something else than what the spec restores".into());
    }
    if !is_recorded(&cluster.store, config) {
        return Err("no record of the plan exists".into());
    }
    same_content(request, &item, live)?;
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
fn same_content(request: &Request, item: &Item, live: Option<&Value>) -> Result<(), String> {
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
        return match (tests, steps.iter().filter(|step| step["op"] != "test").all(|step| takes_out(step, item, live))) {
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

/// Whether a step of a patch takes out a field that the item removes, or gives up what its field manager owns.
fn takes_out(step: &Value, item: &Item, live: Option<&Value>) -> bool {
    let path = step["path"].as_str().unwrap_or_default();
    let owner = |entry: &Value| entry["manager"] == field_manager::of_item(item) && entry["subresource"].is_null();
    let entries = || live.and_then(|live| live.pointer("/metadata/managedFields")).and_then(Value::as_array);
    match (step["op"].as_str(), path.strip_prefix("/metadata/managedFields/")) {
        (Some("remove"), Some(_)) => live.and_then(|live| live.pointer(path)).is_some_and(owner),
        (Some("remove"), None) => item.removes.iter().any(|removed| Path::parsed(removed).pointer() == path),
        (Some("replace"), None) if path == "/metadata/managedFields" => {
            entries().is_some_and(|entries| entries.iter().all(owner))
        }
        _ => false,
    }
}
