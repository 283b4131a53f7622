use super::*;

fn all() -> Vec<(&'static str, String)> {
    [files(), editable_files()].concat()
}

fn objects(path: &str) -> Vec<Value> {
    let (_, text) = all().into_iter().find(|(found, _)| found.ends_with(path)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn one(path: &str, kind: &str, name: &str) -> Value {
    let found = objects(path).into_iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{path} has no {kind} {name}"))
}

fn everything() -> Vec<Value> {
    all().iter().flat_map(|(path, _)| objects(path)).collect()
}

#[test]
fn the_nine_manifests_of_the_guide_are_there_under_their_names() {
    let names: Vec<&str> = all().iter().filter_map(|(path, _)| path.strip_prefix("config/lab/")).collect();
    for name in [
        "descheduler.yaml",
        "descheduler-policy.yaml",
        "prometheus.yaml",
        "prometheus-rules.yaml",
        "kwok-nodes.yaml",
        "metrics-exporter.yaml",
        "eviction-webhook.yaml",
        "vm-controller.yaml",
        "virtualmachine-crd.yaml",
    ] {
        assert!(names.contains(&name), "{name} is missing from {names:?}");
    }
}

#[test]
fn the_policy_is_the_one_of_the_guide() {
    let policy = one("descheduler-policy.yaml", "ConfigMap", "descheduler-policy");
    let policy: Value = serde_saphyr::from_str(policy["data"]["policy.yaml"].as_str().unwrap()).unwrap();
    let plugin = &policy["profiles"][0]["pluginConfig"][0]["args"];
    let query = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
    assert_eq!(plugin["metricsUtilization"]["prometheus"]["query"], query);
    assert_eq!(plugin["thresholds"]["MetricResource"], 10);
    assert_eq!(plugin["targetThresholds"]["MetricResource"], 10);
    assert_eq!(plugin["useDeviationThresholds"], true);
    assert_eq!((&policy["maxNoOfPodsToEvictTotal"], &policy["maxNoOfPodsToEvictPerNode"]), (&5.into(), &2.into()));
    assert_eq!(plugin["evictionLimits"]["node"], 2, "without it the plugin stops after one");
    assert_eq!(policy["nodeSelector"], "kubevirt.io/schedulable=true");
    assert_eq!(policy["metricsProviders"][0]["prometheus"]["url"], "http://prometheus.monitoring.svc:9090");
}

/// `make generate` leaves the policy alone, so the interval is read from there, too.
#[test]
fn policy_and_interval_are_in_a_file_that_people_edit() {
    let (path, text) = editable_files().remove(0);
    assert!(files().iter().all(|(generated, _)| *generated != path), "it would be overwritten");
    assert!(text.starts_with("# Yours to edit"), "{text}");
    let map = one("descheduler-policy.yaml", "ConfigMap", "descheduler-policy");
    assert_eq!(map["data"]["interval"], "60s");
    for (name, flag) in [("descheduler", "--descheduling-interval"), ("soft-tainter", "--interval")] {
        let deployment = one("descheduler.yaml", "Deployment", name);
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let arg = format!("{flag}=$(DESCHEDULING_INTERVAL)");
        assert!(container["args"].as_array().unwrap().iter().any(|it| *it == arg.as_str()), "{container}");
        let source = &container["env"][0]["valueFrom"]["configMapKeyRef"];
        assert_eq!((&source["name"], &source["key"]), (&map["metadata"]["name"], &"interval".into()), "{name}");
    }
}

/// Holds L12 (unloaded rules).
#[test]
fn rules_and_configuration_of_prometheus_lie_beside_each_other() {
    let rules = one("prometheus-rules.yaml", "ConfigMap", "prometheus-rules");
    let file = rules["data"].as_object().unwrap().keys().next().unwrap();
    let config = one("prometheus.yaml", "ConfigMap", "prometheus-config");
    assert!(config["data"]["prometheus.yml"].as_str().unwrap().contains(file.as_str()));
    let text = rules["data"][file].as_str().unwrap();
    for algorithm in balance::Algorithm::all() {
        assert!(text.contains(&balance::promql::node_series(&algorithm)), "{algorithm:?}");
    }
}

/// On these nodes KWOK only reports that pods run.
#[test]
fn nothing_of_the_lab_but_vms_goes_to_pretended_nodes() {
    for deployment in everything().iter().filter(|object| object["kind"] == "Deployment") {
        let pod = &deployment["spec"]["template"]["spec"];
        assert!(
            pod["nodeSelector"]["node-role.kubernetes.io/control-plane"] == "",
            "{}",
            deployment["metadata"]["name"]
        );
    }
}

/// Holds L14 (proxy name).
#[test]
fn every_service_finds_the_pods_of_its_name() {
    for service in everything().iter().filter(|object| object["kind"] == "Service") {
        let namespace = &service["metadata"]["namespace"];
        let is_found = |object: &Value| {
            object["kind"] == "Deployment"
                && object["metadata"]["namespace"] == *namespace
                && object["spec"]["template"]["metadata"]["labels"]["app"] == service["spec"]["selector"]["app"]
        };
        assert!(everything().iter().any(is_found), "{}", service["metadata"]["name"]);
    }
}

#[test]
fn no_part_may_do_everything_or_read_secrets_but_the_stand_ins_own() {
    for role in everything().iter().filter(|object| matches!(object["kind"].as_str(), Some("Role" | "ClusterRole"))) {
        for rule in role["rules"].as_array().unwrap() {
            assert!(!rule.to_string().contains('*'), "{rule}");
            let is_secret = rule["resources"].as_array().unwrap().iter().any(|resource| resource == "secrets");
            assert!(
                !is_secret || (role["kind"] == "Role" && role["metadata"]["name"] == "descheduler-operator"),
                "{role}"
            );
        }
    }
}

#[test]
fn webhook_and_vm_controller_are_where_people_look_for_them_and_know_each_other() {
    for name in ["eviction-webhook", "vm-controller"] {
        let deployment = one(&format!("{name}.yaml"), "Deployment", name);
        assert_eq!(deployment["metadata"]["namespace"], "default");
        assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["app"], name);
    }
    let configuration = one("eviction-webhook.yaml", "ValidatingWebhookConfiguration", "eviction-webhook");
    let text = configuration.to_string();
    assert!(text.contains("system:serviceaccount:default:vm-controller"), "{text}");
    let service = json_service(&configuration);
    assert_eq!((service["namespace"].as_str(), service["name"].as_str()), (Some("default"), Some("eviction-webhook")));
}

fn json_service(configuration: &Value) -> &Value {
    &configuration["webhooks"][0]["clientConfig"]["service"]
}

#[test]
fn prometheus_counts_its_releases_in_two_ways() {
    let image =
        &one("prometheus.yaml", "Deployment", "prometheus")["spec"]["template"]["spec"]["containers"][0]["image"];
    assert!(image.as_str().unwrap().starts_with("docker.io/prom/prometheus:v3."), "{image}");
}
