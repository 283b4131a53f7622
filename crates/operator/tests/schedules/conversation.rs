//! The API model held against the real API server: the same requests in the same order are answered alike.
//!
//! What the model does not know (defaults, times, uids, who owns what of a status) is left out of the comparison; a field
//! that only the real answer has must be a default of its schema.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use ::api::names::field_manager;
use devcluster::Cluster;
use http::Method;
use operator::{Kubernetes, Settings, run_on};
use serde_json::{Map, Value, json};
use testkit::rollout::{NODES, Rollout};
use tokio::sync::oneshot;

use crate::{
    api::{Answer, Request, Target, kinds::resources, store::Store},
    door::{APPLY, JSON, MERGE},
    recorder::{Exchange, Recorder},
    samples,
};

const CONFIGS: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs";
const DESCHEDULERS: &str =
    "/apis/operator.openshift.io/v1/namespaces/openshift-kube-descheduler-operator/kubedeschedulers";
const MACHINE_CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";
const POOL: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker";
const HCO: &str = "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds/kubevirt-hyperconverged";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/openshift-cnv/leases";
const LOAD_AWARE: &str = "load-aware-rebalancing";
const DENSITY: &str = "virt-higher-density";

/// What is watched from the beginning on, in the end.
const WATCHED: [&str; 4] =
    [CONFIGS, DESCHEDULERS, MACHINE_CONFIGS, "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"];

#[tokio::test(flavor = "multi_thread")]
async fn the_model_answers_as_the_real_api_server_does() {
    let cluster = Cluster::builder().start().await.unwrap();
    let definitions: Vec<_> = resources().iter().filter_map(|resource| resource.definition.clone()).collect();
    let definitions: Vec<_> =
        definitions.into_iter().map(|definition| serde_json::from_value(definition).unwrap()).collect();
    cluster.access().install_crds(&definitions).await.unwrap();
    let recorder = Recorder::new(cluster.access().client().await.unwrap());
    for (uri, object) in samples::objects() {
        let manager = if uri.ends_with("/status") { "controllers" } else { "installer" };
        recorder.say(Method::PATCH, &format!("{uri}?fieldManager={manager}&force=true"), APPLY, object).await;
    }
    for uri in WATCHED {
        recorder.say(Method::GET, uri, "", &Value::Null).await;
    }
    lives(&recorder).await;
    refusals(&recorder).await;
    let exchanges = recorder.exchanges().await;
    let mut replay = Replay::new();
    for exchange in &exchanges {
        replay.compare(exchange);
    }
    for uri in WATCHED {
        replay.watch(&recorder, uri).await;
    }
    println!(
        "{} requests answered alike, {} of them refused",
        exchanges.len() - replay.failed.len(),
        refused(&exchanges)
    );
    assert!(replay.failed.is_empty(), "{} differ:\n{}", replay.failed.len(), replay.failed.join("\n"));
}

fn refused(exchanges: &[Exchange]) -> usize {
    exchanges.iter().filter(|exchange| exchange.code >= 400).count()
}

