//! Whatever was applied, a restore leaves every third-party object as it was, field by field.
//!
//! Some options are drawn at random. `RESTORE_SEED=s` draws those of a run that failed.

use std::hash::{BuildHasher, RandomState};

use advisor::{Plan, Verb, profiles, test_cluster::records};
use operator::make_plan_by;
use proptest::{
    prelude::*,
    sample::select,
    strategy::ValueTree,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use testkit::platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config};

use crate::restore::seen;

const RELEASES: [&str; 6] = ["4.17", "4.18", "4.19", "4.20", "4.21", "5.1"];

/// Null stands for a spec without options.
fn load_aware() -> Vec<Value> {
    vec![
        Value::Null,
        json!({"loadAware": {"deschedulingIntervalSeconds": 120}}),
        json!({"loadAware": {"enablePSIMetrics": false, "mode": "Predictive"}}),
        json!({"loadAware": {"evictionLimitTotal": 7, "devDeviationThresholds": "High"}}),
        json!({"loadAware": {"enablePSIMetrics": false, "evictionLimitNode": 3}}),
    ]
}

/// Null stands for a spec without options. Otherwise swap on and off × page merging not mentioned, off, on everywhere and on some nodes.
fn density() -> Vec<Value> {
    let selector = json!({"matchLabels": {"ksm": "true"}});
    let ksm = [Value::Null, json!({"enabled": false}), json!({}), json!({"nodeLabelSelector": selector})];
    let crossed = [true, false].into_iter().flat_map(|swap| {
        ksm.iter().map(move |ksm| {
            let mut options = json!({"enableSwap": swap});
            if !ksm.is_null() {
                options["ksmConfiguration"] = ksm.clone();
            }
            json!({"virtHigherDensity": options})
        })
    });
    [Value::Null].into_iter().chain(crossed).collect()
}

/// Any options that the schema allows.
fn any_load_aware() -> impl Strategy<Value = Value> {
    let thresholds = ["Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh"];
    let limits = (prop::option::of(1..=1000i32), prop::option::of(1..=100i32));
    let rest = (select(&["Automatic", "Predictive"][..]), any::<bool>(), select(thresholds.to_vec()));
    (60..=86_400i32, limits, rest).prop_map(|(interval, (total, node), (mode, psi, thresholds))| {
        json!({"loadAware": {
            "deschedulingIntervalSeconds": interval, "evictionLimitTotal": total, "evictionLimitNode": node, "mode": mode,
            "enablePSIMetrics": psi, "devDeviationThresholds": thresholds,
        }})
    })
}

