//! From the creation of a KubeDescheduler to its end.

use devcluster::Companion;
use kube::api::DeleteParams;
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
    let kill = Companion::spawn("kill", Path::new("kill"), args, folder.path(), &log).unwrap();
    eventually("kill has run", async || kill.exit_status()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kube_descheduler_is_followed_from_its_creation_to_its_end() {
    let lab = Lab::start().await;
    lab.add_namespace(monitored()).await;
    let stand_in = lab.stand_in(lab.settings().await).await;
    let tainter = lab.soft_tainter().await;
    assert!(page(&stand_in, "/metrics").await.is_err(), "there is nothing to show yet");

    // Created: it runs with that policy, and classifies by the query.
    lab.create_object().await;
    let status = lab.reach("ready", is_ready).await;
    assert_eq!(status["version"], "lab-stand-in");
    for kind in ["TargetConfigControllerDegraded", "DeschedulerProcessDegraded"] {
        assert_eq!(condition(&status, kind)["status"], "False");
        assert!(condition(&status, kind)["message"].as_str().unwrap().contains("stand-in"));
    }
    let first = process(&stand_in, "runs", |state| state.is_ready).await.pid.unwrap();
    let line = command_line(first);
    for flag in ["--descheduling-interval=3s", "--feature-gates=EvictionsInBackground=true", "-v=2"] {
        assert!(line.iter().any(|word| word == flag), "{flag} in {line:?}");
    }
    assert!(!line.iter().any(|word| word.contains("dry-run")), "{line:?}");
    for classified in ["category=\"overutilized\" node=\"hot\"", "category=\"underutilized\" node=\"cold\""] {
        says(&stand_in.log(), classified).await;
    }
    says(&stand_in.log(), "\"Node is appropriately utilized\"").await;
    let metrics = page(&stand_in, "/metrics").await.unwrap();
    assert!(metrics.contains("descheduler_build_info"), "{metrics}");

    // The soft-tainter agrees, and writes no more than it must.
    lab.tainted(&[COLD, HOT, MILD]).await;
    let mut findings = tainter.findings();
    let mark = lab.cluster.audit().mark(&lab.client).await.unwrap();
    let cycles = findings.borrow_and_update().cycles;
    let two_more = findings.wait_for(|findings| findings.cycles >= cycles + 2);
    let found = tokio::time::timeout(Duration::from_secs(40), two_more).await.unwrap().unwrap().clone();
    assert_eq!((found.problem, found.buckets.len()), (None, 3));
    let writes = lab.cluster.audit().writes_since(mark, &lab.client).await.unwrap();
    let ours: Vec<_> = writes.iter().filter(|request| [TAINTER, STAND_IN].contains(&&*request.user)).collect();
    assert!(ours.is_empty(), "{ours:?}");

    // Changed: another process with another policy, and no taints without evictions.
    lab.change(json!({"mode": "Predictive", "evictionLimits": {"node": 3}})).await;
    let second = process(&stand_in, "restarts", |state| state.is_ready && state.pid != Some(first)).await;
    assert!(!is_alive(first));
    assert!(second.policy.as_ref().unwrap().text.contains("maxNoOfPodsToEvictPerNode: 3"), "{second:?}");
    assert!(command_line(second.pid.unwrap()).contains(&"--dry-run=true".to_owned()));
    lab.tainted(&CLEAN).await;
    let status = lab.reach("ready again", is_ready).await;
    assert_eq!(status["observedGeneration"], 2);

    // Refused: none runs, and the status tells why.
    lab.change(json!({"mode": "Automatic", "deschedulingIntervalSeconds": null})).await;
    let status = lab.reach("refused", |status| !is_ready(status)).await;
    let refused = condition(&status, "TargetConfigControllerDegraded");
    assert_eq!(refused["reason"], "descheduler should have an interval set and it should be greater than 0");
    assert!(!is_alive(second.pid.unwrap()));

    // Killed: another one takes its place, after a moment that the status tells of.
    lab.change(json!({"deschedulingIntervalSeconds": 60})).await;
    lab.reach("ready once more", is_ready).await;
    lab.tainted(&[COLD, HOT, MILD]).await;
    let third = process(&stand_in, "runs", |state| state.is_ready).await;
    kill(third.pid.unwrap()).await;
    let failed =
        lab.reach("failing", |status| condition(status, "DeschedulerProcessDegraded")["status"] == "True").await;
    let message = condition(&failed, "DeschedulerProcessDegraded")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("the descheduler ended (signal: 9 (SIGKILL))"), "{message}");
    let fourth = process(&stand_in, "is back", |state| state.starts == third.starts + 1 && state.is_ready).await;
    lab.reach("ready after all", |status| {
        is_ready(status) && condition(status, "DeschedulerProcessDegraded")["status"] == "False"
    })
    .await;

    // Deleted: nothing is left.
    lab.objects().delete("cluster", &DeleteParams::default()).await.unwrap();
    process(&stand_in, "ends", |state| state.pid.is_none()).await;
    assert!(!is_alive(fourth.pid.unwrap()));
    lab.tainted(&CLEAN).await;
    assert!(page(&stand_in, "/metrics").await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_run_is_told_in_a_condition_where_the_real_operator_tells_it() {
    let lab = Lab::start().await;
    lab.add_namespace(BTreeMap::new()).await;
    let stand_in = lab.stand_in(lab.settings().await).await;

    let degraded = |status: &Value, text: &str| {
        let condition = condition(status, "TargetConfigControllerDegraded");
        condition["status"] == "True" && condition["reason"].as_str().unwrap().contains(text)
    };
    let is_refused = |state: &StandInState| {
        state.policy_error.as_ref().is_some_and(|refused| refused.contains("is not labeled with"))
    };
    lab.create_object().await;
    process(&stand_in, "not monitored", is_refused).await;
    assert_eq!(lab.objects().get("cluster").await.unwrap().data.get("status"), None, "only the log tells");
    let namespaces: Api<Namespace> = Api::all(lab.client.clone());
    let label = Patch::Merge(json!({"metadata": {"labels": monitored()}}));
    namespaces.patch(names::NAMESPACE, &PatchParams::default(), &label).await.unwrap();
    lab.reach("ready", is_ready).await;

    // Without its label the namespace stops nothing that runs.
    let pid = process(&stand_in, "runs", |state| state.is_ready).await.pid;
    let unlabel = Patch::Merge(json!({"metadata": {"labels": {"openshift.io/cluster-monitoring": null}}}));
    namespaces.patch(names::NAMESPACE, &PatchParams::default(), &unlabel).await.unwrap();
    process(&stand_in, "not monitored", is_refused).await;
    assert_eq!(stand_in.state().borrow().pid, pid);
    let status = lab.objects().get("cluster").await.unwrap().data["status"].clone();
    assert!(is_ready(&status) && !degraded(&status, ""), "{status}");
    namespaces.patch(names::NAMESPACE, &PatchParams::default(), &label).await.unwrap();

    for node in ["cold", "hot", "mild"] {
        let unlabel = Patch::Merge(json!({"metadata": {"labels": {"kubevirt.io/schedulable": null}}}));
        lab.nodes().patch(node, &PatchParams::default(), &unlabel).await.unwrap();
    }
    lab.reach("no KubeVirt", |status| degraded(status, "when KubeVirt is properly deployed") && !is_ready(status))
        .await;
    let label = Patch::Merge(json!({"metadata": {"labels": {"kubevirt.io/schedulable": "true"}}}));
    lab.nodes().patch("hot", &PatchParams::default(), &label).await.unwrap();
    lab.reach("ready", is_ready).await;

    // A policy that only the descheduler itself can refuse.
    lab.change(json!({"profileCustomizations": {"devActualUtilizationProfile": "query:"}})).await;
    let status =
        lab.reach("failing", |status| condition(status, "DeschedulerProcessDegraded")["status"] == "True").await;
    let message = condition(&status, "DeschedulerProcessDegraded")["message"].as_str().unwrap();
    assert!(message.contains("prometheus query is required"), "{message}");
    assert!(!is_ready(&status));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_of_ones_own_runs_as_it_is_and_ends_with_its_owner() {
    let lab = Lab::start().await;
    let url = lab.prometheus_url();
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
    let settings = DeschedulerSettings { policy_source: PolicySource::Fixed(policy.clone()), ..lab.settings().await };
    let stand_in = lab.stand_in(settings.clone()).await;
    let pid = process(&stand_in, "runs", |state| state.is_ready).await.pid.unwrap();
    assert_eq!(std::fs::read_to_string(settings.folder.join("descheduler-policy.yaml")).unwrap(), text);
    assert!(command_line(pid).contains(&"--descheduling-interval=1.5s".to_owned()));
    says(&stand_in.log(), "category=\"overutilized\" node=\"hot\"").await;

    // It can drive the soft-tainter, too.
    let tainter = SoftTainterSettings { policy_source: PolicySource::Fixed(policy), ..lab.tainter_settings() };
    let _tainter = SoftTainter::start(lab.client.clone(), tainter).unwrap();
    lab.tainted(&[COLD, HOT, MILD]).await;

    drop(stand_in);
    eventually("it is killed", async || (!is_alive(pid)).then_some(())).await;
}
