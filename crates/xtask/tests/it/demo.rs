//! The demo shows what it promises and ends cleanly. (It runs `virt-advisor`, which `cargo test --workspace` builds.)

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

#[test]
fn the_demo_shows_objects_a_refusal_and_a_plan_and_ends_on_ctrl_c() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let shown: Vec<String> = lines.take_while(|line| !line.starts_with("Ctrl-C")).collect();
    for part in [
        "load-aware-rebalancing   DryRun",
        "sample-vm           2     4Gi",
        "Invalid value: memoryToRequestRatio > 120 requires enableSwap=true",
        "Plan for load-aware-rebalancing: 2 of 2 items change, impact High, up to 3 nodes reboot",
        "   +  - psi=1",
        "Nothing was written.",
        "kubeconfig: ",
    ] {
        assert!(shown.iter().any(|line| line.contains(part)), "{part:?} is not in:\n{}", shown.join("\n"));
    }
    let status = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
    assert!(status.unwrap().success());
    assert!(process.wait().unwrap().success());
}
