//! `virt-advisor gather`: what it collects, for whom, and what it leaves alone.

use std::{collections::BTreeMap, path::Path, process::Command};

use devcluster::Identity;
use serde_json::{Value, json};

use super::{PULL_SECRET, VERSION, apply, program, run_as, site, text};

/// All files below a folder, by their paths.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.insert(name, text(&std::fs::read(path).unwrap()));
            }
        }
    }
    found
}

async fn gather(who: &Identity) -> (BTreeMap<String, String>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let args = ["gather", "-o", target.to_str().unwrap()];
    let output = run_as(site().await.cluster.access(), who, &program(), &args, &[]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("{}\n", target.display()), "the place alone, for scripts");
    let files = files(&target);
    let index = serde_json::from_str(&files["index.json"]).unwrap();
    (files, index)
}

fn entry<'a>(index: &'a Value, what: &str) -> &'a Value {
    let entries = index["entries"].as_array().unwrap();
    entries.iter().find(|entry| entry["what"] == what).unwrap_or_else(|| panic!("{what} is not in {index:#}"))
}

#[tokio::test]
async fn an_administrator_collects_the_whole_story() {
    let (files, index) = gather(&Identity::Admin).await;
    let advisor = "cluster-scoped-resources/advisor.kubevirt.io";
    let mco = "cluster-scoped-resources/machineconfiguration.openshift.io";
    for path in [
        "version",
        "summary.txt",
        &format!("{advisor}/virtplatformconfigs/load-aware-rebalancing.yaml"),
        &format!("{advisor}/virtplatformplanrecords/example-profile-1.yaml"),
        &format!("{mco}/machineconfigpools/worker.yaml"),
        &format!("{mco}/machineconfigs/rendered-worker-d9366560000b5d89c5825f832fda0bd6.yaml"),
        "cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/virtplatformconfigs.advisor.kubevirt.io.yaml",
        "namespaces/openshift-kube-descheduler-operator/operator.openshift.io/kubedeschedulers/cluster.yaml",
        "namespaces/openshift-cnv/hco.kubevirt.io/hyperconvergeds/kubevirt-hyperconverged.yaml",
        "namespaces/openshift-cnv/core/configmaps/example-config.yaml",
        "namespaces/openshift-cnv/apps/deployments/virt-advisor-operator-controller-manager.yaml",
        "namespaces/openshift-cnv/coordination.k8s.io/leases/virt-advisor-operator.yaml",
        "namespaces/openshift-cnv/pods/virt-advisor-operator-0/virt-advisor-operator-0.yaml",
        "namespaces/default/core/events.yaml",
        "virt-advisor/plans/virtplatformconfigs/load-aware-rebalancing.txt",
        "virt-advisor/plans/virtplatformplanrecords/example-profile-1.txt",
        "virt-advisor/rights/caller.txt",
        "virt-advisor/rights/operator.txt",
        "virt-advisor/server-version.yaml",
    ] {
        assert!(files.contains_key(path), "{path} is not in {:#?}", files.keys());
    }
    assert!(files["namespaces/default/core/events.yaml"].contains("ItemCompleted"));
    assert!(files["virt-advisor/plans/virtplatformconfigs/load-aware-rebalancing.txt"].contains("+  - psi=1\n"));
    assert!(files["virt-advisor/rights/operator.txt"].contains("yes  list virtplatformconfigs.advisor.kubevirt.io\n"));
    assert!(!files["virt-advisor/rights/caller.txt"].contains("no   "));
    assert!(
        files["namespaces/openshift-cnv/core/configmaps/example-config.yaml"].contains("managedFields:"),
        "who set what"
    );
    let log = entry(&index, "current log of virt-advisor-operator-0/manager");
    assert_eq!(log["state"], "unreadable", "there is no kubelet: {log}");
    assert_eq!(index["operators"], serde_json::json!([VERSION]));
}

/// The pull secret of a cluster is a file of every node, and so in every rendered MachineConfig.
#[tokio::test]
async fn secrets_of_nodes_are_left_out() {
    let (files, _) = gather(&Identity::Admin).await;
    for (path, content) in &files {
        assert!(!content.contains(PULL_SECRET), "{path}");
    }
}

