//! The plugin KubevirtMigrationAware, played by the webhook, with a real API server and the VM controller.

use standins::descheduler::{kube_descheduler_api, names};

use super::*;

const DEFINITION: &str = include_str!("../../../../../config/crd/third-party/kubedescheduler-5.1.yaml");

fn refused(vm: &str, why: &str) -> String {
    denied(EVICTIONS, &format!("KubevirtMigrationAware: VMI \"default/{vm}\" {why}")).1
}

impl Lab {
    /// Evicts as the descheduler does.
    async fn deschedule(&self, pod: &str) -> (u16, String) {
        let annotations = json!({"requested-by": "sigs.k8s.io/descheduler", "reason": "triggered by p/s: over"});
        self.evict_with(pod, json!({"metadata": {"annotations": annotations}})).await.unwrap()
    }

    /// Applies the KubeDescheduler with this profile and this cool-down.
    async fn kube_descheduler(&self, profile: &str, cool_down: &str) {
        let object = json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
            "metadata": {"name": names::OBJECT, "namespace": names::NAMESPACE},
            "spec": {"mode": "Automatic", "deschedulingIntervalSeconds": 60, "profiles": [profile],
                "profileCustomizations": {"devMigrationCooldown": cool_down}},
        });
        let params = PatchParams::apply("test").force();
        kube_descheduler_api(&self.client).patch(names::OBJECT, &params, &Patch::Apply(object)).await.unwrap();
    }
}

/// What the descheduler makes of each answer is in the unit test `the_descheduler_counts_a_refusal_as_an_eviction_that_failed`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_that_has_moved_is_not_descheduled_again_until_its_cool_down_is_over() {
    let (_turn, lab) = Lab::start_with_nodes().await;
    let definition = serde_saphyr::from_str(DEFINITION).unwrap();
    lab.cluster.access().install_crds(&[definition]).await.unwrap();
    let spaces: Api<Namespace> = Api::all(lab.client.clone());
    let space = json!({"metadata": {"name": names::NAMESPACE}});
    spaces.create(&PostParams::default(), &serde_json::from_value(space).unwrap()).await.unwrap();
    let _controller = lab.controller(Duration::from_secs(30)).await;
    let _webhook = lab.webhook(Certificates::default()).await;
    lab.create("g").await;
    let (pod, node) = lab.settled("default", "g").await;
    lab.is_asked(&pod).await;

    // The plugin's own cool-down of fifteen minutes.
    lab.kube_descheduler("KubeVirtRelieveAndMigrate", "15m").await;
    assert_eq!(lab.deschedule(&pod).await, triggered(EVICTIONS, "default/g"), "a VM that never moved");
    let (code, said) = lab.deschedule(&pod).await;
    let expected = [refused("g", "migrates and is not evicted meanwhile"), "has migrated".to_owned()];
    assert!(code == 429 && expected.iter().any(|text| said.contains(text)), "{code} {said}");
    let (pod, node) =
        eventually("the VM moves", async || Some(lab.settled("default", "g").await).filter(|(_, now)| *now != node))
            .await;
    assert_eq!(lab.vms.get("g").await.unwrap().status.unwrap().migrations.len(), 1);
    let (code, said) = lab.deschedule(&pod).await;
    assert_eq!(code, 429);
    assert!(said.starts_with(&refused("g", "has migrated and is not evicted for another ")), "{said}");
    assert!(!said.contains("Eviction triggered evacuation"), "the descheduler would count it: {said}");
    assert_eq!(lab.node_to_leave("g").await, None, "nothing is recorded");

    // What others want happens: a drain moves the VM, and this migration counts, too.
    assert_eq!(lab.evict(&pod).await, Some(triggered(EVICTIONS, "default/g")));
    let (pod, _) = eventually("the VM moves again", async || {
        Some(lab.settled("default", "g").await).filter(|(_, now)| *now != node)
    })
    .await;
    assert_eq!(lab.vms.get("g").await.unwrap().status.unwrap().migrations.len(), 2);
    let (_, said) = lab.deschedule(&pod).await;
    let left =
        said.rsplit(' ').nth(1).and_then(|seconds| seconds.parse::<u64>().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!((900..=1800).contains(&left), "twice the cool-down: {said}");

    // A shorter cool-down is over.
    lab.kube_descheduler("KubeVirtRelieveAndMigrate", "1ms").await;
    let over = async || (lab.deschedule(&pod).await == triggered(EVICTIONS, "default/g")).then_some(());
    eventually("the cool-down is over", over).await;
    lab.goes("default", "g").await;
    kube_descheduler_api(&lab.client).delete(names::OBJECT, &DeleteParams::default()).await.unwrap();
}
