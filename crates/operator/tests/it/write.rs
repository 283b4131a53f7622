//! Writing an item: never over a change that the plan does not know, and never twice.

use advisor::{
    Plan, PlannedItem,
    machine::{NotWritten, Written},
    writing::Lock,
};
use operator::{WriteError, write};
use serde_json::{Value, json};
use testkit::platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config};

fn item<'a>(plan: &'a Plan, name: &str) -> &'a PlannedItem {
    plan.items.iter().find(|planned| planned.item.name == name).unwrap()
}

const DESCHEDULER: &str = "enable-load-aware-descheduling";
const PSI: &str = "enable-psi-metrics";

async fn status(platform: &Platform, method: &str, uri: &str, content: &str, body: Value) -> u16 {
    let request = http::Request::builder().method(method).uri(uri).header("content-type", content);
    match platform.client.request::<Value>(request.body(body.to_string().into_bytes()).unwrap()).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

/// W24 (race before the write): only the API server can tell what changes between our comparison and the write. All other tests here
/// rely on these preconditions of server-side apply.
#[tokio::test]
async fn the_preconditions_that_writes_rely_on_hold_on_this_api_server() {
    let platform = Platform::shared().await;
    let apply = "application/apply-patch+yaml";
    let uri = "/apis/machineconfiguration.openshift.io/v1/machineconfigs/pinned?fieldManager=test&force=true";
    let config = |metadata: Value| {
        let mut object = machine_config("pinned", json!({"kernelArguments": ["a"]}));
        object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        object
    };
    assert_eq!(status(&platform, "PATCH", uri, apply, config(json!({"resourceVersion": "1"}))).await, 200, "creates");
    assert_eq!(status(&platform, "PATCH", uri, apply, config(json!({"resourceVersion": "1"}))).await, 409, "exists");

    let live = platform.get(&config(json!({}))).await;
    let (uid, version) = (&live["metadata"]["uid"], &live["metadata"]["resourceVersion"]);
    platform.delete(&live).await;
    let with_both = config(json!({"uid": uid, "resourceVersion": version}));
    assert_eq!(status(&platform, "PATCH", uri, apply, with_both).await, 409, "a deleted object does not come back");
    let version_only = config(json!({"resourceVersion": version}));
    assert_eq!(status(&platform, "PATCH", uri, apply, version_only).await, 200, "with the version alone it would");

    let uri = "/apis/machineconfiguration.openshift.io/v1/machineconfigs/pinned";
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
        {"op": "remove", "path": "/spec/kernelArguments"},
    ]);
    assert_eq!(status(&platform, "PATCH", uri, "application/json-patch+json", patch).await, 422, "a failed test");
}

/// W21 (live state as baseline): the answer, and not what is there later.
#[tokio::test]
async fn an_item_is_created_or_configured_and_the_answer_is_the_baseline() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    let plan = platform.plan(LOAD_AWARE).await;
    for planned in &plan.items {
        let Ok(Written::Applied(object)) = write(&kubernetes, planned, Lock::Compare).await else {
            panic!("{}", planned.item.name)
        };
        assert_eq!(*object, platform.get(&object).await, "the answer is the object as it is");
    }
    assert!(!platform.plan(LOAD_AWARE).await.has_changes());
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_and_not_repeated() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    let plan = platform.plan(LOAD_AWARE).await;
    for planned in &plan.items {
        write(&kubernetes, planned, Lock::Compare).await.unwrap();
        let mark = platform.cluster.audit().position(&platform.client).await.unwrap();
        assert!(
            matches!(write(&kubernetes, planned, Lock::Compare).await, Ok(Written::AlreadyApplied(_))),
            "{}",
            planned.item.name
        );
        assert_eq!(platform.cluster.audit().writes_since(mark, &platform.client).await.unwrap(), []);
    }
    let off = json!({"loadAware": {"enablePSIMetrics": false}});
    let plan = platform.plan_with(LOAD_AWARE, off).await;
    assert_eq!(write(&kubernetes, item(&plan, PSI), Lock::Compare).await, Ok(Written::Gone));
    assert_eq!(write(&kubernetes, item(&plan, PSI), Lock::Compare).await, Ok(Written::Gone), "gone is gone");
}

/// W24 (race before the write): compared right before the write, every time.
#[tokio::test]
async fn nothing_is_written_over_a_change_that_the_plan_did_not_see() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    let spec = json!({"deschedulingIntervalSeconds": 3600, "profiles": ["AffinityAndTaints"]});
    platform.apply("admin", &descheduler(spec), "").await;
    let plan = platform.plan(LOAD_AWARE).await;
    let planned = item(&plan, DESCHEDULER);

    platform.patch("admin", &descheduler(json!({"deschedulingIntervalSeconds": 600}))).await;
    let mark = platform.cluster.audit().position(&platform.client).await.unwrap();
    let error = write(&kubernetes, planned, Lock::Compare).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "KubeDescheduler openshift-kube-descheduler-operator/cluster has been modified since the plan was made"
    );
    assert_eq!(platform.cluster.audit().writes_since(mark, &platform.client).await.unwrap(), [], "not even tried");
    assert!(matches!(write(&kubernetes, planned, Lock::Bypass).await, Ok(Written::Applied(_))), "unless told to");
}

