//! Random configurations, random live objects and random edits on the real API server, as in Acto: the operator keeps
//! running, settles, reports what is wrong, and other configurations are not affected.
//! `BAD_INPUT=n` tries n cases; `BAD_INPUT_SEED=s` begins with this one, which replays it.

use std::time::{Duration, Instant};

use advisor::test_cluster::damage;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use testkit::{
    configs::{config, item, phase, reason},
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config, path},
    poll,
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

const EXAMPLE: &str = "example-profile";
const USUAL: u64 = 40;

/// The most requests of a case, and of one edit: a plan and its status updates.
const MOST: usize = 120;
const PER_EDIT: usize = 30;
const REST: Duration = Duration::from_secs(60);
const QUIET: Duration = Duration::from_millis(250);

/// One edit.
#[derive(Debug, Clone)]
enum Edit {
    /// Somebody applies a configuration, as it should be or not.
    Configure(Value),
    /// An object is written through the API server.
    Write(Value),
    /// An object is written to etcd, without validation.
    Store(Value),
    Delete(Value),
    Pause(u64),
}

fn targets() -> Vec<Value> {
    let spec = json!({"managementState": "Managed", "deschedulingIntervalSeconds": 600, "profiles": ["LongLifecycle"],
        "profileCustomizations": {"devEnableSoftTainter": true}, "evictionLimits": {"total": 3, "node": 2}});
    let ignition =
        json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/a", "mode": 420}]}}});
    let limits = json!({
        "liveMigrationConfig": {"parallelMigrationsPerCluster": 7, "parallelOutboundMigrationsPerNode": 3},
        "higherWorkloadDensity": {"memoryOvercommitPercentage": 130},
        "ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"a": "b"}}},
    });
    let pool = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": "worker"},
        "spec": {"machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": "worker"}},
            "configuration": {"name": "rendered-worker-d9366560000b5d89c5825f832fda0bd6"}, "paused": false},
        "status": {"machineCount": 3, "updatedMachineCount": 3, "configuration": {"name": "x", "source": []},
            "conditions": [{"type": "Updated", "status": "True"}]},
    });
    let example =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "openshift-cnv"}});
    vec![
        descheduler(spec),
        machine_config(PSI, json!({"kernelArguments": ["quiet", "psi=0"], "kernelType": "default"})),
        machine_config(SWAP, ignition),
        hyper_converged(limits),
        pool,
        example,
    ]
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let below = ["/spec", "/status", "/metadata/labels", "/metadata/annotations"];
    let profile = || prop::sample::select(vec![LOAD_AWARE, DENSITY]);
    let sound = |profile: &str| match profile {
        LOAD_AWARE => {
            json!({"loadAware": {"deschedulingIntervalSeconds": 600, "enablePSIMetrics": true, "evictionLimitTotal": 4}})
        }
        _ => {
            json!({"virtHigherDensity": {"enableSwap": true, "memoryToRequestRatio": 110, "ksmConfiguration": {"enabled": true}}})
        }
    };
    let wanted = (profile(), prop::sample::select(vec!["DryRun", "Apply", "Ignore"]), prop::bool::ANY, prop::bool::ANY);
    let configured = (wanted, prop::collection::vec(damage::damage(), 0..3)).prop_map(
        move |((profile, action, bypass, has_options), damages)| {
            let mut spec = json!({"action": action, "bypassOptimisticLock": bypass, "failurePolicy": "Continue", "waitTimeout": "1h"});
            if has_options {
                spec["options"] = sound(profile);
            }
            let mut config = config(profile, spec);
            damages.iter().for_each(|damage| damage.inflict(&mut config, &["/spec"]));
            config
        },
    )
    .boxed();
    let target = (prop::sample::select(targets()), prop::collection::vec(damage::damage(), 0..4))
        .prop_map(move |(mut object, damages)| {
            damages.iter().for_each(|damage| damage.inflict(&mut object, &below));
            object
        })
        .boxed();
    let edit = prop_oneof![
        4 => configured.clone().prop_map(Edit::Configure),
        1 => configured.prop_map(Edit::Store),
        3 => target.clone().prop_map(Edit::Write),
        3 => target.prop_map(Edit::Store),
        1 => prop::sample::select(targets()).prop_map(Edit::Delete),
        2 => (0..120u64).prop_map(Edit::Pause),
    ];
    let begin = |profile: &'static str| {
        prop::sample::select(vec!["DryRun", "Apply", "Apply"])
            .prop_map(move |action| Edit::Configure(config(profile, json!({"action": action}))))
    };
    // Both profiles are in use, or about to be.
    (begin(LOAD_AWARE), begin(DENSITY), 0..300u64, prop::collection::vec(edit, 2..8))
        .prop_map(|(one, other, pause, edits)| [one, other, Edit::Pause(pause)].into_iter().chain(edits).collect())
}

