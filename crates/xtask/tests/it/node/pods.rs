//! The node itself: a pod runs, tells its log, ends, and is refused an image that is not there.

use realnode::Node;
use serde_json::json;
use std::fs;

use super::{get, write_operator};

fn create_pod(node: &Node, name: &str, container: serde_json::Value) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    });
    let path = node.archives().join(format!("{name}.json"));
    fs::write(&path, pod.to_string()).unwrap();
    node.kubectl(&["create", "-f", path.to_str().unwrap()]);
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn a_pod_runs_and_tells_its_log() {
    realnode::run(write_operator, async |node| {
        let image = get(node, &["node", realnode::NAME])["status"]["images"].to_string();
        assert!(image.contains("kubevirt.io/virt-advisor-operator"), "{image}");
        let image = concat!("kubevirt.io/virt-advisor-operator:v", env!("CARGO_PKG_VERSION"));
        create_pod(node, "told", json!({"name": "it", "image": image, "args": ["--version"]}));
        node.kubectl(&["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/told", "--timeout=60s"]);
        assert_eq!(node.kubectl(&["logs", "told"]), concat!("virt-advisor ", env!("CARGO_PKG_VERSION"), "\n"));

        // Nothing leaves the machine: an image that was not loaded is not looked for elsewhere for minutes.
        create_pod(node, "missing", json!({"name": "it", "image": "quay.io/nobody/nothing:v1"}));
        let refused = "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImagePull";
        let again = "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff";
        let is_refused = || {
            [refused, again]
                .iter()
                .any(|reason| node.try_kubectl(&["wait", reason, "pod/missing", "--timeout=5s"]).status.success())
        };
        assert!((0..6).any(|_| is_refused()), "the image is missing, and the kubelet does not say so");
    });
}
