//! Stored objects that the definition would refuse: each gets a status that says why, and does not affect others.

use advisor::kstatus::kstatus;
use serde_json::{Value, json};

use super::no_psi;
use testkit::{
    configs::{condition, config, item, phase, reason},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform},
    running_operator::RunningOperator,
};

/// Writes a configuration to etcd without validation, as an older definition might have accepted it.
async fn store(platform: &Platform, profile: &str, number: u32, spec: Value) {
    let mut object = config(profile, spec);
    object["metadata"]["uid"] = format!("00000000-0000-0000-0000-{number:012}").into();
    object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    object["metadata"]["generation"] = 1.into();
    let key = format!("/registry/advisor.kubevirt.io/virtplatformconfigs/{profile}");
    platform.cluster.store(&key, object.to_string().as_bytes()).await.unwrap();
}

async fn notes(platform: &Platform, profile: &str) -> Vec<String> {
    let events = platform.request("GET", "/apis/events.k8s.io/v1/namespaces/default/events", None, Value::Null).await;
    let about = |event: &&Value| event["regarding"]["name"] == profile;
    let events = events["items"].as_array().unwrap().iter().filter(about);
    events.map(|event| format!("{}: {}", event["reason"].as_str().unwrap(), event["note"].as_str().unwrap())).collect()
}

/// W23 (one bad object stops all): nor itself, once it is corrected.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_object_is_told_what_is_wrong_with_it_and_stops_nobody_else() {
    let platform = Platform::shared().await;
    store(&platform, "example-profile", 1, json!({"action": "DryRun", "waitTimeout": 30})).await;
    let too_high = json!({"virtHigherDensity": {"enableSwap": true, "memoryToRequestRatio": 500}});
    store(&platform, DENSITY, 2, json!({"action": "Apply", "options": too_high})).await;
    let timeout = json!({"action": "Apply", "waitTimeout": "abc", "options": no_psi(), "failurePolicy": "Abort"});
    store(&platform, LOAD_AWARE, 3, timeout).await;
    let operator = RunningOperator::start(&platform).await;

    // Everything but the timeout can be parsed.
    platform.until_phase(LOAD_AWARE, "Completed").await;
    // Options that are invalid.
    let refused = platform.until_phase(DENSITY, "PrerequisiteFailed").await;
    assert_eq!(reason(&refused, "PrerequisiteFailed"), "InvalidOptions");
    let message = condition(&refused, "PrerequisiteFailed")["message"].as_str().unwrap();
    assert!(message.starts_with("Invalid profile options: ") && message.contains("500"), "{message}");
    // Nothing can be parsed, and the API server refuses even a status update.
    let told = eventually("an event tells", async || {
        let notes = notes(&platform, "example-profile").await;
        notes.into_iter().find(|note| note.starts_with("Malformed: "))
    })
    .await;
    assert!(told.contains("Expected a string") && told.ends_with("Correct it or delete it."), "{told}");
    // Created later, with an unknown profile.
    store(&platform, "memory-magic", 4, json!({"action": "Apply"})).await;
    let unknown = platform.until("memory-magic", "failed", |config| phase(config) == "Failed").await;
    let message = condition(&unknown, "Failed")["message"].as_str().unwrap();
    assert!(message.contains("memory-magic"), "{message}");
    assert_eq!(kstatus(&unknown), "Failed");
    assert_eq!((reason(&unknown, "Stalled"), &condition(&unknown, "Ready")["status"]), ("Malformed", &json!("False")));

    // The others were not affected; the malformed ones continue when they are corrected.
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "waitTimeout": "1h"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    platform.configure("example-profile", json!({"waitTimeout": "30m"})).await;
    let planned = platform.until_phase("example-profile", "ReviewRequired").await;
    assert_eq!(item(&planned, "configure-example-component")["state"], "Pending");
    let options = json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": null}});
    platform.configure(DENSITY, json!({"options": options})).await;
    platform.until_phase(DENSITY, "Completed").await;
    operator.stop().await;
}

/// W12 (retry without pause): not one request.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_options_are_not_looked_at_again_until_they_are_edited() {
    let platform = Platform::shared().await;
    let too_high = json!({"virtHigherDensity": {"enableSwap": true, "memoryToRequestRatio": 500}});
    store(&platform, DENSITY, 1, json!({"action": "Apply", "options": too_high})).await;
    let operator = RunningOperator::rechecking_every(&platform, std::time::Duration::from_millis(200)).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    platform.until_phase(DENSITY, "PrerequisiteFailed").await;
    let mark = platform.mark().await;
    // The other plan is rechecked meanwhile, several times.
    let requests = eventually("rechecks of the other plan", async || {
        let requests = platform.requests_since(mark).await;
        (requests.iter().filter(|request| request.resource == "kubedeschedulers").count() > 4).then_some(requests)
    })
    .await;
    let about_it: Vec<_> = requests.iter().filter(|request| request.name == DENSITY || request.is_write()).collect();
    assert!(about_it.is_empty(), "{about_it:?}");
    operator.stop().await;
}