/// The operator lives through what it is for: offered, applied, rolled out, drifted, taken over, removed.
async fn lives(recorder: &Recorder) {
    let (stop, stopped) = oneshot::channel::<()>();
    let kubernetes = Kubernetes::over(recorder.client());
    let shutdown = async {
        let _ = stopped.await;
    };
    let operator = tokio::spawn(run_on(kubernetes, Settings::default(), shutdown));
    until(recorder, LOAD_AWARE, "Ignored").await;
    until(recorder, DENSITY, "Ignored").await;
    configure(recorder, LOAD_AWARE, json!({"action": "DryRun"})).await;
    until(recorder, LOAD_AWARE, "ReviewRequired").await;
    configure(recorder, LOAD_AWARE, json!({"action": "Apply"})).await;
    roll(recorder, LOAD_AWARE, &["99-worker-psi-karg"]).await;
    until(recorder, LOAD_AWARE, "Completed").await;
    let edit = format!("{DESCHEDULERS}/cluster?fieldManager=kubectl-edit");
    for (seconds, phase) in [(180, "Drifted"), (60, "Completed"), (300, "Drifted")] {
        recorder.say(Method::PATCH, &edit, MERGE, &json!({"spec": {"deschedulingIntervalSeconds": seconds}})).await;
        until(recorder, LOAD_AWARE, phase).await;
    }
    // What somebody else owns by now is taken over again.
    configure(recorder, LOAD_AWARE, json!({"action": "DryRun"})).await;
    until(recorder, LOAD_AWARE, "ReviewRequired").await;
    configure(recorder, LOAD_AWARE, json!({"action": "Apply"})).await;
    until(recorder, LOAD_AWARE, "Completed").await;
    let ksm = json!({"spec": {"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"ksm": "yes"}}}}});
    recorder.say(Method::PATCH, &format!("{HCO}?fieldManager=kubectl-edit"), MERGE, &ksm).await;
    let density = json!({"virtHigherDensity": {"enableSwap": true, "ksmConfiguration": {"enabled": false}}});
    configure(recorder, DENSITY, json!({"action": "Apply", "options": density})).await;
    roll(recorder, DENSITY, &["90-worker-kubelet-swap", "99-worker-psi-karg"]).await;
    until(recorder, DENSITY, "Completed").await;
    let without = json!({"loadAware": {"enablePSIMetrics": false}});
    configure(recorder, LOAD_AWARE, json!({"action": "Apply", "options": without})).await;
    roll(recorder, LOAD_AWARE, &["90-worker-kubelet-swap"]).await;
    until(recorder, LOAD_AWARE, "Completed").await;
    // What is seen in the store may not have been answered yet.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _ = stop.send(());
    operator.await.unwrap().unwrap();
}

async fn configure(recorder: &Recorder, profile: &str, spec: Value) {
    recorder
        .say(Method::PATCH, &format!("{CONFIGS}/{profile}?fieldManager=admin"), MERGE, &json!({"spec": spec}))
        .await;
}

async fn until(recorder: &Recorder, profile: &str, phase: &str) {
    wait(recorder, profile, phase, |config| {
        config["status"]["phase"] == phase && config["status"]["observedGeneration"] == config["metadata"]["generation"]
    })
    .await;
}

async fn wait(recorder: &Recorder, profile: &str, what: &str, holds: impl Fn(&Value) -> bool) {
    let start = Instant::now();
    loop {
        let config = recorder.look(&format!("{CONFIGS}/{profile}")).await;
        if holds(&config) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{profile} never was {what}: {config:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Everything is written; then the nodes of the pool run these configs beyond their own.
async fn roll(recorder: &Recorder, profile: &str, configs: &[&str]) {
    wait(recorder, profile, "waiting for nodes", |config| {
        let items = config["status"]["items"].as_array().cloned().unwrap_or_default();
        let waits =
            |item: &Value| item["message"].as_str().is_some_and(|message| message.contains("is processing changes"));
        config["status"]["phase"] == "InProgress" && items.iter().any(waits)
    })
    .await;
    let rollout = Rollout { configs, updated: NODES };
    let (name, rendered) = (rollout.rendered_name(), rollout.rendered_config(&Value::Null));
    recorder
        .say(Method::PATCH, &format!("{MACHINE_CONFIGS}/{name}?fieldManager=mco&force=true"), APPLY, &rendered)
        .await;
    let spec = json!({"spec": rollout.pool_spec()});
    let (_, pool) = recorder.say(Method::PATCH, &format!("{POOL}?fieldManager=mco"), MERGE, &spec).await;
    let status = json!({"status": rollout.pool_status(&pool["metadata"]["generation"])});
    recorder.say(Method::PATCH, &format!("{POOL}/status?fieldManager=mco"), MERGE, &status).await;
}

/// What a life does not bring about, or seldom.
async fn refusals(recorder: &Recorder) {
    let say =
        async |method: Method, uri: &str, content: &str, body: Value| recorder.say(method, uri, content, &body).await;
    let ours = |query: &str| {
        format!("{DESCHEDULERS}/cluster?{query}fieldManager={}&fieldValidation=Strict", field_manager(LOAD_AWARE))
    };
    let descheduler = |metadata: Value, spec: Value| {
        let mut all = json!({"name": "cluster", "namespace": "openshift-kube-descheduler-operator"});
        all.as_object_mut().unwrap().extend(metadata.as_object().cloned().unwrap_or_default());
        json!({"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": all, "spec": spec})
    };
    let (_, live) = say(Method::GET, &format!("{DESCHEDULERS}/cluster"), "", Value::Null).await;
    let (uid, version) = (live["metadata"]["uid"].clone(), live["metadata"]["resourceVersion"].clone());
    let here = json!({"uid": uid, "resourceVersion": version});
    let interval = |seconds: u64| json!({"deschedulingIntervalSeconds": seconds});
    // Somebody else takes a field; then an apply conflicts, and one for the version of before is refused.
    say(
        Method::PATCH,
        &format!("{DESCHEDULERS}/cluster?fieldManager=kubectl-edit"),
        MERGE,
        json!({"spec": interval(77)}),
    )
    .await;
    for query in ["dryRun=All&", "", "dryRun=All&force=true&"] {
        say(Method::PATCH, &ours(query), APPLY, descheduler(json!({}), interval(60))).await;
        say(Method::PATCH, &ours(query), APPLY, descheduler(here.clone(), interval(60))).await;
        say(Method::PATCH, &ours(query), APPLY, descheduler(json!({"resourceVersion": "1"}), interval(60))).await;
    }
    say(Method::PATCH, &ours("force=true&"), APPLY, descheduler(json!({}), interval(60))).await;
    say(Method::PATCH, &ours("force=true&"), APPLY, descheduler(json!({}), interval(60))).await;
    let other = json!({"uid": "00000000-0000-4000-8000-000000000000"});
    say(Method::PATCH, &ours("force=true&"), APPLY, descheduler(other.clone(), interval(60))).await;
    // A removal of a field, of this version and of another.
    let (_, live) = say(Method::GET, HCO, "", Value::Null).await;
    let patch = |version: &Value| {
        json!([
            {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "remove", "path": "/spec/evictionStrategy"},
        ])
    };
    for (query, version) in [("", json!("1")), ("?dryRun=All", live["metadata"]["resourceVersion"].clone())] {
        say(Method::PATCH, &format!("{HCO}{query}"), "application/json-patch+json", patch(&version)).await;
    }
    // Deletions.
    let config = format!("{MACHINE_CONFIGS}/90-worker-kubelet-swap");
    let (_, live) = say(Method::GET, &config, "", Value::Null).await;
    let right = json!({"uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]});
    let wrong = json!({"uid": live["metadata"]["uid"], "resourceVersion": "1"});
    let deletion = |preconditions: &Value, dry: bool| {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        if dry {
            options["dryRun"] = json!(["All"]);
        }
        options
    };
    for (preconditions, dry) in
        [(&wrong, true), (&wrong, false), (&other, false), (&right, true), (&right, false), (&right, false)]
    {
        say(Method::DELETE, &config, JSON, deletion(preconditions, dry)).await;
    }
    let swap = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "90-worker-kubelet-swap", "uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]},
        "spec": {"kernelArguments": ["quiet"]},
    });
    let apply = format!("{config}?fieldManager={}&force=true", field_manager(DENSITY));
    say(Method::PATCH, &apply, APPLY, swap.clone()).await;
    let mut again = swap.clone();
    again["metadata"] = json!({"name": "90-worker-kubelet-swap", "resourceVersion": "1"});
    say(Method::PATCH, &format!("{apply}&dryRun=All"), APPLY, again.clone()).await;
    say(Method::PATCH, &apply, APPLY, again.clone()).await;
    say(Method::PATCH, &apply, APPLY, again).await;
    // What is not there, or nowhere.
    say(Method::GET, &format!("{DESCHEDULERS}/none"), "", Value::Null).await;
    say(Method::GET, "/apis/hco.kubevirt.io/v1/namespaces/openshift-cnv/hyperconvergeds/x", "", Value::Null).await;
    let elsewhere = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "nowhere"}, "spec": {"mode": "Automatic"},
    });
    let nowhere =
        "/apis/operator.openshift.io/v1/namespaces/nowhere/kubedeschedulers/cluster?fieldManager=x&force=true";
    say(Method::PATCH, nowhere, APPLY, elsewhere).await;
    // A status over an old version, of what is gone, and an offer of what is there.
    let (_, config) = say(Method::GET, &format!("{CONFIGS}/{LOAD_AWARE}"), "", Value::Null).await;
    let mut old = config.clone();
    old["metadata"]["resourceVersion"] = "1".into();
    old["metadata"]["managedFields"] = json!([]);
    say(Method::PUT, &format!("{CONFIGS}/{LOAD_AWARE}/status"), JSON, old).await;
    let offer = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": LOAD_AWARE}, "spec": {"profile": LOAD_AWARE, "action": "Ignore"},
    });
    say(Method::POST, CONFIGS, JSON, offer).await;
    // The lease.
    let lease = |holder: &str, version: Option<&Value>| {
        let mut metadata = json!({"name": "it", "namespace": "openshift-cnv"});
        if let Some(version) = version {
            metadata["resourceVersion"] = version.clone();
        }
        let spec = json!({"holderIdentity": holder, "leaseTransitions": 0, "leaseDurationSeconds": 15});
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    };
    say(Method::GET, &format!("{LEASES}/it"), "", Value::Null).await;
    let (_, created) = say(Method::POST, LEASES, JSON, lease("a", None)).await;
    say(Method::POST, LEASES, JSON, lease("b", None)).await;
    let version = &created["metadata"]["resourceVersion"];
    say(Method::PUT, &format!("{LEASES}/it"), JSON, lease("b", Some(version))).await;
    say(Method::PUT, &format!("{LEASES}/it"), JSON, lease("c", Some(version))).await;
}

/// The model, and how what the real server calls things is called there.
struct Replay {
    store: Store,
    names: BTreeMap<String, String>,
    failed: Vec<String>,
    number: usize,
}

impl Replay {
    fn new() -> Replay {
        let mut store = Store::default();
        for resource in resources() {
            if let Some(definition) = &resource.definition {
                let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=installer";
                let body = definition.to_string();
                store.handle(&Request::new(Method::POST, uri, JSON, "", body.as_bytes()), TIME);
            }
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}).to_string();
        store.handle(&Request::new(Method::POST, "/api/v1/namespaces", JSON, "", namespace.as_bytes()), TIME);
        Replay { store, names: BTreeMap::new(), failed: Vec::new(), number: 0 }
    }

    fn compare(&mut self, exchange: &Exchange) {
        self.number += 1;
        let mut body = exchange.body.clone();
        self.translate(&mut body);
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let request =
            Request::new(exchange.method.clone(), &exchange.uri, &exchange.content, &exchange.accept, text.as_bytes());
        let answer = self.store.handle(&request, TIME);
        self.learn(&exchange.answer, &answer.body);
        let complaints = differences(&request, exchange, &answer);
        if !complaints.is_empty() {
            let (number, method, uri) = (self.number, &exchange.method, &exchange.uri);
            self.failed.push(format!("{number}. {method} {uri}\n     {}", complaints.join("\n     ")));
        }
    }

    /// In our words: uids and versions.
    fn translate(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|below| self.translate(below)),
            Value::Array(entries) => entries.iter_mut().for_each(|below| self.translate(below)),
            Value::String(text) => {
                if let Some(ours) = self.names.get(text) {
                    *text = ours.clone();
                }
            }
            _ => {}
        }
    }

    fn learn(&mut self, real: &Value, ours: &Value) {
        for name in ["uid", "resourceVersion"] {
            if let (Some(real), Some(ours)) = (real["metadata"][name].as_str(), ours["metadata"][name].as_str()) {
                self.names.insert(real.to_owned(), ours.to_owned());
            }
        }
    }

    /// Everything that happened since the first list, as a watch tells it.
    async fn watch(&mut self, recorder: &Recorder, uri: &str) {
        let exchanges = recorder.exchanges().await;
        let list = exchanges.iter().find(|exchange| exchange.uri == uri).unwrap();
        let version = list.answer["metadata"]["resourceVersion"].as_str().unwrap();
        let query = format!("{uri}?watch=true&timeoutSeconds=1&resourceVersion={version}");
        let request = http::Request::get(query).body(kube::client::Body::empty()).unwrap();
        let answer = recorder.real.send(request).await.unwrap().into_body().collect_bytes().await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let told = |kind: &str, object: &Value| {
            format!("{kind} {} {}", object["metadata"]["name"], object["metadata"]["generation"])
        };
        let real: Vec<String> =
            events.map(|event| told(event["type"].as_str().unwrap_or_default(), &event["object"])).collect();
        let from: u64 = self.names[version].parse().unwrap();
        let plural = Target::of(uri).unwrap().resource.plural.as_str();
        let changes = self.store.history.iter().filter(|change| change.version > from && change.key.plural == plural);
        let model: Vec<String> = changes
            .map(|change| match (&change.before, &change.after) {
                (None, Ok(object)) => told("ADDED", object),
                (Some(_), Ok(object)) => told("MODIFIED", object),
                (_, Err(last)) => told("DELETED", last),
            })
            .collect();
        if real != model {
            self.failed.push(format!("watch {uri}:\n     {}\n   and\n     {}", real.join(", "), model.join(", ")));
        }
    }
}

