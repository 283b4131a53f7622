//! Offers: one ignored configuration for each advertised profile.

use serde_json::{Value, json};

use super::no_psi;
use crate::webhook::Webhook;
use testkit::{
    configs::{config, phase},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform},
    running_operator::RunningOperator,
};

const CONFIGS: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs";
const DESCRIPTION: &str = "advisor.kubevirt.io/description";
const IMPACT: &str = "advisor.kubevirt.io/impact-summary";
const AUTO_CREATED: &str = "advisor.kubevirt.io/auto-created";
const CATEGORY: &str = "advisor.kubevirt.io/category";

/// The annotations and labels of an offer.
fn texts(profile: &str) -> (Value, Value) {
    let (description, impact, category) = match profile {
        LOAD_AWARE => (
            "Enables load-aware VM rebalancing and PSI metrics for intelligent scheduling",
            "Medium - May require node reboots if PSI metrics are enabled",
            "scheduling",
        ),
        _ => (
            "Enables higher VM density through swap and other optimizations",
            "Enables swap for kubelet to allow memory overcommit and higher VM density. Requires nodes with swap \
             partition labeled CNV_SWAP.",
            "density",
        ),
    };
    let annotations = json!({AUTO_CREATED: "true", DESCRIPTION: description, IMPACT: impact});
    (annotations, json!({CATEGORY: category}))
}

async fn names(platform: &Platform) -> Vec<String> {
    let list = platform.request("GET", CONFIGS, None, Value::Null).await;
    let items = list["items"].as_array().unwrap().iter();
    items.map(|config| config["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// D30 (deleted configuration): as new, and ignored.
#[tokio::test(flavor = "multi_thread")]
async fn every_advertised_profile_is_offered_and_offered_again_when_it_is_deleted() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    for profile in [LOAD_AWARE, DENSITY] {
        let offered = platform.until_phase(profile, "Ignored").await;
        let (annotations, labels) = texts(profile);
        let metadata = &offered["metadata"];
        assert_eq!((&metadata["annotations"], &metadata["labels"]), (&annotations, &labels), "{profile}");
        let spec =
            json!({"profile": profile, "action": "Ignore", "failurePolicy": "Abort", "bypassOptimisticLock": false});
        assert_eq!(offered["spec"], spec);
        assert_eq!(offered["status"]["impactSeverity"], "High");
    }
    assert_eq!(names(&platform).await, [LOAD_AWARE, DENSITY], "an example is not for everybody");

    // Also one that was in use, and then as new. A configuration of an administrator is not offered again.
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    platform.configure("example-profile", json!({"action": "DryRun"})).await;
    let used = platform.until_phase("example-profile", "ReviewRequired").await;
    platform.delete(&used).await;
    for profile in [LOAD_AWARE, DENSITY] {
        let uid = platform.config(profile).await["metadata"]["uid"].clone();
        platform.delete(&config(profile, Value::Null)).await;
        let is_new = |config: &Value| phase(config) == "Ignored" && config["metadata"]["uid"] != uid;
        let offered = platform.until(profile, "offered again", is_new).await;
        assert_eq!(offered["metadata"]["annotations"], texts(profile).0);
        assert_eq!(offered["status"]["items"], Value::Null);
    }
    assert_eq!(names(&platform).await, [LOAD_AWARE, DENSITY]);
    operator.stop().await;
}

/// W41 (profile never offered): by an upgrade.
#[tokio::test(flavor = "multi_thread")]
async fn older_words_of_ours_are_refreshed_and_those_of_others_are_not() {
    let platform = Platform::shared().await;
    // An offer of an older version, of which somebody has edited one text and removed another.
    let mut older = config(LOAD_AWARE, json!({"action": "Ignore"}));
    older["metadata"]["annotations"] = json!({AUTO_CREATED: "true", DESCRIPTION: "older words", IMPACT: "older words"});
    older["metadata"]["labels"] = json!({CATEGORY: "older-word", "team": "platform"});
    let uri = format!("{CONFIGS}?fieldManager=virt-advisor-operator");
    platform.request("POST", &uri, Some("application/json"), older).await;
    let mut edit = testkit::configs::config(LOAD_AWARE, json!({}));
    edit["metadata"]["annotations"] = json!({IMPACT: "ask the platform team first"});
    platform.patch("kubectl-edit", &edit).await;
    // A configuration of an administrator with texts of their own.
    let mut own = config(DENSITY, json!({"action": "Ignore"}));
    own["metadata"]["annotations"] = json!({DESCRIPTION: "words of their own"});
    platform.apply("admin", &own, "").await;

    let operator = RunningOperator::start(&platform).await;
    let (texts, labels) = texts(LOAD_AWARE);
    let refreshed = |config: &Value| config["metadata"]["annotations"][DESCRIPTION] == texts[DESCRIPTION];
    let config = platform.until(LOAD_AWARE, "refreshed", refreshed).await;
    assert_eq!(config["metadata"]["annotations"][IMPACT], "ask the platform team first");
    let expected = json!({CATEGORY: labels[CATEGORY], "team": "platform"});
    assert_eq!(config["metadata"]["labels"], expected);
    let config = platform.until_phase(DENSITY, "Ignored").await;
    assert_eq!(config["metadata"]["annotations"], json!({DESCRIPTION: "words of their own"}));
    operator.stop().await;

    // Edited while the operator is stopped, and removed while it runs: neither is reverted.
    let mut edit = testkit::configs::config(LOAD_AWARE, json!({}));
    edit["metadata"]["annotations"] = json!({DESCRIPTION: "words of the platform team"});
    platform.patch("kubectl-edit", &edit).await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(DENSITY, json!({"action": "DryRun"})).await;
    platform.until_phase(DENSITY, "ReviewRequired").await;
    edit["metadata"]["annotations"] = json!({IMPACT: null});
    edit["spec"]["action"] = "DryRun".into();
    platform.patch("kubectl-edit", &edit).await;
    let config = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let expected = json!({AUTO_CREATED: "true", DESCRIPTION: "words of the platform team"});
    assert_eq!(config["metadata"]["annotations"], expected);
    operator.stop().await;
}

/// W41 (profile never offered): until it is accepted.
#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_is_refused_is_made_again() {
    let platform = Platform::shared().await;
    let webhook = Webhook::against_writes("not today").await;
    let probe = config(DENSITY, json!({}));
    webhook.protect(&platform, &probe).await;
    let mark = platform.mark().await;
    let operator = RunningOperator::start(&platform).await;
    eventually("it was tried more than once", async || {
        let requests = platform.requests_since(mark).await;
        (requests.iter().filter(|request| request.verb == "create").count() > 2).then_some(())
    })
    .await;
    assert_eq!(names(&platform).await, [""; 0]);
    webhook.lift(&platform, &probe).await;
    for profile in [LOAD_AWARE, DENSITY] {
        platform.until_phase(profile, "Ignored").await;
    }
    operator.stop().await;
}
