//! The objects of the descheduler in the cluster, and the policy errors that change them.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use process::is_alive;

use super::*;

impl TestCluster {
    async fn policy(&self) -> String {
        let config_maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), names::NAMESPACE);
        config_maps.get("cluster").await.unwrap().data.unwrap().remove("policy.yaml").unwrap()
    }

    async fn deployment(&self) -> Value {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), names::NAMESPACE);
        serde_json::to_value(deployments.get("descheduler").await.unwrap()).unwrap()
    }

    /// Waits for a Deployment of this generation of the KubeDescheduler with so many replicas, all of them available.
    async fn shows(&self, generation: &str, replicas: i64) -> Value {
        let shown = async || {
            let deployment = self.deployment().await;
            let status = &deployment["status"];
            let count = |name: &str| status[name].as_i64().unwrap_or(0);
            let is_current = status["observedGeneration"] == deployment["metadata"]["generation"];
            let is_it = generation_of(&deployment) == generation && deployment["spec"]["replicas"] == replicas;
            let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"].map(count);
            (is_current && is_it && counts == [replicas; 4]).then_some(deployment)
        };
        eventually(format!("{replicas} replicas for generation {generation}"), shown).await
    }
}

fn generation_of(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["metadata"]["annotations"]["kubedeschedulers.operator.openshift.io/cluster"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_is_in_the_cluster_and_an_error_that_is_only_logged_changes_nothing_there() {
    let test = TestCluster::start().await;
    test.add_namespace(monitored()).await;
    let stand_in = test.stand_in(test.settings().await).await;
    test.create_object().await;
    let status = test.reach("ready", is_ready).await;
    let deployment = test.shows("1", 1).await;
    assert_eq!(deployment["spec"]["paused"], true);
    assert_eq!(deployment["metadata"]["labels"]["advisor.kubevirt.io/stand-in"], "true");
    let state = reach_state(&stand_in, "runs", |state| state.is_ready).await;
    assert_eq!(test.policy().await, state.policy.as_ref().unwrap().text);

    // Two thresholds: the running descheduler stays, and nothing in the cluster changes.
    test.change(json!({"profileCustomizations": {"devLowNodeUtilizationThresholds": "Low"}})).await;
    let refused = reach_state(&stand_in, "is refused", |state| state.policy_error.is_some()).await;
    let sentence = "only one of DevLowNodeUtilizationThresholds and DevDeviationThresholds customizations can be \
                    configured simultaneously";
    assert_eq!(refused.policy_error.as_deref(), Some(sentence));
    let health: Value = serde_json::from_str(&page(&stand_in, "/health").await.unwrap()).unwrap();
    assert_eq!(health["refused"], sentence);
    let mark = test.cluster.audit().position(&test.client).await.unwrap();
    test.change(json!({"mode": "Predictive"})).await;
    let cycles = || std::fs::read_to_string(stand_in.log()).unwrap().matches("category=\"overutilized\"").count();
    let before = cycles();
    eventually("the old descheduler goes on", async || (cycles() > before + 2).then_some(())).await;
    let requests = test.cluster.audit().writes_since(mark, &test.client).await.unwrap();
    let ours: Vec<_> = requests.iter().filter(|request| request.user == STAND_IN).collect();
    assert!(ours.is_empty(), "{ours:?}");
    let object = test.objects().get("cluster").await.unwrap();
    assert_eq!((object.metadata.generation, &object.data["status"]), (Some(3), &status));
    assert_eq!(generation_of(&test.deployment().await), "1");
    assert_eq!(stand_in.state().borrow().pid, state.pid);
    assert!(is_alive(state.pid.unwrap()));

    // Corrected, with limits below zero, which the real descheduler treats as none.
    let changes = json!({
        "mode": "Automatic",
        "evictionLimits": {"total": -1, "node": -1},
        "profileCustomizations": {"devLowNodeUtilizationThresholds": null},
    });
    test.change(changes).await;
    test.shows("4", 1).await;
    let status = test.reach("ready with limits below zero", is_ready).await;
    assert_eq!(condition(&status, "DeschedulerProcessDegraded")["status"], "False");
    assert!(test.policy().await.contains("maxNoOfPodsToEvictTotal: 18446744073709551615"));
    assert_eq!(stand_in.state().borrow().policy_error, None);

    // Without an interval it is scaled down, and the annotation keeps the generation that it ran for.
    test.change(json!({"deschedulingIntervalSeconds": null})).await;
    test.shows("4", 0).await;
    let status = test.reach("refused", |status| !is_ready(status)).await;
    assert_eq!(condition(&status, "TargetConfigControllerDegraded")["status"], "True");
    test.change(json!({"deschedulingIntervalSeconds": 60})).await;
    test.shows("6", 1).await;
}