#[tokio::test]
async fn a_change_beside_the_managed_fields_is_none_of_our_business() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    platform.apply("admin", &descheduler(json!({"profiles": ["AffinityAndTaints"]})), "").await;
    let plan = platform.plan(LOAD_AWARE).await;
    platform
        .patch("admin", &descheduler(json!({"logLevel": "Debug", "profileCustomizations": {"thresholdPriority": 7}})))
        .await;
    let Ok(Written::Applied(object)) = write(&kubernetes, item(&plan, DESCHEDULER), Lock::Compare).await else {
        panic!("not stale")
    };
    assert_eq!(object["spec"]["logLevel"], "Debug");
    assert_eq!(object["spec"]["profileCustomizations"]["thresholdPriority"], 7);
}

/// W24 (race before the write): those too.
#[tokio::test]
async fn objects_that_appear_or_vanish_meanwhile_are_stale() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    let plan = platform.plan(LOAD_AWARE).await;
    platform.apply("admin", &machine_config("99-worker-psi-karg", json!({"kernelArguments": ["quiet"]})), "").await;
    let stale = write(&kubernetes, item(&plan, PSI), Lock::Compare).await;
    assert!(matches!(stale, Err(WriteError::NotWritten(NotWritten::Stale { .. }))), "it appeared: {stale:?}");

    let plan = platform.plan(LOAD_AWARE).await;
    platform.delete(&machine_config("99-worker-psi-karg", json!({}))).await;
    let stale = write(&kubernetes, item(&plan, PSI), Lock::Compare).await;
    assert!(matches!(stale, Err(WriteError::NotWritten(NotWritten::Stale { .. }))), "it vanished: {stale:?}");
}

#[tokio::test]
async fn fields_that_somebody_else_set_are_taken_out() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    platform.apply("somebody", &hyper_converged(json!({"ksmConfiguration": {"nodeLabelSelector": {}}})), "").await;
    let plan = platform.plan_with(DENSITY, json!({"virtHigherDensity": {"enableSwap": false}})).await;
    let planned = item(&plan, "configure-higher-density");
    let Ok(Written::Applied(object)) = write(&kubernetes, planned, Lock::Compare).await else { panic!("written") };
    assert_eq!(object["spec"]["ksmConfiguration"], json!({}));
    assert_eq!(object["spec"]["higherWorkloadDensity"]["memoryOvercommitPercentage"], 120);
    assert!(
        matches!(write(&kubernetes, planned, Lock::Compare).await, Ok(Written::AlreadyApplied(_))),
        "and only once"
    );
}

/// A map that loses its last member by an apply becomes null, and the API server refuses that. In both cases the map around our
/// selector is somebody else's: it was empty, or we have taken over its only member.
#[tokio::test]
async fn page_merging_is_turned_off_in_a_map_of_somebody_else() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    let selecting = |key: &str| json!({"nodeLabelSelector": {"matchLabels": {key: "yes"}}});
    let options = |ksm: Value| json!({"virtHigherDensity": {"enableSwap": false, "ksmConfiguration": ksm}});
    for theirs in [json!({}), selecting("theirs")] {
        for by_patch in [false, true] {
            let case = format!("{theirs}, by a patch: {by_patch}");
            let object = hyper_converged(json!({"ksmConfiguration": theirs}));
            platform.delete(&object).await;
            platform.apply("somebody", &hyper_converged(json!({})), "").await;
            match by_patch {
                true => platform.patch("somebody", &object).await,
                false => platform.apply("somebody", &object, "").await,
            };
            platform.carry_out(&platform.plan_with(DENSITY, options(selecting("ours"))).await).await;
            let plan = platform.plan_with(DENSITY, options(Value::Null)).await;
            assert_eq!(plan.refusals().next(), None, "{case}");
            let planned = item(&plan, "configure-higher-density");
            let Ok(Written::Applied(written)) = write(&kubernetes, planned, Lock::Compare).await else {
                panic!("{case}")
            };
            assert_eq!(written.pointer("/spec/ksmConfiguration/nodeLabelSelector"), None, "{case}");
            assert_eq!(planned.after.as_ref().unwrap()["spec"], written["spec"], "as the plan has shown: {case}");
            assert!(!platform.plan_with(DENSITY, options(Value::Null)).await.has_changes(), "{case}");
        }
    }
}

#[tokio::test]
async fn a_write_that_ended_between_setting_and_taking_out_is_finished() {
    let platform = Platform::shared().await;
    let kubernetes = platform.kubernetes().await;
    platform.apply("somebody", &hyper_converged(json!({"ksmConfiguration": {"nodeLabelSelector": {}}})), "").await;
    let plan = platform.plan_with(DENSITY, json!({"virtHigherDensity": {"enableSwap": false}})).await;
    let planned = item(&plan, "configure-higher-density");
    let manager = planned.item.field_manager.as_deref().unwrap();
    platform.apply(manager, &json!(planned.item.desired_state), "").await;

    let Ok(Written::AlreadyApplied(object)) = write(&kubernetes, planned, Lock::Compare).await else {
        panic!("not stale")
    };
    assert_eq!(object["spec"]["ksmConfiguration"], json!({}));
}
