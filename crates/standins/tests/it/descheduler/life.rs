//! From the creation of a KubeDescheduler to its end.

use devcluster::RunningProgram;
use kube::api::DeleteParams;
use process::is_alive;
use standins::descheduler::{Mode, Policy, PolicySource};

use super::*;

const HOT: (&str, &[&str]) = ("hot", &["appropriate", "overutilized"]);
const MILD: (&str, &[&str]) = ("mild", &["appropriate"]);
const COLD: (&str, &[&str]) = ("cold", &[]);
const CLEAN: [(&str, &[&str]); 3] = [("cold", &[]), ("hot", &[]), ("mild", &[])];

async fn kill(pid: u32) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let args = vec!["-KILL".to_owned(), pid.to_string()];
    let kill = RunningProgram::spawn("kill", Path::new("kill"), args, folder.path(), &log).unwrap();
    eventually("kill has run", async || kill.exit_status()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kube_descheduler_is_followed_from_its_creation_to_its_end() {
    let test = TestCluster::start().await;
    test.add_namespace(monitored()).await;
    let stand_in = test.stand_in(test.settings().await).await;
    let tainter = test.soft_tainter().await;
    assert!(page(&stand_in, "/metrics").await.is_err(), "there is nothing to show yet");

    // Created: the descheduler runs with the policy, and classifies by the query.
    test.create_object().await;
    let status = test.reach("ready", is_ready).await;
    assert_eq!(status["version"], "lab-stand-in");
    for kind in ["TargetConfigControllerDegraded", "DeschedulerProcessDegraded"] {
        assert_eq!(condition(&status, kind)["status"], "False");
        assert!(condition(&status, kind)["message"].as_str().unwrap().contains("stand-in"));
    }
    let first = reach_state(&stand_in, "runs", |state| state.is_ready).await.pid.unwrap();
    let line = command_line(first);
    for flag in ["--descheduling-interval=3s", "--feature-gates=EvictionsInBackground=true", "-v=2"] {
        assert!(line.iter().any(|word| word == flag), "{flag} in {line:?}");
    }
    assert!(!line.iter().any(|word| word.contains("dry-run")), "{line:?}");
    for classified in ["category=\"overutilized\" node=\"hot\"", "category=\"underutilized\" node=\"cold\""] {
        logged(&stand_in.log(), classified).await;
    }
    logged(&stand_in.log(), "\"Node is appropriately utilized\"").await;
    let metrics = page(&stand_in, "/metrics").await.unwrap();
    assert!(metrics.contains("descheduler_build_info"), "{metrics}");

    // The soft-tainter classifies alike, and writes nothing that is right already.
    test.expect_taints(&[COLD, HOT, MILD]).await;
    let mut findings = tainter.findings();
    let mark = test.cluster.audit().position(&test.client).await.unwrap();
    let cycles = findings.borrow_and_update().cycles;
    let two_more = findings.wait_for(|findings| findings.cycles >= cycles + 2);
    let found = tokio::time::timeout(Duration::from_secs(100), two_more).await.unwrap().unwrap().clone();
    assert_eq!((found.problem, found.buckets.len()), (None, 3));
    let writes = test.cluster.audit().writes_since(mark, &test.client).await.unwrap();
    let ours: Vec<_> = writes.iter().filter(|request| [TAINTER, STAND_IN].contains(&&*request.user)).collect();
    assert!(ours.is_empty(), "{ours:?}");

    // Changed: another process with another policy, and no taints in the mode Predictive.
    test.change(json!({"mode": "Predictive", "evictionLimits": {"node": 3}})).await;
    let second = reach_state(&stand_in, "restarts", |state| state.is_ready && state.pid != Some(first)).await;
    assert!(!is_alive(first));
    assert!(second.policy.as_ref().unwrap().text.contains("maxNoOfPodsToEvictPerNode: 3"), "{second:?}");
    assert!(command_line(second.pid.unwrap()).contains(&"--dry-run=true".to_owned()));
    test.expect_taints(&CLEAN).await;
    let status = test.reach("ready again", is_ready).await;
    assert_eq!(status["observedGeneration"], 2);

    // Invalid: no descheduler runs, and the status has the reason.
    test.change(json!({"mode": "Automatic", "deschedulingIntervalSeconds": null})).await;
    let status = test.reach("refused", |status| !is_ready(status)).await;
    let refused = condition(&status, "TargetConfigControllerDegraded");
    assert_eq!(refused["reason"], "descheduler should have an interval set and it should be greater than 0");
    assert!(!is_alive(second.pid.unwrap()));

    // Killed: it is restarted after the backoff, and the status reports the failure.
    test.change(json!({"deschedulingIntervalSeconds": 60})).await;
    test.reach("ready once more", is_ready).await;
    test.expect_taints(&[COLD, HOT, MILD]).await;
    let third = reach_state(&stand_in, "runs", |state| state.is_ready).await;
    kill(third.pid.unwrap()).await;
    let failed =
        test.reach("failing", |status| condition(status, "DeschedulerProcessDegraded")["status"] == "True").await;
    let message = condition(&failed, "DeschedulerProcessDegraded")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("the descheduler ended (signal: 9 (SIGKILL))"), "{message}");
    let fourth = reach_state(&stand_in, "is back", |state| state.starts == third.starts + 1 && state.is_ready).await;
    test.reach("ready after all", |status| {
        is_ready(status) && condition(status, "DeschedulerProcessDegraded")["status"] == "False"
    })
    .await;

    // Deleted: no process and no taint is left.
    test.objects().delete("cluster", &DeleteParams::default()).await.unwrap();
    reach_state(&stand_in, "ends", |state| state.pid.is_none()).await;
    assert!(!is_alive(fourth.pid.unwrap()));
    test.expect_taints(&CLEAN).await;
    assert!(page(&stand_in, "/metrics").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spec_that_cannot_run_is_reported_in_the_condition_of_the_real_operator() {
    let test = TestCluster::start().await;
    test.add_namespace(BTreeMap::new()).await;
    let stand_in = test.stand_in(test.settings().await).await;

    let degraded = |status: &Value, text: &str| {
        let condition = condition(status, "TargetConfigControllerDegraded");
        condition["status"] == "True" && condition["reason"].as_str().unwrap().contains(text)
    };
    let is_refused = |state: &StandInState| {
        state.policy_error.as_ref().is_some_and(|refused| refused.contains("is not labeled with"))
    };
    test.create_object().await;
    reach_state(&stand_in, "not monitored", is_refused).await;
    assert_eq!(test.objects().get("cluster").await.unwrap().data.get("status"), None, "only the log tells");
    let namespaces: Api<Namespace> = Api::all(test.client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": monitored()}}));
    namespaces.patch(names::NAMESPACE, &PatchParams::default(), &label).await.unwrap();
    test.reach("ready", is_ready).await;

    // Without the label of the namespace the running descheduler stays.
    let pid = reach_state(&stand_in, "runs", |state| state.is_ready).await.pid;
    let unlabel = Patch::Merge(json!({"metadata": {"labels": {"openshift.io/cluster-monitoring": null}}}));
    namespaces.patch(names::NAMESPACE, &PatchParams::default(), &unlabel).await.unwrap();
    reach_state(&stand_in, "not monitored", is_refused).await;
    assert_eq!(stand_in.state().borrow().pid, pid);
    let status = test.objects().get("cluster").await.unwrap().data["status"].clone();
    assert!(is_ready(&status) && !degraded(&status, ""), "{status}");
    namespaces.patch(names::NAMESPACE, &PatchParams::default(), &label).await.unwrap();

    for node in ["cold", "hot", "mild"] {
        let unlabel = Patch::Merge(json!({"metadata": {"labels": {"kubevirt.io/schedulable": null}}}));
        test.nodes().patch(node, &PatchParams::default(), &unlabel).await.unwrap();
    }
    test.reach("no KubeVirt", |status| degraded(status, "when KubeVirt is properly deployed") && !is_ready(status))
        .await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"kubevirt.io/schedulable": "true"}}}));
    test.nodes().patch("hot", &PatchParams::default(), &label).await.unwrap();
    test.reach("ready", is_ready).await;

    // A policy that only the descheduler itself refuses.
    test.change(json!({"profileCustomizations": {"devActualUtilizationProfile": "query:"}})).await;
    let status =
        test.reach("failing", |status| condition(status, "DeschedulerProcessDegraded")["status"] == "True").await;
    let message = condition(&status, "DeschedulerProcessDegraded")["message"].as_str().unwrap();
    assert!(message.contains("prometheus query is required"), "{message}");
    assert!(!is_ready(&status));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fixed_policy_runs_unchanged_and_its_descheduler_ends_with_the_stand_in() {
    let test = TestCluster::start().await;
    let url = test.prometheus_url();
    let text = format!(
        "apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
metricsProviders:
- source: Prometheus
  prometheus: {{url: {url:?}, authToken: {{secretReference: {{namespace: default, name: token}}}}}}
profiles:
- name: mine
  pluginConfig:
  - name: LowNodeUtilization
    args:
      useDeviationThresholds: true
      thresholds: {{MetricResource: 10}}
      targetThresholds: {{MetricResource: 10}}
      metricsUtilization: {{source: Prometheus, prometheus: {{query: 'descheduler:node:cpu_usage:avg1m'}}}}
  - name: DefaultEvictor
    args: {{}}
  plugins: {{balance: {{enabled: [LowNodeUtilization]}}}}
"
    );
    let policy = Policy::from_text(text.clone(), Duration::from_millis(1500), Mode::Automatic);
    let settings = DeschedulerSettings { policy_source: PolicySource::Fixed(policy.clone()), ..test.settings().await };
    let stand_in = test.stand_in(settings.clone()).await;
    let pid = reach_state(&stand_in, "runs", |state| state.is_ready).await.pid.unwrap();
    assert_eq!(std::fs::read_to_string(settings.folder.join("descheduler-policy.yaml")).unwrap(), text);
    assert!(command_line(pid).contains(&"--descheduling-interval=1.5s".to_owned()));
    logged(&stand_in.log(), "category=\"overutilized\" node=\"hot\"").await;

    // The soft-tainter can use the same policy.
    let tainter = SoftTainterSettings { policy_source: PolicySource::Fixed(policy), ..test.tainter_settings() };
    let _tainter = SoftTainter::start(test.client.clone(), tainter).unwrap();
    test.expect_taints(&[COLD, HOT, MILD]).await;

    drop(stand_in);
    eventually("it is killed", async || (!is_alive(pid)).then_some(())).await;
}