const TIME: &str = "2026-01-01T00:00:00Z";

fn differences(request: &Request, exchange: &Exchange, answer: &Answer) -> Vec<String> {
    let real = &exchange.answer;
    if exchange.code != answer.code {
        return vec![format!("{} {} and {} {}", exchange.code, real["message"], answer.code, answer.body["message"])];
    }
    let Some(target) = Target::of(&request.path) else { return Vec::new() };
    if exchange.code >= 400 {
        return match (refusal(real), refusal(&answer.body)) {
            (real, ours) if real == ours => Vec::new(),
            (real, ours) => vec![format!("{real} and {ours}")],
        };
    }
    // Of these the real server knows more than anybody asks.
    if ["customresourcedefinitions", "namespaces", "events", "leases"].contains(&target.resource.plural.as_str()) {
        return Vec::new();
    }
    let schema =
        target.resource.definition.as_ref().map(|crd| &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    let mut complaints = Vec::new();
    match (real["items"].as_array(), answer.body["items"].as_array()) {
        (Some(real), Some(ours)) if real.len() == ours.len() => {
            for (real, ours) in real.iter().zip(ours) {
                same_object(real, ours, schema, &mut complaints);
            }
        }
        (Some(real), Some(ours)) => complaints.push(format!("{} and {} items", real.len(), ours.len())),
        _ if request.method == Method::DELETE => {}
        _ => same_object(real, &answer.body, schema, &mut complaints),
    }
    complaints
}

/// What matters of a refusal.
fn refusal(body: &Value) -> Value {
    if body.is_string() || body["code"].is_null() {
        return "nothing here".into();
    }
    let details = &body["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    let conflicts = causes.filter(|cause| cause["reason"] == "FieldManagerConflict").map(|cause| {
        let manager = cause["message"].as_str().and_then(|message| message.split('"').nth(1)).unwrap_or_default();
        format!("{} of {manager}", cause["field"].as_str().unwrap_or_default())
    });
    let conflicts: BTreeSet<String> = conflicts.collect();
    let is_conflict = !conflicts.is_empty() || body["code"] == 422;
    let about = if is_conflict { json!({}) } else { json!({"kind": details["kind"], "name": details["name"]}) };
    json!({"reason": body["reason"], "about": about, "conflicts": conflicts})
}

