//! The commands of the pages of the lab: each is run here as printed, or listed with the reason why not.

use testkit::checklist::{Checklist, script};

use crate::reference_commands::Shell;

const OTHER_TEST: &str = "a lab of its own: crates/rebalance-lab/tests/it/up.rs runs such commands";
const LONG: &str = "a lab of its own, and minutes; its output was recorded once";
const ADVISED: &str = "it needs the advisor: crates/lab/tests/closed_loop/advised.rs goes the same way in one process";
const KIND: &str = "it needs kind and a container engine";

/// The pod of a VM may be another one at any time.
const POD: &str = "$(kubectl get vm vm-1 -o jsonpath='{.status.podName}')";

/// A page, and what of it is not run here, and why.
type Page = (&'static str, &'static [(&'static str, &'static str)]);

const PAGES: [Page; 7] = [
    ("docs/lab/PROMETHEUS_ALGORITHMS.md", &[]),
    (
        "docs/lab/QUICKSTART.md",
        &[
            ("rebalance-lab up", OTHER_TEST),
            ("rebalance-lab watch", OTHER_TEST),
            ("rebalance-lab up --time-scale 20", OTHER_TEST),
            ("rebalance-lab status", OTHER_TEST),
            ("rebalance-lab load --cpu 0.9 --vms 'vm-00*'", OTHER_TEST),
            ("rebalance-lab up --nodes 8 --memory 256Gi --empty --time-scale 20", LONG),
            ("rebalance-lab load hotspot", LONG),
            ("rebalance-lab up --with-advisor --time-scale 20", ADVISED),
            ("export KUBECONFIG=...", "the path is another one in each lab"),
            ("virt-advisor operator", ADVISED),
            (
                r#"kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{"spec": {"action": "DryRun"}}'"#,
                ADVISED,
            ),
            (
                r#"kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{"spec": {"action": "Apply"}}'"#,
                ADVISED,
            ),
        ],
    ),
    (
        "docs/lab/PODMAN_SETUP.md",
        &[
            ("export KIND_EXPERIMENTAL_PROVIDER=podman", KIND),
            ("./setup-kind-env.sh", "it needs kind: crates/lab/tests/it/manifests.rs runs it with a stand-in"),
            ("KIND_EXPERIMENTAL_PROVIDER=podman kind delete cluster --name node-classifier-sim", KIND),
            ("podman system prune -a", "it would remove images of this machine"),
        ],
    ),
    ("docs/lab/README_PODS.md", &[]),
    ("docs/lab/README_VM_CRD.md", &[]),
    ("docs/lab/RESOURCE_MODEL.md", &[("rebalance-lab load --cpu 0.9 --vms 'vm-1*'", OTHER_TEST)]),
    ("docs/lab/SCHEDULER_INTEGRATION.md", &[]),
];

pub(crate) async fn run_commands(shell: &Shell) {
    for (page, exceptions) in PAGES {
        let mut list = Checklist::of(&script(page), exceptions);
        for command in list.left().to_vec() {
            shell.succeed(&command.replace("<pod>", POD)).await;
            list.tick(&command);
        }
        list.finish();
    }
}

#[test]
fn every_command_that_is_not_run_is_still_on_its_page() {
    for (page, exceptions) in PAGES {
        Checklist::of(&script(page), exceptions);
    }
}
