//! The guide of the profile virt-higher-density: preview, rollout, verification, the wait timeout, and the way back.

use base64::{Engine, prelude::BASE64_STANDARD};
use kube::api::GroupVersionKind;
use serde_json::{Value, json};
use testkit::checklist::script;

use super::{
    checklist::Checklist,
    compare::{Difference, What, complaints, extract},
    nodes::{Nodes, pool_until},
    recorder::{Recorder, messages},
    terminal::shown,
    test_cluster::TestCluster,
    workflow::condition,
};

const PROFILE: &str = "virt-higher-density";
/// Our own guide.
const PAGE: &str = "docs/VIRTHIGHERDENSITY_PROFILE.md";
const SWAP: &str = "enable-kubelet-swap";
const GET: &str = "kubectl get virtplatformconfig virt-higher-density -o yaml";
const REFUSED: &str = "kubectl apply -f config/samples/rejected/ratio_without_swap.yaml";
const IMPOSSIBLE: &str = "kubectl get nodes -l machineconfiguration.openshift.io/currentConfig!=machineconfiguration.openshift.io/desiredConfig";
const WITHOUT_OPTIONS: &str = "\
kubectl apply -f - <<EOF
apiVersion: advisor.kubevirt.io/v1alpha1
kind: VirtPlatformConfig
metadata:
  name: virt-higher-density
spec:
  profile: virt-higher-density
  action: DryRun
EOF";

/// What the guide prints and we do not run, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("oc debug node/<node-name>", "it needs a node that runs pods; ours are objects"),
    ("chroot /host", "it is for a shell on a node"),
    ("swapon --show", "it is for a shell on a node"),
    (
        "cat /etc/openshift/kubelet.conf.d/90-swap.conf",
        "it is for a shell on a node; what it shows is read from the MachineConfig",
    ),
    ("ls -l /dev/disk/by-partlabel/CNV_SWAP", "it is for a shell on a node"),
    ("systemctl status swap-provision.service", "it is for a shell on a node"),
    ("journalctl -u swap-provision.service", "it is for a shell on a node"),
    ("lsblk --output NAME,SIZE,TYPE,PARTLABEL,MOUNTPOINT", "it is for a shell on a node"),
    (
        "sgdisk --new=0:0:+64G --typecode=0:8200 --change-name=0:CNV_SWAP /dev/<disk>",
        "it changes the partitions of a disk",
    ),
    ("partprobe /dev/<disk>", "it is for a shell on a node"),
    ("mkswap /dev/disk/by-partlabel/CNV_SWAP", "it formats a partition; `make test-swap` does that on a loop device"),
    (
        r#"kubectl patch virtplatformconfig virt-higher-density --type=merge -p '{"spec": {"action": "Apply", "options": {"virtHigherDensity": {"enableSwap": false}}}}'"#,
        "the way back is gone with a limit of two seconds first",
    ),
    (IMPOSSIBLE, "it compares a label with another, which selectors cannot; kubectl refuses it"),
    ("make dev-setup", "it starts a cluster, which this test has done"),
    (WITHOUT_OPTIONS, "it is for a cluster without MachineConfigs; see the other test here"),
];

/// What the guide tells, and how it really is.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    (
        "Waiting for MachineConfigPool 'worker' to stabilize (Updated: 1/10, Ready: 9/10)",
        "MachineConfigPool 'worker' is updating (Updated: 1/10, Ready: 1/10)",
        "the workflow guide, which shows real output, has these words and counts as ready what is updated, as MCO does",
    ),
    (
        "(MachineConfig will remain - you'll need to delete it manually)",
        "and the VirtPlatformConfig is advertised again, ignored",
        "profiles are advertised as long as the operator runs",
    ),
];

fn differences() -> Vec<Difference> {
    let path = |field: &str| format!("status.items[{SWAP}].{field}");
    let severity =
        What::Differs { theirs: json!("High - Node reboot required for swap configuration"), ours: json!("High") };
    vec![
        Difference {
            path: path("impactSeverity"),
            what: severity,
            because: "in the workflow guide, which shows real output, it is one of three words",
        },
        Difference {
            path: path("diff"),
            what: What::Illustrated,
            because: "the guide describes it instead of showing it",
        },
    ]
}

fn machine_config() -> GroupVersionKind {
    GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfig")
}

/// W38 (cluster in memory), D12 (named watches only), D30 (deleted configuration): under the rights of the deployed
/// operator; deleted, it is offered again and its MachineConfig stays.
#[tokio::test]
async fn the_guide_of_higher_density() {
    let cluster = TestCluster::with_platform().await;
    let nodes = Nodes::start(&cluster, 10).await;
    let commands = [include_str!("density.sh"), script(PAGE).as_str()].concat();
    let mut guide = Checklist::of(&commands, EXCEPTIONS, &cluster.terminal);
    preview(&cluster, &mut guide).await;
    roll_out(&cluster, &nodes, &mut guide).await;
    verify(&cluster, &mut guide).await;
    change_an_input(&cluster, &mut guide).await;
    delete(&cluster).await;
    roll_back(&cluster, &nodes, &mut guide).await;
    guide.finish();
    cluster.finish().await;
}