/// Any options that the schema allows.
fn any_density() -> impl Strategy<Value = Value> {
    let selector = select(vec![
        Value::Null,
        json!({}),
        json!({"matchLabels": {"ksm": "true"}}),
        json!({"matchExpressions": [{"key": "ksm", "operator": "Exists"}]}),
    ]);
    let ksm = prop::option::of((any::<bool>(), selector));
    let ratio = prop::option::of(100..=300i32);
    (any::<bool>(), ksm, ratio).prop_map(|(swap, ksm, ratio)| {
        let ksm = ksm.map(|(enabled, selector)| json!({"enabled": enabled, "nodeLabelSelector": selector}));
        let ratio = ratio.map(|ratio| if swap { ratio } else { ratio.min(120) });
        json!({"virtHigherDensity": {"enableSwap": swap, "ksmConfiguration": ksm, "memoryToRequestRatio": ratio}})
    })
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(ProptestConfig::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn drawn(strategy: &impl Strategy<Value = Value>, runner: &mut TestRunner) -> Value {
    strategy.new_tree(runner).unwrap().current()
}

async fn restore_plan(platform: &Platform, profile: &str, record: &str) -> Plan {
    let about = profiles::find(profile).unwrap().about();
    let planner = records::restoring(profile, record);
    make_plan_by(&platform.kubernetes().await, about, planner.as_ref()).await.unwrap()
}

/// Every release of the descheduler's operator × new or existing objects × one, two or three plans of both profiles. In each case other
/// options come first, and the third plan has random ones.
#[tokio::test(flavor = "multi_thread")]
async fn after_any_plans_everything_can_be_set_back() {
    let asked = std::env::var("RESTORE_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed: u64 = asked.unwrap_or_else(|| RandomState::new().hash_one("seed"));
    println!("RESTORE_SEED={seed}");
    let mut runner = runner(seed);
    let platform = Platform::at_rest().await;
    platform.install().await;
    let (load_aware, density) = (load_aware(), density());
    let (mut number, mut turn) = (0, 0);
    for release in RELEASES {
        for is_existing in [false, true] {
            for plans in 1..=3 {
                let options = |known: &[Value], random: Value| -> Vec<Value> {
                    let known = (0..plans).map(|plan| known[(turn + plan) % known.len()].clone());
                    known.take(2).chain((plans == 3).then_some(random)).collect()
                };
                let load_aware = options(&load_aware, drawn(&any_load_aware(), &mut runner));
                let density = options(&density, drawn(&any_density(), &mut runner));
                turn += 1;
                let case = format!(
                    "RESTORE_SEED={seed}: {release}, existing {is_existing}, plans {} and {}",
                    json!(load_aware),
                    json!(density)
                );
                let objects = start(&platform, release, is_existing, plans).await;
                let mut before = Vec::new();
                for object in &objects {
                    before.push(seen(&platform, object).await);
                }
                for (profile, options) in [(LOAD_AWARE, load_aware), (DENSITY, density)] {
                    let first = number + 1;
                    for options in options {
                        let plan = platform.plan_with(profile, options).await;
                        assert_eq!(plan.refusals().next(), None, "{case}");
                        number += 1;
                        platform.apply("operator", &json!(records::recorded(&plan, number)), "").await;
                        platform.carry_out(&plan).await;
                    }
                    let plan = restore_plan(&platform, profile, &format!("{profile}-{first}")).await;
                    assert_eq!(plan.refusals().next(), None, "{case}");
                    platform.carry_out(&plan).await;
                    let again = restore_plan(&platform, profile, &format!("{profile}-{first}")).await;
                    assert!(again.items.iter().all(|planned| planned.verb == Verb::Unchanged), "{case}: {again:#?}");
                }
                for (object, before) in objects.iter().zip(before) {
                    assert_eq!(seen(&platform, object).await, before, "{case}");
                    let managers = platform.find(object).await.map(|it| it["metadata"]["managedFields"].to_string());
                    let is_ours = managers.as_ref().is_some_and(|it| it.contains("virt-advisor-operator/"));
                    assert!(!is_ours, "{case}: {} is still managed: {managers:?}", object["kind"]);
                }
            }
        }
        // Otherwise the same options would always meet the same number of plans.
        turn += 1;
    }
}

/// Deletes all targets, and creates some of them. Returns all of them.
async fn start(platform: &Platform, release: &str, is_existing: bool, plans: usize) -> [Value; 4] {
    let (psi, swap) = ("99-worker-psi-karg", "90-worker-kubelet-swap");
    let objects = [
        descheduler(json!({})),
        machine_config(psi, json!({})),
        machine_config(swap, json!({})),
        hyper_converged(json!({})),
    ];
    for object in &objects {
        platform.delete(object).await;
    }
    platform.define(&format!("kubedescheduler-{release}.yaml")).await;
    platform.apply("installer", &hyper_converged(json!({})), "").await;
    if is_existing {
        let profiles = ["AffinityAndTaints", "LifecycleAndUtilization"];
        let spec = json!({"deschedulingIntervalSeconds": 3600, "profiles": profiles, "managementState": "Managed"});
        platform.apply("admin", &descheduler(spec), "").await;
        platform.apply("admin", &machine_config(psi, json!({"kernelArguments": ["quiet", "psi=0"]})), "").await;
        let config = json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": []}}});
        platform.apply("admin", &machine_config(swap, config), "").await;
        // Page merging is off by an empty map, or on.
        let ksm = match plans {
            2 => json!({}),
            _ => json!({"nodeLabelSelector": {"matchLabels": {"theirs": "yes"}}}),
        };
        let density = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 130}, "ksmConfiguration": ksm});
        platform.patch("admin", &hyper_converged(density)).await;
    }
    objects
}
