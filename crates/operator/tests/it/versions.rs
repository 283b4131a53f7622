//! Every version of the descheduler's operator × new or existing objects × both profiles: the plan fits the schema, can be
//! carried out, and then has no changes.

use advisor::{Plan, Verb};
use serde_json::{Value, json};
use testkit::platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config};

fn verbs(plan: &Plan) -> Vec<&'static str> {
    plan.items.iter().map(|planned| planned.verb.as_str()).collect()
}

/// Carries out the plan and checks that the next one has no changes.
async fn carry_out_and_settle(platform: &Platform, profile: &str, options: Value, case: &str) {
    let plan = platform.plan_with(profile, options.clone()).await;
    assert_eq!(plan.refusals().count(), 0, "{case}: {:?}", plan.refusals().collect::<Vec<_>>());
    platform.carry_out(&plan).await;
    let again = platform.plan_with(profile, options).await;
    assert!(!again.has_changes(), "{case}: {:?}\n{}", verbs(&again), again.items[0].readable_diff);
    let diffs: Vec<_> = again.items.iter().filter_map(|planned| planned.item.diff.as_deref()).collect();
    assert!(diffs.iter().all(|diff| diff.ends_with("(no changes)\n")), "{case}: {diffs:?}");
}

/// D32 (all descheduler releases): as their real schemas judge it.
#[tokio::test]
async fn every_descheduler_version_gets_a_plan_that_it_accepts_and_that_settles() {
    let platform = Platform::at_rest().await;
    for (version, profile, has_customizations, has_node_limit) in [
        ("4.17", "LongLifecycle", false, false),
        ("4.18", "DevKubeVirtRelieveAndMigrate", true, false),
        ("4.19", "DevKubeVirtRelieveAndMigrate", true, true),
        ("4.20", "KubeVirtRelieveAndMigrate", true, true),
        ("4.21", "KubeVirtRelieveAndMigrate", true, true),
        ("5.1", "KubeVirtRelieveAndMigrate", true, true),
    ] {
        for existing in [false, true] {
            let case = format!("{version}, {}", if existing { "existing objects" } else { "fresh" });
            platform.delete(&descheduler(json!({}))).await;
            for name in ["99-worker-psi-karg", "90-worker-kubelet-swap"] {
                platform.delete(&machine_config(name, json!({}))).await;
            }
            platform.delete(&hyper_converged(json!({}))).await;
            platform.apply("installer", &hyper_converged(json!({})), "").await;
            platform.define(&format!("kubedescheduler-{version}.yaml")).await;
            if existing {
                let spec = json!({"managementState": "Unmanaged", "deschedulingIntervalSeconds": 3600, "profiles": ["AffinityAndTaints", "LifecycleAndUtilization"]});
                platform.apply("admin", &descheduler(spec), "").await;
                platform
                    .apply(
                        "admin",
                        &machine_config("99-worker-psi-karg", json!({"kernelArguments": ["quiet", "psi=0"]})),
                        "",
                    )
                    .await;
                let other = json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": []}}});
                platform.apply("admin", &machine_config("90-worker-kubelet-swap", other), "").await;
                let density = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 130}});
                platform.apply("admin", &hyper_converged(density), "").await;
            }
            let plan = platform.plan(LOAD_AWARE).await;
            assert_eq!(verbs(&plan), if existing { ["configured"; 2] } else { ["created"; 2] }, "{case}");
            let spec = &plan.items[1].item.desired_state.as_ref().unwrap()["spec"];
            let expected = if existing { json!(["AffinityAndTaints", profile]) } else { json!([profile]) };
            assert_eq!(spec["profiles"], expected, "{case}");
            assert_eq!(spec.get("profileCustomizations").is_some(), has_customizations, "{case}");
            assert_eq!(spec.pointer("/evictionLimits/node").is_some(), has_node_limit, "{case}");

            carry_out_and_settle(&platform, LOAD_AWARE, Value::Null, &case).await;
            carry_out_and_settle(&platform, DENSITY, Value::Null, &case).await;
            let live = platform.get(&descheduler(json!({}))).await;
            let state = if existing { "Unmanaged" } else { "Managed" };
            assert_eq!(live["spec"]["managementState"], state, "{case}: an administrator's state is never touched");
            let arguments = platform.get(&machine_config("99-worker-psi-karg", json!({}))).await;
            let expected = if existing { json!(["quiet", "psi=1"]) } else { json!(["psi=1"]) };
            assert_eq!(arguments["spec"]["kernelArguments"], expected, "{case}: other arguments are kept");
        }
    }
}

