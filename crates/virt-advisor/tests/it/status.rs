//! `virt-advisor status` and `virt-advisor wait` during real rollouts, with an API server that is restarted.

use std::path::Path;

use devcluster::{Component, Identity, RunningProgram};
use serde_json::{Value, json};
use testkit::{poll, pty::Pty};

use crate::{
    cli_page::{self, printed},
    guide::{
        document::Document,
        nodes::Nodes,
        terminal::shown,
        test_cluster::{DESCHEDULER, TestCluster, define},
    },
    published,
    replica::end,
    support::{LIMIT, apply, kubectl, program, run_as, text},
};

const PROFILE: &str = "load-aware-rebalancing";

/// Three workers at rest, and a plan that would reboot them.
async fn reviewed() -> (TestCluster, Nodes) {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    cluster.terminal.run("kubectl apply --server-side -f config/samples/third-party/kubedescheduler.yaml").await;
    let nodes = Nodes::start(&cluster, 3).await;
    act(&cluster, "DryRun").await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    (cluster, nodes)
}

async fn act(cluster: &TestCluster, action: &str) {
    let patch = format!(r#"{{"spec":{{"action":"{action}"}}}}"#);
    cluster.terminal.run(&format!("kubectl patch vpcfg {PROFILE} --type=merge -p '{patch}'")).await;
}

/// The exit code, and what it said.
async fn wait(cluster: &TestCluster, args: &[&str]) -> (Option<i32>, String) {
    let args = [&["wait"], args].concat();
    let output = run_as(cluster.control_plane.access(), &Identity::Admin, &program(), &args, &[]).await;
    assert_eq!(text(&output.stdout), "", "people read standard error");
    (output.status.code(), text(&output.stderr))
}

async fn start(cluster: &TestCluster, args: &[&str]) -> RunningProgram {
    cluster.control_plane.access().run(&Identity::Admin, "cli", &program(), args).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_ends_with_the_documented_codes() {
    let (cluster, nodes) = reviewed().await;
    let (code, said) = wait(&cluster, &["nonsense"]).await;
    assert_eq!(code, Some(9), "{said}");
    assert!(said.starts_with("error: there is no VirtPlatformConfig nonsense"), "{said}");
    let (code, said) = wait(&cluster, &["virt-higher-density"]).await;
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("will not be completed before somebody edits it: it is ignored"), "{said}");
    let (code, late) = wait(&cluster, &[PROFILE, "--timeout", "1s"]).await;
    assert_eq!(code, Some(8), "{late}");
    assert!(late.contains("it is ReviewRequired. What has begun goes on"), "{late}");

    // Nobody listens any more, and it goes on.
    let (listener, closed) = std::io::pipe().unwrap();
    drop(listener);
    let kubeconfig = cluster.control_plane.access().kubeconfig(&Identity::Admin).await.unwrap();
    let mut unheard = std::process::Command::new(program());
    unheard.args(["wait", PROFILE, "--timeout", "1s"]).env("KUBECONFIG", kubeconfig).stderr(closed);
    assert_eq!(unheard.status().unwrap().code(), Some(8));

    nodes.hold();
    let reviewed = start(&cluster, &["wait", PROFILE, "--for=reviewed"]).await;
    shown(&reviewed, |text| text.contains("waiting until load-aware-rebalancing is reviewed; it is ReviewRequired"))
        .await;
    act(&cluster, "Apply").await;
    assert_eq!(end(&reviewed).await.code(), Some(0), "{}", reviewed.log_tail());
    cluster.reach(PROFILE, "InProgress").await;

    // The API server is away for a while, and the rollout ends after that.
    let completed = start(&cluster, &["wait", PROFILE, "--for=completed", "--timeout", "10m"]).await;
    let failed = start(&cluster, &["wait", PROFILE, "--for=failed"]).await;
    for program in [&completed, &failed] {
        shown(program, |text| text.contains("it is InProgress")).await;
    }
    cluster.control_plane.stop(Component::ApiServer).await.unwrap();
    shown(&completed, |text| text.contains("no connection to the API server")).await;
    let (code, said) = wait(&cluster, &[PROFILE]).await;
    assert_eq!(code, Some(6), "from the start on: {said}");
    cluster.control_plane.start(Component::ApiServer).await.unwrap();
    let undisturbed = start(&cluster, &["wait", PROFILE, "--for=completed", "--timeout", "4h"]).await;
    shown(&undisturbed, |text| text.contains("it is InProgress")).await;
    nodes.release();
    assert_eq!(end(&completed).await.code(), Some(0), "{}", completed.log_tail());
    assert_eq!(end(&failed).await.code(), Some(7), "{}", failed.log_tail());
    let told = shown(&completed, |text| text.contains("is Completed")).await;
    assert!(told.contains("connected to the API server again"), "{told}");
    let (code, said) = wait(&cluster, &[PROFILE, "--for=completed"]).await;
    assert_eq!((code, said.as_str()), (Some(0), ""), "nothing to wait for");
    assert_eq!(end(&undisturbed).await.code(), Some(0), "{}", undisturbed.log_tail());
    cli_page::check(
        "wait",
        &[
            ("kubectl virt-advisor wait load-aware-rebalancing --timeout 1s", &cli_page::settled(&late)),
            ("echo $?", "8\n"),
            (
                "kubectl virt-advisor wait load-aware-rebalancing --for=completed --timeout 4h",
                &cli_page::settled(&std::fs::read_to_string(undisturbed.log()).unwrap()),
            ),
            ("echo $?", "0\n"),
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_rollout_is_redrawn_in_place_and_survives_a_restart_of_the_api_server() {
    let (cluster, nodes) = reviewed().await;
    let access = cluster.control_plane.access();
    let kubeconfig = access.kubeconfig(&Identity::Admin).await.unwrap();
    let env = [("KUBECONFIG", kubeconfig.to_str().unwrap()), ("TZ", "UTC")];
    let watch = |rows, columns| Pty::spawn(&program(), &["status", PROFILE, "-w"], &env, rows, columns);
    let mut screen = watch(40, 100);
    screen.wait_for("ReviewRequired for").await;
    // Everything that is written here is a line.
    let log = start(&cluster, &["status", PROFILE, "--watch"]).await;
    shown(&log, |text| text.contains("load-aware-rebalancing: ReviewRequired\n")).await;

    nodes.hold();
    act(&cluster, "Apply").await;
    let text = screen.wait_for("rebooting").await;
    assert!(text.starts_with("load-aware-rebalancing: InProgress for"), "it begins at the top: {text}");
    assert!(text.contains("Pool worker [░░░░░░░░░░░░░░░] 0/3 Updating"), "{text}");
    assert!(text.contains("? left"), "nothing is known yet: {text}");
    assert_eq!(text.matches("worker-2").count(), 1, "it is drawn over: {text}");
    assert!(screen.is_cursor_hidden());

    // A small terminal still shows the first and the last line.
    let mut small = watch(6, 60);
    let text = small.wait_for("updated ").await;
    assert!(text.starts_with("load-aware-rebalancing: InProgress"), "{text}");
    small.interrupt();
    small.wait_for("The rollout goes on").await;
    assert_eq!(small.end().await.code(), Some(130));
    assert!(!small.is_cursor_hidden());
    // Whoever ends it in another way gets the cursor back too.
    let mut ended = watch(24, 80);
    ended.wait_for("updated ").await;
    assert!(ended.is_cursor_hidden());
    ended.terminate();
    assert_eq!(ended.end().await.code(), Some(130));
    assert!(!ended.is_cursor_hidden());

    cluster.control_plane.stop(Component::ApiServer).await.unwrap();
    let text = screen.wait_for("no connection to the API server since").await;
    assert!(text.contains("rebooting"), "what was known is still shown: {text}");
    cluster.control_plane.start(Component::ApiServer).await.unwrap();
    screen.wait_until("connected", |text| text.contains("updated ") && !text.contains("no connection")).await;
    nodes.release();
    screen.wait_for("load-aware-rebalancing: Completed for").await;
    assert_eq!(screen.end().await.code(), Some(0));
    assert!(!screen.is_cursor_hidden());

    assert_eq!(end(&log).await.code(), Some(0), "{}", log.log_tail());
    let lines = std::fs::read_to_string(log.log()).unwrap();
    for expected in [
        " load-aware-rebalancing: InProgress\n",
        " load-aware-rebalancing worker worker-0: rebooting\n",
        " no connection to the API server since ",
        " connected to the API server again\n",
        " load-aware-rebalancing: Completed\n",
    ] {
        assert!(lines.contains(expected), "{expected} is not in\n{lines}");
    }
    assert!(!lines.contains('\u{1b}'), "{lines:?}");
}

/// KubeVirt's kinds, and on worker-0 a guest that moves and one that blocks, with a pod that does not end.
async fn fill(cluster: &TestCluster) {
    for kind in ["virtualmachineinstance", "virtualmachineinstancemigration", "kubevirt"] {
        define(&cluster.control_plane, &format!("config/crd/third-party/{kind}.yaml")).await;
    }
    let access = cluster.control_plane.access();
    kubectl(access, &["create", "namespace", "guests"]).await;
    kubectl(access, &["-n", "guests", "create", "serviceaccount", "default"]).await;
    for (name, migratable) in [("web-1", "True"), ("db-1", "False")] {
        let condition = json!({"type": "LiveMigratable", "status": migratable, "reason": "DisksNotLiveMigratable", "message": "PVC db-1 is not shared"});
        let guest = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"namespace": "guests", "name": name, "labels": {"kubevirt.io/nodeName": "worker-0"}},
            "spec": {"domain": {"devices": {}}, "evictionStrategy": "LiveMigrate"},
            "status": {"phase": "Running", "nodeName": "worker-0", "conditions": [condition]},
        });
        apply(access, &guest).await;
    }
    let migration = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "namespace": "guests", "name": "kubevirt-evacuation-1", "labels": {"kubevirt.io/vmi-name": "web-1"},
        },
        "spec": {"vmiName": "web-1"},
    });
    apply(access, &migration).await;
    let status = json!({"status": {"phase": "Running", "migrationState": {"targetNode": "worker-1"}}}).to_string();
    let patch = ["-n", "guests", "patch", "virtualmachineinstancemigration", "kubevirt-evacuation-1", "--type=merge"];
    kubectl(access, &[&patch[..], &["--subresource=status", "-p", &status]].concat()).await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "guests", "name": "virt-launcher-db-1", "finalizers": ["kubevirt.io/test"]},
        "spec": {"nodeName": "worker-0", "containers": [{"name": "compute", "image": "x"}]},
    });
    apply(access, &pod).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_hangs_is_shown_with_the_guests_that_hold_it() {
    let (cluster, nodes) = reviewed().await;
    fill(&cluster).await;
    let access = cluster.control_plane.access();
    act(&cluster, "Apply").await;
    let status = async |who: &Identity, args: &[&str]| {
        let output = run_as(access, who, &program(), &[&["status"], args].concat(), &[("TZ", Path::new("UTC"))]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let hangs = async || {
        let args = ["status", PROFILE, "-o", "json"];
        let report = published::document(&run_as(access, &Identity::Admin, &program(), &args, &[]).await);
        let config = &report["configurations"][0];
        let last = |list: &str| config[list].as_array().and_then(|list| list.last()).cloned().unwrap_or_default();
        let is_shown = last("guests")["name"] == "web-1" && last("events")["reason"] == "RolloutUpdating";
        if is_shown { Ok(report) } else { Err(report) }
    };
    let report: Value = poll(LIMIT, hangs).await.unwrap_or_else(|report| panic!("{report:#}"));
    assert_eq!(report["kind"], "StatusReport");
    let config = &report["configurations"][0];
    assert_eq!((&config["profile"], &config["phase"]), (&json!(PROFILE), &json!("InProgress")));
    let node = &config["pools"][0]["nodes"][0];
    assert_eq!((&node["name"], &node["phase"]), (&json!("worker-0"), &json!("draining")));
    let guest = |number: usize, field: &str| config["guests"][number][field].clone();
    assert_eq!((guest(0, "name"), guest(0, "blocks")), (json!("db-1"), json!(true)));
    assert_eq!(guest(1, "what"), "moves to worker-1: Running");
    assert_eq!(report["unread"], json!([]));

    let page = settled(&status(&Identity::Admin, &[PROFILE]).await);
    assert!(!page.contains('\u{1b}'), "no colors where nobody looks: {page:?}");
    Document::of(format!("$ virt-advisor status {PROFILE}\n{page}")).check("docs/status.md");
    let all = settled(&printed(&cli_page::run(access, &Identity::Admin, &["status"]).await));
    cli_page::check("status", &[("kubectl virt-advisor status", &all)]);

    // Whoever may not read nodes sees what the configuration says, and what is missing.
    let role =
        ["create", "clusterrole", "plans", "--verb=get,list", "--resource=virtplatformconfigs.advisor.kubevirt.io"];
    kubectl(access, &role).await;
    kubectl(access, &["create", "clusterrolebinding", "plans", "--clusterrole=plans", "--user=petra"]).await;
    let limited = status(&Identity::user("petra", &[]), &[]).await;
    assert!(limited.contains("Nodes: forbidden (403). Not known: what each node does"), "{limited}");
    assert!(limited.contains("] 0/3 Updating"), "{limited}");
    assert!(
        limited.lines().skip(1).find(|line| !line.starts_with(' ')).is_some_and(|line| line.starts_with(PROFILE)),
        "what is in progress first: {limited}"
    );

    // Guests are not forgotten while the API server is away, so they are not told twice.
    let log = start(&cluster, &["status", PROFILE, "--watch"]).await;
    shown(&log, |text| text.contains(" guests/db-1 blocks: ")).await;
    cluster.control_plane.stop(Component::ApiServer).await.unwrap();
    shown(&log, |text| text.contains("no connection to the API server since")).await;
    cluster.control_plane.start(Component::ApiServer).await.unwrap();
    let told = shown(&log, |text| text.contains("connected to the API server again")).await;
    assert_eq!(told.matches(" guests/db-1 blocks: ").count(), 1, "{told}");

    // MachineConfigNodes tell the phases also to whoever may not read nodes, and the drain goes on when its pod may end.
    define(&cluster.control_plane, "config/crd/third-party/machineconfignode.yaml").await;
    nodes.report();
    nodes.hold();
    let kinds = [
        "virtplatformconfigs.advisor",
        "machineconfigpools.machineconfiguration",
        "machineconfignodes.machineconfiguration",
    ];
    let [configs, pools, reports] = kinds;
    let kinds = format!("--resource={configs}.kubevirt.io,{pools}.openshift.io,{reports}.openshift.io");
    kubectl(access, &["create", "clusterrole", "steps", "--verb=get,list", &kinds]).await;
    kubectl(access, &["create", "clusterrolebinding", "steps", "--clusterrole=steps", "--user=mona"]).await;
    let phases = async |expected: [&str; 3]| {
        let reported = async || {
            let report = status(&Identity::user("mona", &[]), &[PROFILE, "-o", "json"]).await;
            let report: Value = serde_json::from_str(&report).unwrap();
            let nodes = report["configurations"][0]["pools"][0]["nodes"].as_array().cloned().unwrap_or_default();
            let mut found: Vec<_> = nodes.iter().map(|node| (&node["name"], &node["phase"])).collect();
            found.sort_by_key(|(name, _)| name.to_string());
            let is_so = found.iter().map(|(_, phase)| *phase).eq(&expected);
            if is_so { Ok(nodes) } else { Err(report) }
        };
        poll(LIMIT, reported).await.unwrap_or_else(|report| panic!("{expected:?} is not in {report:#}"))
    };
    let draining = phases(["draining", "waiting", "waiting"]).await;
    let step = "jsonpath={.status.conditions[?(@.type==\"Drained\")].lastTransitionTime}";
    let since = kubectl(access, &["get", "machineconfignode", "worker-0", "-o", step]).await;
    assert_eq!(draining[0]["since"], since.trim(), "the time of the step");
    let end = r#"{"metadata":{"finalizers":null}}"#;
    kubectl(access, &["-n", "guests", "patch", "pod", "virt-launcher-db-1", "--type=merge", "-p", end]).await;
    phases(["rebooting", "waiting", "waiting"]).await;
    nodes.slow_down();
    nodes.hold_after_the_first(&cluster).await;
    phases(["updated", "rebooting", "waiting"]).await;
}

/// Without what is different in every run: ages, dates, digests.
fn settled(page: &str) -> String {
    let mut result = String::new();
    for line in page.lines() {
        let mut rest = line;
        while let Some(start) = rest.find(|letter: char| letter.is_ascii_alphanumeric()) {
            let (before, token) = rest.split_at(start);
            let end = token.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-:".contains(letter));
            let (token, after) = token.split_at(end.unwrap_or(token.len()));
            result += before;
            result += &match token {
                token if is_age(token) && after.starts_with("  ") => format!("{:<1$}", "9s", token.len()),
                token if is_age(token) => "9s".into(),
                token if token.len() == 12 && token.chars().all(|digit| digit.is_ascii_hexdigit()) => {
                    "3f2a9c01b7de".into()
                }
                token if token.len() == 10 && token.starts_with("20") && token.contains('-') => "2026-11-17".into(),
                token if token.len() == 5 && token.contains(':') => "22:04".into(),
                token => token.to_owned(),
            };
            rest = after;
        }
        result += rest;
        result.push('\n');
    }
    result
}

fn is_age(token: &str) -> bool {
    let number = token.strip_suffix('s').or(token.strip_suffix('m'));
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()))
}
