//! A test that is killed leaves nothing behind.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use realnode::{Host, NAME};
use testkit::within;

/// Whether a pod was started on the node.
fn has_pods() -> bool {
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];
    roots.iter().any(|root| fs::exists(Path::new(root).join(NAME).join("kubepods")).unwrap_or(false))
}

#[tokio::test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
async fn a_killed_test_leaves_neither_processes_nor_mounts_cgroups_routes_rules_or_settings() {
    let before = Host::read().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "node::pods::a_pod_runs_and_tells_its_log", "--ignored", "--nocapture"]);
    let mut test = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    within(Duration::from_secs(180), "a node runs pods", async || {
        assert!(test.try_wait().unwrap().is_none(), "the test has ended before its node ran a pod");
        has_pods().then_some(())
    })
    .await;
    assert!(!before.changes(&Host::read().unwrap()).is_empty(), "a running node is seen");
    test.kill().unwrap();
    test.wait().unwrap();
    let mut changes = Vec::new();
    let restored = async || {
        changes = before.changes(&Host::read().unwrap());
        changes.is_empty().then_some(())
    };
    within(Duration::from_secs(60), "the machine is as it was before", restored).await;
}