#[tokio::test]
async fn higher_density_settles_in_all_its_forms_and_can_be_taken_back() {
    let platform = Platform::shared().await;
    let density = |options: Value| json!({"virtHigherDensity": options});
    for (case, options) in [
        ("no options", Value::Null),
        ("without page merging", density(json!({}))),
        ("page merging on all nodes", density(json!({"ksmConfiguration": {}}))),
        (
            "page merging on some",
            density(json!({"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"ksm": "true"}}}})),
        ),
        ("page merging off again", density(json!({"ksmConfiguration": {"enabled": false}}))),
        ("a higher ratio", density(json!({"memoryToRequestRatio": 200}))),
        ("without swap", density(json!({"enableSwap": false}))),
        ("without swap, again", density(json!({"enableSwap": false}))),
    ] {
        carry_out_and_settle(&platform, DENSITY, options, case).await;
    }
    let hco = platform.get(&hyper_converged(json!({}))).await;
    assert_eq!(hco["spec"]["higherWorkloadDensity"]["memoryOvercommitPercentage"], 120);
    assert!(hco["spec"]["ksmConfiguration"].get("nodeLabelSelector").is_none());
}

#[tokio::test]
async fn page_merging_that_somebody_else_turned_on_is_turned_off() {
    let platform = Platform::shared().await;
    platform.apply("somebody", &hyper_converged(json!({"ksmConfiguration": {"nodeLabelSelector": {}}})), "").await;
    let options = json!({"virtHigherDensity": {"enableSwap": false}});
    let plan = platform.plan_with(DENSITY, options.clone()).await;
    let item = &plan.items[0].item;
    assert_eq!(item.removes, ["spec.ksmConfiguration.nodeLabelSelector"]);
    let diff = item.diff.as_ref().unwrap();
    assert!(diff.contains("-    nodeLabelSelector: {}\n") && diff.contains("+  ksmConfiguration: {}\n"), "{diff}");
    carry_out_and_settle(&platform, DENSITY, options, "off").await;
}

/// W14 (leftover MachineConfig), D3 (swap removal): on a real API server.
#[tokio::test]
async fn turning_swap_and_psi_off_removes_what_is_ours_with_its_reboots_and_nothing_else() {
    let platform = Platform::shared().await;
    let off = [
        (LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}}), "99-worker-psi-karg"),
        (DENSITY, json!({"virtHigherDensity": {"enableSwap": false}}), "90-worker-kubelet-swap"),
    ];
    for (profile, options, name) in off {
        let plan = platform.plan_with(profile, options.clone()).await;
        assert_eq!(plan.items.len(), 1, "nothing to remove yet");
        platform.carry_out(&platform.plan(profile).await).await;

        let plan = platform.plan_with(profile, options.clone()).await;
        let planned = &plan.items[0];
        assert_eq!((planned.verb, planned.item.target_ref.name.as_str()), (Verb::Deleted, name));
        assert!(planned.item.diff.as_ref().unwrap().contains(&format!("--- {name} (MachineConfig)\n+++ /dev/null\n")));
        let detail = planned.item.impact_detail.as_ref().unwrap();
        assert!(detail.reboot && detail.pools[0].name == "worker", "{detail:?}");

        // Somebody adds an extension: the object has two managers.
        platform.patch("kubectl-edit", &machine_config(name, json!({"extensions": ["usbguard"]}))).await;
        let plan = platform.plan_with(profile, options.clone()).await;
        assert_ne!(plan.items[0].verb, Verb::Deleted, "an object that others configure too is never deleted");
        platform.carry_out(&plan).await;
        let left = platform.get(&machine_config(name, json!({}))).await;
        assert_eq!(left["spec"], json!({"extensions": ["usbguard"]}), "just our part is gone");

        platform.delete(&machine_config(name, json!({}))).await;
        platform.apply("gitops", &machine_config(name, json!({"kernelArguments": ["psi=1"]})), "").await;
        let plan = platform.plan_with(profile, options.clone()).await;
        assert!(plan.items.iter().all(|planned| planned.item.target_ref.name != name), "somebody else's is left alone");
        assert!(plan.notes[0].contains("belongs to gitops"), "{:?}", plan.notes);
        platform.delete(&machine_config(name, json!({}))).await;
    }
}
