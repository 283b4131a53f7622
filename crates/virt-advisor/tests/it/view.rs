//! The reading commands of the plugin on a real API server: as an administrator, with the rights of a viewer, and through kubectl.

use std::{path::Path, process::Output};

use devcluster::{Access, Cluster, Identity, RunningProgram};
use serde_json::json;

use crate::{
    cli_page::{check, plugin, printed, run, settled},
    published,
    support::{apply, install_definitions, kubectl, phase, program, site, text},
};

const PROFILE: &str = "load-aware-rebalancing";

fn viewer() -> Identity {
    Identity::user("victor", &[])
}

#[tokio::test]
async fn a_viewer_lists_configurations_and_sees_who_has_the_next_step() {
    let access = site().await.cluster.access();
    let output = run(access, &viewer(), &["list"]).await;
    let shown = printed(&output);
    assert!(!shown.contains('\u{1b}'), "no colors where nobody looks: {shown:?}");
    check("list", &[("kubectl virt-advisor list", &settled(&shown))]);
    let list = published::document(&run(access, &viewer(), &["list", "-o", "json"]).await);
    assert_eq!(list["kind"], "ConfigList");
    let told =
        |field: &str| list["items"].as_array().unwrap().iter().map(|item| item[field].clone()).collect::<Vec<_>>();
    assert_eq!(told("profile"), [PROFILE, "example-profile", "virt-higher-density"]);
    assert_eq!(told("waitsFor"), ["person", "nobody", "nobody"]);
}

#[tokio::test]
async fn a_viewer_reads_the_stored_plan_and_how_to_approve_it() {
    let cluster = &site().await.cluster;
    let access = cluster.access();
    let output = run(access, &viewer(), &["plan", PROFILE]).await;
    let shown = printed(&output);
    assert!(shown.ends_with(&format!("Approve it with: kubectl virt-advisor approve {PROFILE}\n")), "{shown}");
    check("plan", &[("kubectl virt-advisor plan load-aware-rebalancing", &settled(&shown))]);
    let stored = published::document(&run(access, &viewer(), &["plan", PROFILE, "-o", "json"]).await);
    let drafted =
        published::document(&run(access, &Identity::Admin, &["plan", PROFILE, "--draft", "-o", "json"]).await);
    assert_eq!(stored["plans"][0]["planDigest"], drafted["plans"][0]["planDigest"], "one plan, told by both");
    assert_eq!((&stored["plans"][0]["origin"], &drafted["plans"][0]["origin"]), (&"stored".into(), &"draft".into()));
    let code = run(access, &viewer(), &["plan", PROFILE, "--exit-code"]).await.status.code();
    assert_eq!(code, Some(1), "it changes something");
}

#[tokio::test]
async fn a_plan_that_is_not_there_and_one_that_may_not_be_read_are_told_apart() {
    let access = site().await.cluster.access();
    for (who, args, code, expected) in [
        (viewer(), ["plan", "virt-higher-density"], 9, "error: virt-higher-density has no plan"),
        (
            viewer(),
            ["plan", "nonsense"],
            9,
            "error: there is no VirtPlatformConfig nonsense; `kubectl virt-advisor list`",
        ),
        (Identity::user("nobody", &[]), ["plan", PROFILE], 5, "error: reading /apis/advisor.kubevirt.io/"),
        (Identity::user("nobody", &[]), ["drift", PROFILE], 5, "error: reading /apis/advisor.kubevirt.io/"),
    ] {
        let output = run(access, &who, &args).await;
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(code) && said.starts_with(expected), "{args:?}: {said}");
    }
}