#[tokio::test]
async fn a_viewer_collects_what_viewers_see_and_the_rest_is_named() {
    let (files, index) = gather(&Identity::user("victor", &[])).await;
    assert!(
        files.contains_key("cluster-scoped-resources/advisor.kubevirt.io/virtplatformconfigs/example-profile.yaml")
    );
    assert!(
        files.contains_key(
            "cluster-scoped-resources/advisor.kubevirt.io/virtplatformplanrecords/example-profile-1.yaml"
        )
    );
    assert!(files["virt-advisor/rights/caller.txt"].contains("yes  list virtplatformconfigs.advisor.kubevirt.io\n"));
    for what in [
        "events about configurations",
        "ConfigMap openshift-cnv/example-config",
        "MachineConfigPool worker",
        "deployments of the operator",
        "pods of the operator",
        "lease openshift-cnv/virt-advisor-operator",
        "rights of the operator",
    ] {
        let entry = entry(&index, what);
        assert_eq!((&entry["state"], &entry["reason"]), (&"unreadable".into(), &"forbidden (403)".into()), "{what}");
        assert!(files["summary.txt"].contains(&format!("  {what}: forbidden (403)\n")), "{}", files["summary.txt"]);
    }
}

/// Found by reading: of two lists of Events in one namespace, the second one replaced the first one.
#[tokio::test]
async fn events_about_configurations_and_about_an_operator_in_the_same_namespace_are_both_kept() {
    let access = site().await.cluster.access();
    let labels = json!({"app.kubernetes.io/name": "virt-advisor-operator"});
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "elsewhere", "namespace": "default", "labels": labels},
        "spec": {"ports": [{"name": "other", "port": 80}]},
    });
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "elsewhere.1", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Service", "name": "elsewhere", "namespace": "default"},
        "reason": "AboutTheOperator", "message": "x", "type": "Normal",
    });
    for object in [service, event] {
        apply(access, &object).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let args = ["gather", "-n", "default", "-o", target.to_str().unwrap()];
    let output = run_as(access, &Identity::Admin, &program(), &args, &[]).await;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let events = &files(&target)["namespaces/default/core/events.yaml"];
    for reason in ["AboutTheOperator", "ItemCompleted"] {
        assert!(events.contains(&format!("reason: {reason}\n")), "{reason} is not in {events}");
    }
}

#[tokio::test]
async fn it_reads_what_plans_name_and_nothing_else_of_the_cluster() {
    let cluster = &site().await.cluster;
    let client = cluster.access().client().await.unwrap();
    let start = cluster.audit().position(&client).await.unwrap();
    gather(&Identity::Admin).await;
    let all = cluster.audit().since(start, &client).await.unwrap();
    let own: Vec<_> = all.iter().filter(|request| request.user_agent == api::user_agent("gather")).collect();
    assert!(own.len() > 20, "the requests were seen");
    for request in own {
        let is_review = request.resource.ends_with("subjectaccessreviews");
        assert!(is_review || ["get", "list"].contains(&request.verb.as_str()), "{request}");
        let is_ours = request.group == "advisor.kubevirt.io" || request.uri.contains("Selector=");
        assert!(request.verb != "list" || is_ours, "a list of everything: {request}");
        assert!(!["secrets", "nodes"].contains(&request.resource.as_str()), "{request}");
    }
}

#[tokio::test]
async fn an_archive_holds_the_same_files_in_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["case.tar", "case.tar.gz"] {
        let path = folder.path().join(name);
        let args = ["gather", "-o", path.to_str().unwrap()];
        let access = site().await.cluster.access();
        let output = run_as(access, &Identity::Admin, &program(), &args, &[]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        let listed = Command::new("tar").arg("-tf").arg(&path).output().unwrap();
        let listed = text(&listed.stdout);
        assert!(
            listed.lines().any(|line| line == "case/summary.txt")
                && listed.lines().all(|line| line.starts_with("case/")),
            "{listed}"
        );
        let again = run_as(access, &Identity::Admin, &program(), &args, &[]).await;
        assert_eq!(again.status.code(), Some(2), "nothing is overwritten");
        assert!(text(&again.stderr).contains("is there already: name another file with -o"), "{}", text(&again.stderr));
    }
}

#[test]
fn without_an_api_server_nothing_is_written_and_one_line_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    });
    std::fs::write(&config, kubeconfig.to_string()).unwrap();
    let target = folder.path().join("out");
    let output =
        Command::new(program()).arg("gather").arg("-o").arg(&target).env("KUBECONFIG", config).output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: the API server at http://127.0.0.1:1/ does not answer: check KUBECONFIG"),
        "{said}"
    );
    assert!(!target.exists());
}