fn same_object(real: &Value, ours: &Value, schema: Option<&Value>, complaints: &mut Vec<String>) {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for name in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(name);
            }
        }
        object
    };
    compare(&stripped(real), &stripped(ours), schema, "", complaints);
    let (real, ours) = (owners(real), owners(ours));
    if real.keys().ne(ours.keys()) {
        let names = |owners: &BTreeMap<(String, String), Value>| format!("{:?}", owners.keys().collect::<Vec<_>>());
        complaints.push(format!("owners {} and {}", names(&real), names(&ours)));
        return;
    }
    for ((manager, operation), fields) in &real {
        let ours = &ours[&(manager.clone(), operation.clone())];
        // Whoever creates an object other than by applying owns its defaults too.
        let same = if operation == "Apply" { fields == ours } else { contains(fields, ours) };
        if !same {
            complaints.push(format!("{manager} ({operation}) owns {fields} and {ours}"));
        }
    }
}

/// Who owns what, but of the status.
fn owners(object: &Value) -> BTreeMap<(String, String), Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let of_object =
        entries.into_iter().flatten().filter(|entry| entry["subresource"].as_str().is_none_or(str::is_empty));
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    of_object.map(|entry| ((text(entry, "manager"), text(entry, "operation")), entry["fieldsV1"].clone())).collect()
}

