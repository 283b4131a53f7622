//! The demo shows what it promises and ends cleanly. (It runs `virt-advisor`, which `cargo test --workspace` builds.)

use std::{env, fs, path::Path, process::Command, time::Duration};

use devcluster::RunningProgram;
use testkit::{eventually, within};

/// Generous: the demo waits for a rollout, and other tests run beside it.
const LIMIT: Duration = Duration::from_secs(300);

#[tokio::test]
async fn the_demo_walks_from_a_plan_over_a_rollout_to_drift_and_ends_on_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let home = format!("HOME={}", env::var("HOME").unwrap_or_default());
    let args = [&home, "DEMO_YES=1", env!("CARGO_BIN_EXE_xtask"), "demo"].map(str::to_owned).to_vec();
    let log = folder.path().join("log");
    let demo = RunningProgram::spawn("demo", Path::new("/usr/bin/env"), args, folder.path(), &log).unwrap();
    let is_over = |shown: &str| shown.lines().any(|line| line.starts_with("Ctrl-C"));
    let shown = async || fs::read_to_string(&log).ok().filter(|shown| is_over(shown) || demo.exit_status().is_some());
    let shown = within(LIMIT, "the demo has shown everything", shown).await;
    let mut left = shown.lines();
    // In this order.
    for part in [
        "Ignored",
        "Invalid value: memoryToRequestRatio > 120 requires enableSwap=true",
        "$ virt-advisor list",
        "ReviewRequired",
        "$ virt-advisor plan load-aware-rebalancing",
        "- psi=1",
        "$ virt-advisor impact load-aware-rebalancing",
        "guests/db-1",
        "VMBlocksDrain",
        "$ virt-advisor approve load-aware-rebalancing --digest ",
        "Approved plan ",
        "$ virt-advisor status load-aware-rebalancing -w",
        "worker-0",
        "Completed",
        "$ virt-advisor history load-aware-rebalancing",
        "$ virt-advisor drift load-aware-rebalancing",
        "jane",
        "ItemDrifted",
        "kubeconfig: ",
    ] {
        assert!(left.any(|line| line.contains(part)), "{part:?} is not where it should be in:\n{shown}");
    }
    let status = Command::new("kill").args(["-INT", &demo.pid().to_string()]).status();
    assert!(status.unwrap().success());
    let status = eventually("the demo has ended", async || demo.exit_status()).await;
    assert!(status.success(), "{status}");
}
