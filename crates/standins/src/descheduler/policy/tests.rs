//! The policy of a KubeDescheduler, field by field.

mod releases;

use super::*;

fn context() -> PolicyContext {
    PolicyContext {
        release: Release::NEWEST,
        prometheus_url: "http://127.0.0.1:9090".to_owned(),
        protected: PolicyContext::protected_among(["default", "openshift-monitoring", "kube-system", "openshift-cnv"]),
        time_scale: 1.0,
    }
}

/// As the profile `load-aware-rebalancing` writes it, with changes.
fn spec(changes: Value) -> Spec {
    let mut spec = json!({
        "deschedulingIntervalSeconds": 60,
        "managementState": "Managed",
        "mode": "Automatic",
        "profiles": ["KubeVirtRelieveAndMigrate"],
        "profileCustomizations": {"devEnableEvictionsInBackground": true, "devEnableSoftTainter": true},
    });
    for (name, value) in changes.as_object().unwrap() {
        spec[name] = value.clone();
    }
    Spec::read(&spec).unwrap()
}

fn customized(customizations: Value) -> Spec {
    spec(json!({"profileCustomizations": customizations}))
}

fn policy(spec: &Spec) -> Policy {
    Policy::of(spec, &context()).unwrap()
}

fn document(spec: &Spec) -> Value {
    serde_saphyr::from_str(&policy(spec).text).unwrap()
}

fn arguments(spec: &Spec) -> Value {
    document(spec)["profiles"][0]["pluginConfig"][0]["args"].clone()
}

fn query(name: &str) -> Value {
    arguments(&customized(json!({"devActualUtilizationProfile": name})))["metricsUtilization"]["prometheus"]["query"]
        .clone()
}

#[test]
fn flags_have_interval_mode_gate_and_verbosity() {
    let gate = "--feature-gates=EvictionsInBackground=true";
    assert_eq!(policy(&spec(json!({}))).flags(), ["--descheduling-interval=60s", gate, "-v=2"]);
    let dry = ["--descheduling-interval=60s", gate, "--dry-run=true", "-v=2"];
    assert_eq!(policy(&spec(json!({"mode": "Predictive"}))).flags(), dry);
    let unset = json!({"deschedulingIntervalSeconds": 60, "profiles": ["KubeVirtRelieveAndMigrate"]});
    assert_eq!(policy(&Spec::read(&unset).unwrap()).flags(), dry, "unless told otherwise, nothing is evicted");
    for (level, flag) in [("", "-v=2"), ("Normal", "-v=2"), ("Debug", "-v=4"), ("Trace", "-v=6"), ("TraceAll", "-v=8")]
    {
        assert_eq!(policy(&spec(json!({"logLevel": level}))).flags().last().unwrap(), flag);
    }
}

#[test]
fn the_interval_shrinks_with_the_time_scale_down_to_a_second() {
    for (scale, flag) in [(1.0, "60s"), (7.0, "8.571s"), (40.0, "1.5s"), (600.0, "1s"), (0.0, "60s")] {
        let time_scale = if scale == 0.0 { 1.0 } else { scale };
        let policy = Policy::of(&spec(json!({})), &PolicyContext { time_scale, ..context() }).unwrap();
        assert_eq!(policy.flags()[0], format!("--descheduling-interval={flag}"));
    }
}

#[test]
fn thresholds_are_those_of_the_operators_table() {
    let cases = [
        (json!({}), 0, 10, Some(true)),
        (json!({"devDeviationThresholds": "Low"}), 10, 10, Some(true)),
        (json!({"devDeviationThresholds": "Medium"}), 20, 20, Some(true)),
        (json!({"devDeviationThresholds": "High"}), 30, 30, Some(true)),
        (json!({"devDeviationThresholds": "AsymmetricLow"}), 0, 10, Some(true)),
        (json!({"devDeviationThresholds": "AsymmetricMedium"}), 0, 20, Some(true)),
        (json!({"devDeviationThresholds": "AsymmetricHigh"}), 0, 30, Some(true)),
        (json!({"devLowNodeUtilizationThresholds": "Low"}), 10, 30, None),
        (json!({"devLowNodeUtilizationThresholds": "Medium"}), 20, 50, None),
        (json!({"devLowNodeUtilizationThresholds": "High"}), 40, 70, None),
        (json!({"devLowNodeUtilizationThresholds": ""}), 20, 50, Some(true)),
    ];
    for (customizations, under, over, is_deviation) in cases {
        let arguments = arguments(&customized(customizations.clone()));
        assert_eq!(arguments["thresholds"], json!({"MetricResource": under}), "{customizations}");
        assert_eq!(arguments["targetThresholds"], json!({"MetricResource": over}), "{customizations}");
        assert_eq!(arguments["useDeviationThresholds"].as_bool(), is_deviation, "{customizations}");
    }
}

