//! What becomes of a KubeDescheduler, field by field.

use super::*;

fn surroundings() -> Surroundings {
    Surroundings {
        prometheus_url: "http://127.0.0.1:9090".to_owned(),
        protected: Surroundings::protected_among(["default", "openshift-monitoring", "kube-system", "openshift-cnv"]),
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
    Policy::of(spec, &surroundings()).unwrap()
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
fn the_defaults_become_the_documented_policy() {
    let expected = r#"
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 2
maxNoOfPodsToEvictTotal: 5
metricsProviders:
- source: Prometheus
  prometheus:
    url: http://127.0.0.1:9090
    authToken: {secretReference: {namespace: openshift-kube-descheduler-operator, name: descheduler-prometheus-token}}
nodeSelector: kubevirt.io/schedulable=true
profiles:
- name: KubeVirtRelieveAndMigrate
  pluginConfig:
  - name: LowNodeUtilization
    args:
      evictableNamespaces: {exclude: [kube-system, hypershift, openshift, openshift-cnv, openshift-monitoring]}
      evictionLimits: {node: 2}
      metricsUtilization:
        source: Prometheus
        prometheus: {query: "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m"}
      thresholds: {MetricResource: 0}
      targetThresholds: {MetricResource: 10}
      useDeviationThresholds: true
  - name: DefaultEvictor
    args: {evictLocalStoragePods: true, noEvictionPolicy: Mandatory, podProtections: {}}
  plugins:
    balance: {enabled: [LowNodeUtilization]}
    filter: {enabled: [DefaultEvictor]}
"#;
    let expected: Value = serde_saphyr::from_str(expected).unwrap();
    assert_eq!(document(&spec(json!({}))), expected);
    assert_eq!(document(&spec(json!({"profiles": ["DevKubeVirtRelieveAndMigrate"]}))), expected, "the former name");
}

#[test]
fn flags_tell_interval_mode_gate_and_verbosity() {
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
        let policy = Policy::of(&spec(json!({})), &Surroundings { time_scale, ..surroundings() }).unwrap();
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
    let policy = Policy::of(&spec, &Surroundings { time_scale: 10.0, ..surroundings() }).unwrap();
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
    assert_eq!(excluded.iter().filter(|name| *name == "kube-system").count(), 1);
    assert_eq!(excluded.last().unwrap(), "mine");
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
fn what_the_operator_would_refuse_is_refused_with_a_sentence() {
    let kubevirt = "KubeVirtRelieveAndMigrate";
    let cases = [
        (json!({"profiles": []}), "descheduler should have at least 1 profile enabled"),
        (json!({"profiles": ["Nonsense"]}), "profile Nonsense is not known"),
        (json!({"profiles": [kubevirt, kubevirt]}), "profile KubeVirtRelieveAndMigrate is listed twice"),
        (
            json!({"profiles": [kubevirt, "LongLifecycle"]}),
            "profiles KubeVirtRelieveAndMigrate and LongLifecycle cannot",
        ),
        (json!({"profiles": ["CompactAndScale"]}), "profile CompactAndScale is not played"),
        (json!({"deschedulingIntervalSeconds": null}), "descheduler should have an interval set"),
        (json!({"deschedulingIntervalSeconds": 0}), "descheduler should have an interval set"),
        (json!({"deschedulingIntervalSeconds": -1}), "descheduler should have an interval set"),
        (json!({"evictionLimits": {"node": -1}}), "evictionLimits.node is -1"),
        (json!({"profileCustomizations": {"devDeviationThresholds": ""}}), "unknown Descheduler DeviationThresholds"),
        (json!({"profileCustomizations": {"devLowNodeUtilizationThresholds": "X"}}), "unknown Descheduler LowNode"),
        (
            json!({"profileCustomizations": {"devLowNodeUtilizationThresholds": "Low", "devDeviationThresholds": "Low"}}),
            "devLowNodeUtilizationThresholds and devDeviationThresholds",
        ),
        (json!({"profileCustomizations": {"devActualUtilizationProfile": "X"}}), "unknown devActualUtilizationProfile"),
        (
            json!({"profileCustomizations": {"thresholdPriority": 1, "thresholdPriorityClassName": "x"}}),
            "thresholdPriority and thresholdPriorityClassName",
        ),
        (
            json!({"profileCustomizations": {"namespaces": {"included": ["a"], "excluded": ["b"]}}}),
            "namespaces.included and namespaces.excluded",
        ),
        (json!({"profileCustomizations": {"namespaces": {"included": ["kube-system"]}}}), "namespace kube-system is"),
    ];
    for (changes, expected) in cases {
        let refusal = Policy::of(&spec(changes.clone()), &surroundings()).unwrap_err();
        assert!(refusal.to_string().starts_with(expected), "{changes}: {refusal}");
        assert!(refusal.ends_what_runs());
    }
    let unreadable = Spec::read(&json!({"profiles": 7})).unwrap_err();
    assert!(unreadable.to_string().starts_with("spec cannot be read: "), "{unreadable}");
}

#[test]
fn the_token_is_found_in_policies_of_others_too() {
    let text = "metricsProviders: [{source: Prometheus, prometheus: {url: x, authToken: {secretReference: {namespace: a, name: b}}}}]";
    let policy = Policy::as_it_is(text.to_owned(), Duration::from_secs(5), Mode::Automatic);
    assert_eq!(policy.token_secret(), Some(("a".to_owned(), "b".to_owned())));
    assert_eq!(policy.flags(), ["--descheduling-interval=5s", "--feature-gates=EvictionsInBackground=true", "-v=3"]);
}
