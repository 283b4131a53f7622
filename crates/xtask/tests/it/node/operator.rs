//! The operator of `config/default`: two replicas, of which one leads, whatever happens to its pod, and an update under way.

use std::{fs, path::Path, process::Command, time::Duration};

use realnode::Node;
use serde_json::Value;
use testkit::within;

use super::{
    DEPLOYMENT, NAMESPACE, file, get, install_platform, offer, wait_for_phase, write_image, write_operator, xtask,
};

const USER: &str = "system:serviceaccount:openshift-cnv:virt-advisor-operator-controller-manager";
const LATER: &str = "kubevirt.io/virt-advisor-operator:later";
const LONG: Duration = Duration::from_secs(120);

fn pods(node: &Node) -> Vec<Value> {
    let selector = "app.kubernetes.io/name=virt-advisor-operator";
    let list = get(node, &["pods", "-n", NAMESPACE, "-l", selector]);
    let is_kept = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    list["items"].as_array().unwrap().iter().filter(is_kept).cloned().collect()
}

/// The name of the pod that leads, if one does.
fn leader(node: &Node) -> Option<String> {
    let lease = get(node, &["lease", "-n", NAMESPACE, advisor::access::LEASE]);
    let (pod, _) = lease["spec"]["holderIdentity"].as_str()?.split_once('_')?;
    Some(pod.to_owned())
}

/// The name of the pod that leads, once it is another one.
async fn leader_after(node: &Node, before: &str) -> String {
    within(LONG, "another pod leads", async || leader(node).filter(|pod| pod != before)).await
}

/// The process of a pod's container, by its cgroup.
fn process(node: &Node, pod: &str) -> u32 {
    let uid = get(node, &["pod", "-n", NAMESPACE, pod])["metadata"]["uid"].as_str().unwrap().to_owned();
    let is_it = |pid: &u32| {
        let read = |file: &str| fs::read_to_string(Path::new("/proc").join(pid.to_string()).join(file));
        let (cgroup, name) = (read("cgroup").unwrap_or_default(), read("comm").unwrap_or_default());
        cgroup.contains(&uid) && name.trim() == "virt-advisor"
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    all.into_iter().find(is_it).unwrap_or_else(|| panic!("no process of pod {pod}"))
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn two_replicas_run_and_another_one_leads_when_a_leader_is_killed_or_deleted() {
    realnode::run(write_operator, async |node| {
        install_platform(node);
        xtask(node, &["deploy"]);
        node.rollout(NAMESPACE, DEPLOYMENT);
        let replicas = pods(node);
        assert_eq!(replicas.len(), 2);
        for pod in &replicas {
            assert!(is_ready(pod), "{pod}");
            assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0);
        }

        // The kubelet starts the container of the same pod again; meanwhile the other replica leads.
        let first = within(LONG, "a pod leads", async || leader(node)).await;
        let pid = process(node, &first);
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
        let second = leader_after(node, &first).await;
        within(LONG, "the killed replica is ready again", async || {
            let pod = get(node, &["pod", "-n", NAMESPACE, &first]);
            (pod["status"]["containerStatuses"][0]["restartCount"] == 1 && is_ready(&pod)).then_some(())
        })
        .await;

        // A deleted leader releases its lease, as in a drain, and its Deployment has a new pod made.
        node.kubectl(&["delete", "pod", "-n", NAMESPACE, &second]);
        leader_after(node, &second).await;
        node.rollout(NAMESPACE, DEPLOYMENT);
        assert!(pods(node).iter().all(|pod| pod["metadata"]["name"] != second.as_str()));

        offer(node);
        wait_for_phase(node, "ReviewRequired", 60);
    });
}

fn write_both(folder: &Path) {
    write_operator(folder);
    let later = folder.join("later");
    fs::create_dir(&later).unwrap();
    write_image(&later, &["--image", LATER]);
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn a_rolling_update_loses_no_watch_and_repeats_no_write() {
    realnode::run(write_both, async |node| {
        install_platform(node);
        xtask(node, &["deploy"]);
        node.rollout(NAMESPACE, DEPLOYMENT);
        offer(node);
        wait_for_phase(node, "ReviewRequired", 60);
        let archive = fs::read_dir(node.archives().join("later")).unwrap().map(|entry| entry.unwrap().path());
        let archive = archive.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "tar"));
        node.import(&archive.unwrap());

        // Approved while the replicas are replaced.
        let client = node.cluster().access().client().await.unwrap();
        let start = node.cluster().audit().position(&client).await.unwrap();
        let before = leader(node).unwrap();
        xtask(node, &["deploy", "--image", LATER]);
        node.kubectl(&[
            "patch",
            "vpcfg",
            "load-aware-rebalancing",
            "--type=merge",
            "-p",
            r#"{"spec":{"action":"Apply"}}"#,
        ]);
        wait_for_phase(node, "Completed", 120);
        node.rollout(NAMESPACE, DEPLOYMENT);
        leader_after(node, &before).await;
        assert!(pods(node).iter().all(|pod| pod["spec"]["containers"][0]["image"] == LATER));

        // Decided by the new replicas, from watches of their own.
        node.kubectl(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            &file("config/samples/loadaware_typed_sample.yaml"),
        ]);
        wait_for_phase(node, "ReviewRequired", 60);

        let requests = node.cluster().audit().since(start, &client).await.unwrap();
        let writes = |resource: &str| {
            let is_one = |request: &&devcluster::AuditedRequest| {
                request.user == USER
                    && request.is_write()
                    && request.resource == resource
                    && request.subresource.is_empty()
            };
            requests.iter().filter(is_one).map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(writes("kubedeschedulers").len(), 1, "{:?}", writes("kubedeschedulers"));
        assert_eq!(writes("virtplatformplanrecords").len(), 1, "{:?}", writes("virtplatformplanrecords"));
    });
}