#[test]
fn limits_go_to_the_policy_and_to_the_plugin() {
    for (given, total, node) in [
        (json!({}), 5, 2),
        (json!({"total": 8}), 8, 2),
        (json!({"node": 3}), 5, 3),
        (json!({"total": 80, "node": 4}), 80, 4),
        // As Go converts them: no limit.
        (json!({"total": -1, "node": -2}), u64::MAX, u64::MAX - 1),
    ] {
        let spec = spec(json!({"evictionLimits": given}));
        let document = document(&spec);
        assert_eq!(document["maxNoOfPodsToEvictTotal"], total, "{given}");
        assert_eq!(document["maxNoOfPodsToEvictPerNode"], node, "{given}");
        assert_eq!(arguments(&spec)["evictionLimits"], json!({"node": node}), "{given}");
    }
}

#[test]
fn the_metric_is_chosen_by_name_or_written_out() {
    let default = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
    for (name, expected) in [
        ("", default),
        ("PrometheusCPUMemoryCombinedProfile", default),
        ("PrometheusCPUUsage", "instance:node_cpu:rate:sum"),
        ("PrometheusCPUPSIPressure", "rate(node_pressure_cpu_waiting_seconds_total[1m])"),
        ("PrometheusMemoryPSIPressure", "rate(node_pressure_memory_waiting_seconds_total[1m])"),
        ("PrometheusIOPSIPressure", "rate(node_pressure_io_waiting_seconds_total[1m])"),
        ("PrometheusCPUCombined", "descheduler:combined_utilization_and_pressure:avg1m"),
        ("query:descheduler:node:max_metric:avg1m", "descheduler:node:max_metric:avg1m"),
        ("query:sum by (instance) (a{b=\"c: d\"})", "sum by (instance) (a{b=\"c: d\"})"),
    ] {
        assert_eq!(query(name), expected, "{name}");
    }
    assert!(query("PrometheusCPUPSIPressureByUtilization").as_str().unwrap().contains("> 0.7"));
    let spec = customized(json!({"devActualUtilizationProfile": "PrometheusCPUPSIPressure"}));
    let policy = Policy::of(&spec, &PolicyContext { time_scale: 10.0, ..context() }).unwrap();
    assert!(policy.text.contains("rate(node_pressure_cpu_waiting_seconds_total[6000ms])"), "{}", policy.text);
}