fn contains(real: &Value, ours: &Value) -> bool {
    match (real.as_object(), ours.as_object()) {
        (Some(real), Some(ours)) => {
            ours.iter().all(|(name, below)| real.get(name).is_some_and(|real| contains(real, below)))
        }
        _ => real == ours,
    }
}

/// Where two values differ, but for what is a default.
fn compare(real: &Value, ours: &Value, schema: Option<&Value>, path: &str, complaints: &mut Vec<String>) {
    if let (Value::Object(real), Value::Object(ours)) = (real, ours) {
        let names: BTreeSet<&String> = real.keys().chain(ours.keys()).collect();
        for name in names {
            let below = schema.and_then(|schema| schema["properties"].get(name));
            let is_default = below.is_some_and(|schema| schema.get("default").is_some());
            match (real.get(name), ours.get(name)) {
                (Some(_), None) if is_default => {}
                (real, ours) => {
                    let nothing = Value::Object(Map::new());
                    let (real, ours) = (real.unwrap_or(&Value::Null), ours.unwrap_or(&Value::Null));
                    let ours = if real.is_object() && ours.is_null() { &nothing } else { ours };
                    compare(real, ours, below, &format!("{path}.{name}"), complaints);
                }
            }
        }
        return;
    }
    if real != ours {
        let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
        complaints.push(format!("{path}: {} and {}", short(real), short(ours)));
    }
}
