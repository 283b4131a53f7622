//! Webhook and VM controller together: evictions cause migrations, and deletions succeed.

use super::*;

/// L20 (undeletable pod): deleting a VM left an undeletable pod.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_vm_controller_evictions_move_vms_and_deletions_succeed_even_without_the_webhook() {
    let (_turn, lab) = Lab::start_with_nodes().await;
    let _controller = lab.controller(Duration::from_secs(30)).await;
    let webhook = lab.webhook(Certificates::default()).await;
    let spaces: Api<Namespace> = Api::all(lab.client.clone());
    for name in ["one", "two"] {
        let space = json!({"metadata": {"name": name}});
        spaces.create(&PostParams::default(), &serde_json::from_value(space).unwrap()).await.unwrap();
    }
    for (namespace, name) in [("default", "a"), ("default", "b"), ("default", "c"), ("one", "d"), ("two", "e")] {
        lab.within(namespace).create(name).await;
        lab.settled(namespace, name).await;
    }
    lab.is_asked(&lab.settled("default", "c").await.0).await;

    for how in ["evict", "delete"] {
        let (pod, node) = lab.settled("default", "a").await;
        let message = match how {
            "evict" => lab.evict(&pod).await.unwrap().1,
            _ => lab.kubectl(&["delete", "pod", &pod, "--wait=false"]).await.1,
        };
        assert!(message.ends_with("Eviction triggered evacuation of VMI \"default/a\""), "{message}");
        let moved = async || Some(lab.settled("default", "a").await).filter(|(_, now)| *now != node);
        eventually(format!("the VM moves after {how}"), moved).await;
        let old = async || lab.pods.get_opt(&pod).await.unwrap().is_none().then_some(());
        eventually(format!("the source goes after {how}"), old).await;
    }

    lab.goes("default", "a").await;
    lab.empties("one").await;
    // Without the webhook, VMs and pods of others can still be deleted.
    let (pod, _) = lab.settled("default", "c").await;
    lab.add_pod("web-0", Some("n1"), json!({})).await;
    lab.add_pod("web-1", Some("n1"), json!({})).await;
    drop(webhook);
    let refused = |by| format!("failed calling webhook \"{by}\"");
    let (_, said) = lab.evict(&pod).await.unwrap();
    assert!(said.contains(&refused(EVICTIONS)), "{said}");
    let (_, said) = outcome(lab.pods.delete(&pod, &DeleteParams::default()).await).unwrap();
    assert!(said.contains(&refused(DELETIONS)), "{said}");
    assert_eq!(lab.evict("web-0").await, None);
    assert_eq!(outcome(lab.pods.delete("web-1", &DeleteParams::default()).await), None);
    lab.goes("default", "b").await;
    lab.empties("two").await;
    lab.settled("default", "c").await;
    for name in ["one", "two"] {
        let is_gone = async || spaces.get_opt(name).await.unwrap().is_none().then_some(());
        eventually(format!("namespace {name} goes"), is_gone).await;
    }
}

/// L33 (missing eviction annotation): no `eviction-in-progress`, so that a failed migration kept the descheduler waiting
/// for ten minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eviction_is_shown_on_the_pod_while_it_lasts_and_can_be_repeated_when_it_failed() {
    let (_turn, lab) = Lab::start_with_nodes().await;
    let _controller = lab.controller(Duration::from_secs(2)).await;
    let _webhook = lab.webhook(Certificates::default()).await;
    lab.create("f").await;
    let (pod, node) = lab.settled("default", "f").await;
    lab.is_asked(&pod).await;
    let nodes: Api<Node> = Api::all(lab.client.clone());
    let cordon = async |is: bool| {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": is}}));
        for name in ["n1", "n2"] {
            nodes.patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
    };
    cordon(true).await;
    for _ in 0..2 {
        let fields = format!("metadata.name={pod}");
        let mut changes = lab.pods.watch(&WatchParams::default().fields(&fields), "0").await.unwrap().boxed();
        assert_eq!(lab.evict(&pod).await, Some(triggered(EVICTIONS, "default/f")));
        let mut seen = Vec::new();
        let follow = async {
            while seen != [false, true, false] {
                if let Some(Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))) = changes.next().await {
                    seen.push(pod.annotations().contains_key(launcher::EVICTION_IN_PROGRESS));
                    seen.dedup();
                }
            }
        };
        timeout(Duration::from_secs(100), follow).await.unwrap();
        assert_eq!(lab.settled("default", "f").await, (pod.clone(), node.clone()), "it stays where it is");
    }
    cordon(false).await;
    assert_eq!(lab.evict(&pod).await, Some(triggered(EVICTIONS, "default/f")));
    let moved = async || Some(lab.settled("default", "f").await).filter(|(now, _)| *now != pod);
    eventually("the VM moves", moved).await;
}

impl Lab {
    /// Waits until a VM runs as one pod and does not migrate. Returns pod and node.
    pub(super) async fn settled(&self, namespace: &str, name: &str) -> (String, String) {
        let vms: Api<VirtualMachine> = Api::namespaced(self.client.clone(), namespace);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let selector = ListParams::default().labels(&format!("{}={name}", launcher::DOMAIN));
        let check = async || {
            let status = vms.get(name).await.ok()?.status?;
            let pods = pods.list(&selector).await.unwrap().items;
            let is_settled = status.phase == Some(Phase::Running)
                && status.evacuation_node_name.is_none()
                && pods.len() == 1
                && status.pod_name == pods[0].metadata.name
                && !pods[0].annotations().contains_key(launcher::EVICTION_IN_PROGRESS);
            is_settled.then_some((status.pod_name?, status.node_name?))
        };
        eventually(format!("VM {namespace}/{name} runs as one pod"), check).await
    }

    /// Deletes a VM and waits until it and its pods are gone.
    pub(super) async fn goes(&self, namespace: &str, name: &str) {
        let vms: Api<VirtualMachine> = Api::namespaced(self.client.clone(), namespace);
        let selector = ListParams::default().labels(&format!("{}={name}", launcher::DOMAIN));
        vms.delete(name, &DeleteParams::foreground()).await.unwrap();
        let is_gone = async || {
            let pods = self.pods.list(&selector).await.unwrap().items;
            (pods.is_empty() && vms.get_opt(name).await.unwrap().is_none()).then_some(())
        };
        eventually(format!("VM {namespace}/{name} goes"), is_gone).await;
    }

    /// Deletes a namespace and waits until its VMs and pods are gone, not until the namespace is.
    async fn empties(&self, name: &str) {
        let spaces: Api<Namespace> = Api::all(self.client.clone());
        spaces.delete(name, &DeleteParams::default()).await.unwrap();
        let vms: Api<VirtualMachine> = Api::namespaced(self.client.clone(), name);
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), name);
        let all = ListParams::default();
        let is_empty = async || {
            let (vms, pods) = (vms.list(&all).await.unwrap().items, pods.list(&all).await.unwrap().items);
            (vms.is_empty() && pods.is_empty()).then_some(())
        };
        eventually(format!("namespace {name} becomes empty"), is_empty).await;
    }
}