#[test]
fn profiles_of_the_administrators_stay_beside_ours() {
    let document = document(&spec(json!({
        "profiles": ["AffinityAndTaints", "SoftTopologyAndDuplicates", "EvictPodsWithPVC", "KubeVirtRelieveAndMigrate"],
        "profileCustomizations": {"namespaces": {"excluded": ["mine", "kube-system"]}, "thresholdPriority": 7},
    })));
    let names: Vec<_> =
        document["profiles"].as_array().unwrap().iter().map(|profile| profile["name"].clone()).collect();
    assert_eq!(names, ["AffinityAndTaints", "SoftTopologyAndDuplicates", "KubeVirtRelieveAndMigrate"]);
    let evictors: Vec<_> = document["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| profile["pluginConfig"].as_array().unwrap().last().unwrap()["args"].clone())
        .collect();
    assert_eq!(evictors[0], json!({"priorityThreshold": {"value": 7}}), "claims do not protect");
    assert_eq!(evictors[2]["noEvictionPolicy"], "Mandatory");
    let excluded = document["profiles"][0]["pluginConfig"][0]["args"]["namespaces"]["exclude"].as_array().unwrap();
    assert_eq!(excluded[excluded.len() - 2..], ["mine", "kube-system"], "what is protected, too, is named twice");
}

#[test]
fn the_fallback_of_old_operators_balances_by_requests_and_needs_no_prometheus() {
    let spec = spec(json!({"profiles": ["LongLifecycle"], "profileCustomizations": {}}));
    let policy = policy(&spec);
    let document = document(&spec);
    assert_eq!(document.get("metricsProviders"), None);
    assert_eq!(document.get("maxNoOfPodsToEvictTotal"), None);
    assert_eq!(policy.token_secret(), None);
    assert!(!policy.in_background);
    let balance = &document["profiles"][0]["pluginConfig"][1];
    assert_eq!(balance["args"]["thresholds"], json!({"cpu": 20, "memory": 20, "pods": 20}));
}

#[test]
fn the_fallback_balances_by_a_metric_where_one_is_chosen() {
    let spec = spec(json!({
        "profiles": ["DevPreviewLongLifecycle"],
        "profileCustomizations": {"devActualUtilizationProfile": "PrometheusCPUUsage"},
    }));
    let document = document(&spec);
    assert_eq!(document["profiles"][0]["name"], "LongLifecycle");
    assert_eq!(document["metricsProviders"][0]["source"], "Prometheus");
    let balance = &document["profiles"][0]["pluginConfig"][1]["args"];
    assert_eq!(balance["metricsUtilization"]["prometheus"]["query"], "instance:node_cpu:rate:sum");
    assert_eq!(balance["thresholds"], json!({"MetricResource": 20}));
}

#[test]
fn a_spec_that_the_operator_refuses_is_an_error_with_its_message() {
    let kubevirt = "KubeVirtRelieveAndMigrate";
    let customized = |customizations: Value| json!({"profileCustomizations": customizations});
    let scales_down = [
        (json!({"profiles": ["Nonsense"]}), "Profile \"Nonsense\" not recognized"),
        (json!({"profiles": [kubevirt, kubevirt]}), "profiles must not contain duplicates"),
        (
            json!({"profiles": [kubevirt, "LongLifecycle"]}),
            "KubeVirtRelieveAndMigrate and LongLifecycle cannot be enabled together",
        ),
        (json!({"profiles": ["CompactAndScale"]}), "profile CompactAndScale is not played"),
        (json!({"deschedulingIntervalSeconds": null}), "descheduler should have an interval set"),
        (json!({"deschedulingIntervalSeconds": 0}), "descheduler should have an interval set"),
        (json!({"deschedulingIntervalSeconds": -1}), "descheduler should have an interval set"),
    ];
    let is_logged = [
        (json!({"profiles": []}), "descheduler should have at least 1 profile enabled"),
        (
            customized(json!({"devDeviationThresholds": ""})),
            "unknown Descheduler DeviationThresholds threshold , only 'Low', 'Medium' and 'High' are supported",
        ),
        (
            customized(json!({"devLowNodeUtilizationThresholds": "X"})),
            "unknown Descheduler LowNodeUtilization threshold X, only 'Low', 'Medium' and 'High' are supported",
        ),
        (
            customized(json!({"devLowNodeUtilizationThresholds": "Low", "devDeviationThresholds": "Low"})),
            "only one of DevLowNodeUtilizationThresholds and DevDeviationThresholds customizations can be configured \
             simultaneously",
        ),
        (customized(json!({"devActualUtilizationProfile": "X"})), "unknown prometheus profile: X"),
        (
            customized(json!({"thresholdPriority": 1, "thresholdPriorityClassName": "x"})),
            "It is invalid to set both .spec.profileCustomizations.thresholdPriority and \
             .spec.profileCustomizations.ThresholdPriorityClassName fields",
        ),
        (
            customized(json!({"namespaces": {"included": ["a"], "excluded": ["b"]}})),
            "It is forbidden to combine both included and excluded namespaces",
        ),
        (
            customized(json!({"namespaces": {"included": ["kube-system"]}})),
            "Protected namespace kube-system included. It is forbidden to include any of the protected namespaces from \
             [kube-system hypershift openshift openshift-cnv openshift-monitoring]",
        ),
    ];
    for (cases, expected) in [(&scales_down[..], true), (&is_logged[..], false)] {
        for (changes, sentence) in cases {
            let error = Policy::of(&spec(changes.clone()), &context()).unwrap_err();
            assert!(error.to_string().starts_with(sentence), "{changes}: {error}");
            assert_eq!(error.scales_down(), expected, "{changes}");
        }
    }
    let unreadable = Spec::read(&json!({"profiles": 7})).unwrap_err();
    assert!(unreadable.to_string().starts_with("spec cannot be read: "), "{unreadable}");
}

#[test]
fn the_token_is_found_in_policies_of_others_too() {
    let text = "metricsProviders: [{source: Prometheus, prometheus: {url: x, authToken: {secretReference: {namespace: a, name: b}}}}]";
    let policy = Policy::from_text(text.to_owned(), Duration::from_secs(5), Mode::Automatic);
    assert_eq!(policy.token_secret(), Some(("a".to_owned(), "b".to_owned())));
    assert_eq!(policy.flags(), ["--descheduling-interval=5s", "--feature-gates=EvictionsInBackground=true", "-v=3"]);
}
