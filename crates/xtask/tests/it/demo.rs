//! The demo shows what it promises and ends cleanly. (It runs `virt-advisor`, which `cargo test --workspace` builds.)

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

#[test]
fn the_demo_walks_from_a_plan_over_a_rollout_to_drift_and_ends_on_ctrl_c() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let mut process = command.arg("demo").env("DEMO_YES", "1").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown: Vec<String> = lines.take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let mut left = shown.iter();
    // In this order.
    for part in [
        "load-aware-rebalancing   Ignore   High     Ignored",
        "Invalid value: memoryToRequestRatio > 120 requires enableSwap=true",
        "load-aware-rebalancing   DryRun   High     ReviewRequired",
        "Plan for load-aware-rebalancing: 2 of 2 items change, impact High, up to 6 nodes reboot",
        "   +  - psi=1",
        "worker-1  [###..] rebooting",
        "[#####] updated",
        "load-aware-rebalancing   Apply    High     Completed",
        "enable-psi-metrics: MachineConfigPool 'worker' is ready (all 6 nodes updated)",
        "load-aware-rebalancing   Apply    High     Drifted",
        "enable-load-aware-descheduling: changed by jane",
        "-  deschedulingIntervalSeconds: 3600",
        "ItemDrifted",
        "kubeconfig: ",
    ] {
        assert!(left.any(|line| line.contains(part)), "{part:?} is not where it should be in:\n{}", shown.join("\n"));
    }
    let status = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(status.unwrap().success());
    assert!(process.wait().unwrap().success());
}
