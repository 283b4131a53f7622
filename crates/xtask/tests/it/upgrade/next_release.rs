//! To a version whose definitions have one more field, and back.

use serde_json::{Value, json};
use testkit::{
    configs::phase,
    platform::{LOAD_AWARE, Platform},
    running_operator::RunningOperator,
};

use super::{define, operator, store, until_rechecked};

const TODAY: &str = "v0.1.0";
const NEXT: &str = "v0.2.0";
const CONFIG: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/load-aware-rebalancing";
const RECORD: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords/load-aware-rebalancing-1";

/// Today's definitions, each with the field `later` in spec and status.
fn next_definitions() -> Vec<Value> {
    let definitions = api::crd::crds().into_iter().map(|definition| serde_json::to_value(definition).unwrap());
    let grown = |mut definition: Value| {
        for part in ["spec", "status"] {
            let fields = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}/properties");
            definition.pointer_mut(&fields).unwrap()["later"] = json!({"type": "string"});
        }
        definition
    };
    definitions.filter(|definition| definition["spec"]["group"] == "advisor.kubevirt.io").map(grown).collect()
}

/// A cluster in which today's version has applied a plan and runs.
async fn applied() -> (Platform, RunningOperator) {
    let platform = Platform::at_rest().await;
    platform.install().await;
    let today = operator(&platform, TODAY).await;
    platform.complete(LOAD_AWARE, json!({"options": {"loadAware": {"enablePSIMetrics": false}}}), &[]).await;
    (platform, today)
}

/// Waits until an operator has taken the plan over, and checks that this changed nothing else.
async fn until_adopted(platform: &Platform, before: &Value, version: &str) {
    let adopted = |config: &Value| config["status"]["operatorVersion"] == version;
    let after = platform.until(LOAD_AWARE, "adopted", adopted).await;
    assert_eq!(after["spec"], before["spec"], "{version}");
    for part in ["phase", "items", "planDigest", "inputs", "record", "approval"] {
        assert_eq!(after["status"][part], before["status"][part], "{version}: {part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_upgraded_before_the_operator_or_after_it() {
    for is_first in [true, false] {
        let (platform, today) = applied().await;
        let (before, mark) = (platform.config(LOAD_AWARE).await, platform.mark().await);
        if is_first {
            define(&platform, &next_definitions()).await;
            until_rechecked(&platform, mark, 2).await;
            assert_eq!(platform.config(LOAD_AWARE).await, before, "the running operator writes nothing");
        }
        today.stop().await;
        let next = operator(&platform, NEXT).await;
        until_adopted(&platform, &before, NEXT).await;
        if !is_first {
            define(&platform, &next_definitions()).await;
        }
        let (adopted, since) = (platform.config(LOAD_AWARE).await, platform.mark().await);
        until_rechecked(&platform, since, 2).await;
        assert_eq!(platform.config(LOAD_AWARE).await, adopted, "no write follows");
        assert_eq!(platform.changes_since(mark).await, [""; 0]);
        next.stop().await;
    }
}

/// What only the newer version knows is in spec, status and record, when the older one is started again. Its definitions stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_rolled_back_loses_nothing_that_a_newer_one_stored() {
    let (platform, today) = applied().await;
    today.stop().await;
    define(&platform, &next_definitions()).await;
    for path in [CONFIG, RECORD] {
        let mut object = platform.request("GET", path, None, Value::Null).await;
        object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        object["spec"]["later"] = "kept".into();
        object["status"]["later"] = "kept".into();
        store(&platform, &object).await;
    }
    let (before, mark) = (platform.config(LOAD_AWARE).await, platform.mark().await);
    assert_eq!(before["status"]["later"], "kept");

    let today = operator(&platform, TODAY).await;
    until_rechecked(&platform, mark, 3).await;
    assert_eq!(platform.config(LOAD_AWARE).await, before, "in a stable phase it writes no status");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    // It works with what the newer one left: an edit is planned, and the record is the way back.
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "restore": {"record": "original"}})).await;
    let planned = platform.until(LOAD_AWARE, "restoring", |config| config["status"]["restore"].is_object()).await;
    assert_eq!(planned["spec"]["later"], "kept");
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(phase(&review), "ReviewRequired");
    let record = platform.request("GET", RECORD, None, Value::Null).await;
    assert_eq!((&record["spec"]["later"], &record["status"]["later"]), (&json!("kept"), &json!("kept")));
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    today.stop().await;
}