#[tokio::test]
async fn the_history_lists_records_and_shows_one() {
    let access = site().await.cluster.access();
    // A record is closed after the phase has changed.
    let record = "virtplatformplanrecord/example-profile-1";
    kubectl(access, &["wait", "--for=jsonpath={.status.outcome}=Completed", record, "--timeout=60s"]).await;
    let all = settled(&printed(&run(access, &viewer(), &["history"]).await));
    assert!(all.starts_with("example-profile\nNUMBER"), "{all}");
    let one = settled(&printed(&run(access, &viewer(), &["history", "example-profile", "1"]).await));
    assert!(one.starts_with("example-profile-1: Completed\n"), "{one}");
    check(
        "history",
        &[("kubectl virt-advisor history", &all), ("kubectl virt-advisor history example-profile 1", &one)],
    );
    for args in [&["history", "-o", "json"][..], &["history", "example-profile", "1", "-o", "json"]] {
        let history = published::document(&run(access, &viewer(), args).await);
        assert_eq!((&history["kind"], &history["records"][0]["number"]), (&json!("History"), &json!(1)));
    }
    let missing = run(access, &viewer(), &["history", "example-profile", "7"]).await;
    assert_eq!(missing.status.code(), Some(9));
    assert!(text(&missing.stderr).starts_with("error: there is no VirtPlatformPlanRecord example-profile-7"));
}

#[tokio::test]
async fn profiles_are_explained_without_a_cluster() {
    let (_folder, plugin) = plugin();
    let run = |args: &[&str]| {
        std::process::Command::new(&plugin)
            .args(args)
            .env_remove("COLUMNS")
            .env("KUBECONFIG", "/nowhere")
            .output()
            .unwrap()
    };
    let (all, one) = (printed(&run(&["explain"])), printed(&run(&["explain", "virt-higher-density"])));
    assert!(one.contains("spec.options.virtHigherDensity.enableSwap"), "{one}");
    check(
        "explain",
        &[("kubectl virt-advisor explain", &all), ("kubectl virt-advisor explain virt-higher-density", &one)],
    );
    for args in [&["explain", "-o", "json"][..], &["explain", "virt-higher-density", "-o", "json"]] {
        assert_eq!(published::document(&run(args))["kind"], "ProfileExplanation");
    }
}

async fn kubectl_plugin(access: &Access, folder: &Path, args: &[&str]) -> Output {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let mut command = access.kubectl_command(&Identity::Admin).await.unwrap();
    command.args(args).env("PATH", path).env_remove("COLUMNS").output().unwrap()
}

#[tokio::test]
async fn kubectl_finds_the_plugin_and_asks_it_for_completions() {
    let access = site().await.cluster.access();
    let (folder, plugin) = plugin();
    let listed = kubectl_plugin(access, folder.path(), &["virt-advisor", "list", "-o", "json"]).await;
    assert!(printed(&listed).contains("\"kind\": \"ConfigList\""), "{}", text(&listed.stdout));
    let completed = async |words: &[&str]| {
        let output = kubectl_plugin(access, folder.path(), &[&["__complete", "virt-advisor"], words].concat()).await;
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let profiles = completed(&["plan", "load"]).await;
    assert_eq!(profiles, ["load-aware-rebalancing\tReviewRequired", ":4"]);
    let commands = completed(&["hi"]).await;
    assert_eq!(commands[0].split('\t').next(), Some("history"), "{commands:?}");
    // It must not disturb whoever types.
    let helper = plugin.with_file_name("kubectl_complete-virt_advisor");
    let silent = std::process::Command::new(helper).args(["plan", ""]).env("KUBECONFIG", "/nowhere").output().unwrap();
    assert_eq!((printed(&silent).as_str(), text(&silent.stderr).as_str()), (":4\n", ""));
}

#[test]
fn help_has_the_name_under_which_it_was_called() {
    let (_folder, plugin) = plugin();
    for (program, name) in [(plugin, "kubectl virt-advisor"), (program(), "virt-advisor")] {
        let help = printed(&std::process::Command::new(program).args(["drift", "--help"]).output().unwrap());
        assert!(help.contains(&format!("Usage: {name} drift [OPTIONS] [PROFILE]\n")), "{help}");
        assert!(help.contains(&format!("\n  {name} drift load-aware-rebalancing --exit-code\n")), "{help}");
    }
}

#[test]
fn shells_get_a_script() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = printed(&std::process::Command::new(program()).args(["completion", shell]).output().unwrap());
        assert!(script.contains("history"), "{shell}: {script}");
    }
}