async fn preview(cluster: &TestCluster, guide: &mut Checklist<'_>) {
    guide.run_first("kubectl apply -f - <<EOF").await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    guide.tick(GET);
    let config = cluster.terminal.yaml(GET).await;
    let example: Value = serde_saphyr::from_str(include_str!("density-example.yaml")).unwrap();
    let said = complaints(&example, &extract(&example, &config), &differences());
    assert!(said.is_empty(), "{}", said.join("\n"));
    let diff = config["status"]["items"][0]["diff"].as_str().unwrap();
    for path in [
        "/etc/find-swap-partition",
        "/etc/openshift/kubelet.conf.d/90-swap.conf",
        "swap-provision.service",
        "cgroup-system-slice-config.service",
    ] {
        assert!(diff.contains(path), "the complete config: {diff}");
    }
    cluster.object_until(&machine_config(), None, "90-worker-kubelet-swap", "absent", Value::is_null).await;
    guide.tick(REFUSED);
    let refused = cluster.terminal.try_run(REFUSED).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("memoryToRequestRatio > 120 requires enableSwap=true"),
        "{said}"
    );
}

/// What our guide tells of a setting that the options leave to HyperConverged.
async fn change_an_input(cluster: &TestCluster, guide: &mut Checklist<'_>) {
    guide.run_first("kubectl patch hyperconverged").await;
    let forced = |config: &Value| condition(config, "InputDependencyDrift").0 == "True";
    cluster.until(PROFILE, "in a forced review", forced).await;
    let why = guide.run_first("kubectl get virtplatformconfig virt-higher-density -o jsonpath").await;
    assert_eq!(why, "Input dependency changed: HCO memoryOvercommitPercentage changed (150 -> 130)");
    guide.run_first("kubectl patch hyperconverged").await;
    cluster.reach(PROFILE, "Completed").await;
}

async fn roll_out(cluster: &TestCluster, nodes: &Nodes, guide: &mut Checklist<'_>) {
    let watch = "kubectl get virtplatformconfig virt-higher-density -w";
    guide.tick(watch);
    let watch = cluster.terminal.start(cluster.control_plane.access(), watch).await;
    shown(&watch, |text| text.contains("ReviewRequired")).await;
    let recorder = Recorder::start(cluster, PROFILE).await;
    guide.run_first("kubectl patch virtplatformconfig virt-higher-density").await;
    nodes.hold_after_the_first(cluster).await;
    let (_, one_of_ten, because) = DIFFERENCES[0];
    cluster
        .until(PROFILE, "telling how many nodes are done", |config| {
            config["status"]["phase"] == "InProgress" && config["status"]["items"][0]["message"] == one_of_ten
        })
        .await;
    nodes.release();
    let completed = cluster.reach(PROFILE, "Completed").await;
    let seen = recorder.up_to(&completed).await;
    let told = messages(&seen, SWAP);
    let position = |message: &str| told.iter().position(|told| *told == message);
    let all = position("MachineConfigPool 'worker' is ready (all 10 nodes updated)");
    let progression = [position("Applying configuration..."), position(one_of_ten), all];
    assert!(progression.is_sorted() && progression.iter().all(Option::is_some), "{because}: {told:#?}");
    shown(&watch, |text| ["InProgress", "Completed"].iter().all(|phase| text.contains(phase))).await;
}