/// The edits of a seed.
fn edits_of(seed: u64) -> Vec<Edit> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    edits().new_tree(&mut TestRunner::new_with_rng(ProptestConfig::default(), rng)).unwrap().current()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Sends a request that may be refused. Returns the code of the answer.
async fn send(platform: &Platform, method: &str, uri: &str, content: &str, object: &Value) -> u16 {
    let request = http::Request::builder().method(method).uri(uri).header("content-type", content);
    match platform.client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(_) => 0,
    }
}

async fn perform(platform: &Platform, edit: &Edit, counts: &mut Counts) {
    match edit {
        Edit::Configure(object) | Edit::Write(object) => {
            let uri = format!("{}?fieldManager=somebody&force=true", path(object));
            let code = send(platform, "PATCH", &uri, "application/apply-patch+yaml", object).await;
            if code < 300 {
                counts.accepted += 1
            } else {
                counts.refused += 1
            }
            if object.get("status").is_some() {
                let uri = format!("{}/status?fieldManager=somebody&force=true", path(object));
                send(platform, "PATCH", &uri, "application/apply-patch+yaml", object).await;
            }
        }
        Edit::Store(object) => {
            let mut object = object.clone();
            // An existing object keeps its identity.
            let known = platform.find(&object).await.unwrap_or_default();
            let uid = known["metadata"]["uid"].as_str().unwrap_or("00000000-0000-0000-0000-000000000042").to_owned();
            let generation = known["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
            object["metadata"]["uid"] = uid.into();
            object["metadata"]["generation"] = generation.into();
            object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
            if known["metadata"]["managedFields"].is_array() {
                object["metadata"]["managedFields"] = known["metadata"]["managedFields"].clone();
            }
            let path = path(&object);
            let segments: Vec<&str> = path.split('/').skip(2).collect();
            let key = match segments.as_slice() {
                // Built-in objects are not stored as JSON.
                ["v1", ..] => return,
                [group, _, "namespaces", namespace, plural, name] => {
                    format!("/registry/{group}/{plural}/{namespace}/{name}")
                }
                [group, _, plural, name] => format!("/registry/{group}/{plural}/{name}"),
                other => panic!("{other:?}"),
            };
            platform.cluster.store(&key, object.to_string().as_bytes()).await.unwrap();
            counts.stored += 1;
        }
        Edit::Delete(object) => platform.delete(object).await,
        Edit::Pause(milliseconds) => tokio::time::sleep(Duration::from_millis(*milliseconds)).await,
    }
}

#[derive(Debug, Default)]
struct Counts {
    accepted: usize,
    refused: usize,
    stored: usize,
    most: usize,
    phases: std::collections::BTreeMap<String, usize>,
}

/// Whether the status of a configuration is complete.
fn is_clear(config: &Value) -> bool {
    let phase = phase(config);
    let is_current = config.pointer("/status/observedGeneration") == config.pointer("/metadata/generation");
    let is_malformed = reason(config, "Failed") == "Malformed";
    is_malformed || is_current && !reason(config, phase).is_empty() && !["Pending", "Drafting"].contains(&phase)
}

async fn notes(platform: &Platform, profile: &str) -> Vec<String> {
    let events = platform.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events", None, Value::Null).await;
    let about = |event: &&Value| event["regarding"]["name"] == profile && event["type"] == "Warning";
    let events = events["items"].as_array().unwrap().iter().filter(about);
    events.map(|event| format!("{}: {}", event["reason"], event["note"])).collect()
}

async fn attempt(platform: &Platform, seed: u64, counts: &mut Counts) -> Result<(), String> {
    platform.tidy_up().await;
    platform.populate().await;
    let operator = RunningOperator::start(platform).await;
    platform.complete(EXAMPLE, json!({}), &[]).await;
    let edits = edits_of(seed);
    let mark = platform.mark().await;
    for edit in &edits {
        perform(platform, edit, counts).await;
    }

    // The operator settles soon.
    let (start, mut last, mut since) = (Instant::now(), 0, Instant::now());
    while since.elapsed() < QUIET {
        let requests = platform.requests_since(mark).await;
        if requests.len() != last {
            (last, since) = (requests.len(), Instant::now());
        }
        if !operator.is_alive() {
            return Err("the operator has panicked".into());
        }
        if start.elapsed() > REST {
            let lines: Vec<String> = requests.iter().rev().take(12).map(ToString::to_string).collect();
            return Err(format!("no rest; the last of {} requests:\n{}", requests.len(), lines.join("\n")));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let most = MOST + PER_EDIT * edits.len();
    counts.most = counts.most.max(last);
    if last > most {
        return Err(format!("{last} requests, at most {most} expected"));
    }

    // The status is complete, or an event says why not.
    for profile in [LOAD_AWARE, DENSITY] {
        let told = async || {
            let config = platform.config(profile).await;
            match (is_clear(&config), notes(platform, profile).await.is_empty()) {
                (true, _) => Ok(phase(&config).to_owned()),
                (false, false) => Ok("told by an event".to_owned()),
                (false, true) => Err(format!("{profile} says nothing clear: {:#}", config["status"])),
            }
        };
        *counts.phases.entry(poll(REST, told).await?).or_default() += 1;
    }

    // The other configuration is not affected.
    let drift = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "example-config", "namespace": "openshift-cnv"}, "data": {"example-key": "somebody's"}});
    platform.patch("kubectl-edit", &drift).await;
    let drifted = async || {
        let config = platform.config(EXAMPLE).await;
        if phase(&config) == "Drifted" { Ok(config) } else { Err(config) }
    };
    let drifted = poll(REST, drifted).await;
    let other =
        drifted.map_err(|config| format!("another profile is no longer looked after: {:#}", config["status"]))?;
    if item(&other, "configure-example-component")["driftedBy"]["manager"] != "kubectl-edit" {
        return Err(format!("{other:#}"));
    }
    operator.stop().await;
    Ok(())
}

/// W23 (one bad object stops all): and whatever else people, other programs and older versions leave behind.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_there_the_operator_lives_rests_and_says_where_it_stands() {
    let first = number("BAD_INPUT_SEED").unwrap_or_default();
    let count = number("BAD_INPUT").unwrap_or(if first > 0 { 1 } else { USUAL });
    let platform = Platform::shared().await;
    let (mut counts, mut failures) = (Counts::default(), Vec::new());
    for seed in first..first + count {
        if let Err(why) = attempt(&platform, seed, &mut counts).await {
            println!("BAD_INPUT_SEED={seed}: {why}");
            failures.push(format!("BAD_INPUT_SEED={seed}: {why}\n{:?}", shortened(&edits_of(seed))));
        }
    }
    println!("{count} cases: {counts:?}");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n\n"));
}

fn shortened(edits: &[Edit]) -> Vec<String> {
    let line = |edit: &Edit| format!("{edit:?}").chars().take(700).collect();
    edits.iter().map(line).collect()
}