/// A cluster in which the descheduler is configured by an applied plan.
async fn applied() -> (Cluster, RunningProgram) {
    let cluster = Cluster::builder().start().await.unwrap();
    let access = cluster.access();
    install_definitions(access).await;
    for args in [
        &["create", "clusterrole", "plans", "--verb=get,list", "--resource=virtplatformconfigs.advisor.kubevirt.io"][..],
        &["create", "clusterrolebinding", "plans", "--clusterrole=plans", "--user=petra"],
    ] {
        kubectl(access, args).await;
    }
    let config = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": PROFILE},
        "spec": {"profile": PROFILE, "action": "Apply", "options": {"loadAware": {"enablePSIMetrics": false}}},
    });
    apply(access, &config).await;
    let operator = access.run(&Identity::Admin, "operator", &program(), &["operator"]).await.unwrap();
    phase(access, PROFILE, "Completed").await;
    (cluster, operator)
}

#[tokio::test]
async fn drift_is_told_field_by_field_and_the_printed_option_keeps_it() {
    let (cluster, _operator) = applied().await;
    let access = cluster.access();
    let clean = run(access, &Identity::Admin, &["drift", "--exit-code"]).await;
    assert_eq!(printed(&clean), format!("{PROFILE}: everything is as it was applied\n"));

    let edit = r#"{"spec":{"deschedulingIntervalSeconds":180,"mode":"Predictive"}}"#;
    let target = [
        "-n",
        "openshift-kube-descheduler-operator",
        "patch",
        "kubedescheduler",
        "cluster",
        "--type=merge",
        "-p",
        edit,
    ];
    kubectl(access, &target).await;
    phase(access, PROFILE, "Drifted").await;
    let drifted = run(access, &Identity::Admin, &["drift", PROFILE]).await;
    check("drift", &[("kubectl virt-advisor drift load-aware-rebalancing", &settled(&printed(&drifted)))]);
    let code = run(access, &Identity::Admin, &["drift", "--exit-code"]).await.status.code();
    assert_eq!(code, Some(1));
    let json = published::document(&run(access, &Identity::Admin, &["drift", "-o", "json"]).await);
    let fields = json["configs"][0]["objects"][0]["fields"].as_array().unwrap();
    let told: Vec<_> =
        fields.iter().map(|field| (&field["path"], &field["applied"], &field["now"], &field["by"])).collect();
    let (patch, automatic, predictive) = (json!("kubectl-patch"), json!("Automatic"), json!("Predictive"));
    assert_eq!(
        told,
        [
            (&json!("spec.deschedulingIntervalSeconds"), &json!(60), &json!(180), &patch),
            (&json!("spec.mode"), &automatic, &predictive, &patch),
        ]
    );

    let petra = run(access, &Identity::user("petra", &[]), &["drift", PROFILE]).await;
    let said = printed(&petra);
    assert!(
        said.contains("Not read\n   KubeDescheduler openshift-kube-descheduler-operator/cluster: forbidden (403)\n"),
        "{said}"
    );

    let shown = text(&drifted.stdout);
    let keep = shown.lines().find(|line| line.contains("\"options\"")).unwrap();
    let patch = keep.split('\'').nth(1).unwrap();
    kubectl(access, &["patch", "vpcfg", PROFILE, "--type=merge", "-p", patch]).await;
    phase(access, PROFILE, "Completed").await;
    let kept = run(access, &Identity::Admin, &["drift", "--exit-code"]).await;
    assert_eq!(printed(&kept), format!("{PROFILE}: everything is as it was applied\n"));
    let live = kubectl(
        access,
        &[
            "-n",
            "openshift-kube-descheduler-operator",
            "get",
            "kubedescheduler",
            "cluster",
            "-o",
            "jsonpath={.spec.mode}",
        ],
    )
    .await;
    assert_eq!(live, "Predictive");
}