async fn verify(cluster: &TestCluster, guide: &mut Checklist<'_>) {
    let config: Value =
        serde_saphyr::from_str(&guide.run("kubectl get machineconfig 90-worker-kubelet-swap -o yaml").await).unwrap();
    let files = config["spec"]["config"]["storage"]["files"].as_array().unwrap();
    let content = |path: &str| {
        let file = files.iter().find(|file| file["path"] == path).unwrap();
        let (_, encoded) = file["contents"]["source"].as_str().unwrap().split_once(";base64,").unwrap();
        String::from_utf8(BASE64_STANDARD.decode(encoded).unwrap()).unwrap()
    };
    // The guide's script, but for what fails when it is run twice or finds no partition.
    let script = content("/etc/find-swap-partition");
    let is_kept =
        |line: &&str| ["PARTLABEL=", "DEVICE=", "swapon \"$DEVICE\""].iter().any(|kept| line.starts_with(kept));
    let kept: Vec<&str> = include_str!("find-swap-partition.sh").lines().filter(is_kept).collect();
    assert_eq!((kept.len(), script.lines().filter(is_kept).collect::<Vec<_>>()), (3, kept));
    assert_eq!(
        content("/etc/openshift/kubelet.conf.d/90-swap.conf"),
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmemorySwap:\n  swapBehavior: LimitedSwap\n"
    );
    let pool: Value = serde_saphyr::from_str(&guide.run("kubectl get machineconfigpool worker -o yaml").await).unwrap();
    assert_eq!(pool["status"]["degradedMachineCount"], 0);
    assert_eq!(pool["status"]["updatedMachineCount"], pool["status"]["machineCount"]);
    let nodes = guide.run("kubectl get nodes -l node-role.kubernetes.io/worker -o wide").await;
    assert_eq!(nodes.lines().count(), 11, "{nodes}");
    let status = guide.run("virt-advisor status virt-higher-density").await;
    assert!(status.contains("Completed"), "{status}");
    let refused = cluster.terminal.try_run(IMPOSSIBLE).await;
    assert!(!refused.status.success(), "it may be run after all");
}

/// Deleting the object leaves what was applied, and the profile is offered again.
async fn delete(cluster: &TestCluster) {
    let before = cluster.reach(PROFILE, "Completed").await;
    cluster.terminal.run("kubectl delete virtplatformconfig virt-higher-density").await;
    let (_, advertised, _) = DIFFERENCES[1];
    let is_new = |config: &Value| {
        !config.is_null()
            && config["metadata"]["uid"] != before["metadata"]["uid"]
            && config["status"]["phase"] == "Ignored"
            && config["spec"]["action"] == "Ignore"
    };
    cluster.until(PROFILE, advertised, is_new).await;
    cluster
        .object_until(&machine_config(), None, "90-worker-kubelet-swap", "left alone", |config| !config.is_null())
        .await;
}

/// Without swap: the MachineConfig goes, with a rollout of its own, and within the time that is allowed for it.
async fn roll_back(cluster: &TestCluster, nodes: &Nodes, guide: &mut Checklist<'_>) {
    let spec = |spec: &str| {
        format!("kubectl patch virtplatformconfig virt-higher-density --type=merge -p '{{\"spec\": {spec}}}'")
    };
    nodes.hold();
    cluster
        .terminal
        .run(&spec(
            r#"{"action": "Apply", "waitTimeout": "2s", "options": {"virtHigherDensity": {"enableSwap": false}}}"#,
        ))
        .await;
    let config = cluster.reach(PROFILE, "Failed").await;
    let items = config["status"]["items"].as_array().unwrap();
    let removal = items.iter().find(|item| item["targetRef"]["name"] == "90-worker-kubelet-swap").unwrap();
    assert_eq!((&removal["operation"], &removal["state"]), (&json!("Delete"), &json!("Failed")));
    let message = removal["message"].as_str().unwrap();
    assert!(message.starts_with("Timeout waiting for resource to become healthy (waited "), "{message}");
    assert!(
        message.contains(", timeout 2s): MachineConfigPool 'worker' is updating (Updated: 0/10, Ready: 0/10)"),
        "{message}"
    );
    assert!(condition(&config, "Failed").2.contains(message), "{:?}", condition(&config, "Failed"));

    guide.run(&spec(r#"{"waitTimeout": "24h"}"#)).await;
    nodes.release();
    cluster.reach(PROFILE, "Completed").await;
    cluster.object_until(&machine_config(), None, "90-worker-kubelet-swap", "removed", Value::is_null).await;
    let is_back = |pool: &Value| {
        let sources = pool["status"]["configuration"]["source"].as_array();
        pool["status"]["updatedMachineCount"] == 10
            && sources.is_some_and(|all| all.iter().all(|it| it["name"] != "90-worker-kubelet-swap"))
    };
    pool_until(cluster, "back to what it was", is_back).await;
}

#[tokio::test]
async fn on_a_cluster_without_machine_configs_the_prerequisite_check_fails() {
    let cluster = TestCluster::without_platform().await;
    let said = cluster.terminal.run(WITHOUT_OPTIONS).await;
    assert!(said.contains("virt-higher-density configured"), "{said}");
    let config = cluster.reach(PROFILE, "PrerequisiteFailed").await;
    let (status, _, message) = condition(&config, "PrerequisiteFailed");
    assert_eq!(status, "True");
    let expected = "\
Missing required dependencies:
  - MachineConfig (machineconfiguration.openshift.io.v1): MachineConfig CRD is required for swap configuration (available on OpenShift)
  - HyperConverged (hco.kubevirt.io.v1beta1): Install OpenShift Virtualization via OLM
";
    assert_eq!(message, expected);
    cluster.finish().await;
}
