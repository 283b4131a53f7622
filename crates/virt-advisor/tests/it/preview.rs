//! `virt-advisor preview` shows a plan and writes nothing.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    process::{Command, Output, Stdio},
};

use devcluster::{Cluster, Identity};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::kubectl;

/// One cluster for all tests here: nothing in them writes.
async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
    let start = async || {
        let cluster = Cluster::builder().start().await.unwrap();
        let access = cluster.access();
        kubectl(access, &["apply", "--server-side", "-k", "config/crd/third-party"]).await;
        let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"];
        kubectl(access, &wait).await;
        kubectl(access, &["apply", "--server-side", "-k", "config/samples/third-party"]).await;
        kubectl(
            access,
            &["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"],
        )
        .await;
        kubectl(access, &["apply", "--server-side", "-f", "config/samples/third-party/kubedescheduler.yaml"]).await;
        cluster
    };
    CLUSTER.get_or_init(start).await
}

async fn preview(args: &[&str], input: &str) -> Output {
    let kubeconfig = cluster().await.access().kubeconfig(&Identity::Admin).await.unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_virt-advisor"))
        .arg("preview")
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn the_plan_for_people_tells_what_why_impact_and_diff() {
    insta::assert_snapshot!("load-aware", out(&preview(&["load-aware-rebalancing"], "").await));
    insta::assert_snapshot!("density", out(&preview(&["virt-higher-density"], "").await));
}

#[tokio::test]
async fn the_guide_shows_real_output() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/preview.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let (start, end) = ("<!-- output: kept current by a test -->\n", "<!-- end of output -->");
    let (before, rest) = text.split_once(start).unwrap();
    let (shown, after) = rest.split_once(end).unwrap();
    let output = out(&preview(&["load-aware-rebalancing"], "").await);
    let current = format!("```console\n$ virt-advisor preview load-aware-rebalancing\n{output}```\n");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&guide, format!("{before}{start}{current}{end}{after}")).unwrap();
    } else {
        assert_eq!(shown, current, "run `UPDATE_DOCS=1 cargo test -p virt-advisor` and commit the result");
    }
}

#[tokio::test]
async fn options_change_the_plan() {
    let text = out(&preview(
        &["load-aware-rebalancing", "--options", "-"],
        "loadAware: {enablePSIMetrics: false, evictionLimitTotal: 9}",
    )
    .await);
    assert!(text.starts_with("Plan for load-aware-rebalancing: 1 of 1 items change, impact Low\n"), "{text}");
    assert!(text.contains("+    total: 9\n"), "{text}");
}

#[tokio::test]
async fn json_and_yaml_carry_the_same_plan_in_a_stable_shape() {
    let json: Value =
        serde_json::from_str(&out(&preview(&["load-aware-rebalancing", "-o", "json"], "").await)).unwrap();
    let yaml: Value =
        serde_saphyr::from_str(&out(&preview(&["load-aware-rebalancing", "-o", "yaml"], "").await)).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(
        (&json["apiVersion"], &json["kind"]),
        (&"cli.advisor.kubevirt.io/v1alpha1".into(), &"PlanReport".into())
    );
    let plan = &json["plans"][0];
    let keys: Vec<_> = plan.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "hasChanges",
            "impactSeverity",
            "inputs",
            "items",
            "notes",
            "origin",
            "planDigest",
            "profile",
            "risks",
            "sourceSnapshotHash"
        ]
    );
    assert_eq!(plan["items"][0]["verb"], "created");
    assert_eq!(plan["items"][0]["impactDetail"]["pools"][0]["nodes"], 3);
    assert_eq!(plan["planDigest"].as_str().unwrap().len(), 64);
}

#[tokio::test]
async fn a_preview_writes_nothing() {
    let cluster = cluster().await;
    let client = cluster.access().client().await.unwrap();
    let start = cluster.audit().position(&client).await.unwrap();
    for profile in ["load-aware-rebalancing", "virt-higher-density"] {
        out(&preview(&[profile], "").await);
    }
    let all = cluster.audit().since(start, &client).await.unwrap();
    let previews: Vec<_> = all.iter().filter(|request| request.dry_run).collect();
    assert!(!previews.is_empty(), "the previews were seen");
    assert!(previews.iter().all(|request| request.user_agent == api::user_agent("preview")), "{previews:?}");
    let writes = cluster.audit().writes_since(start, &client).await.unwrap();
    assert_eq!(writes, [], "and nothing was written");
}

#[tokio::test]
async fn errors_say_what_to_do_and_end_with_1() {
    let cases: &[(&[&str], &str, &str)] = &[
        (
            &["load-aware-rebalancing", "--options", "/nowhere"],
            "",
            "error: reading options from /nowhere: No such file",
        ),
        (
            &["load-aware-rebalancing", "--options", "-"],
            "loadAware: {intervall: 1}",
            "error: reading options from -: there is no field loadAware.intervall",
        ),
        (
            &["load-aware-rebalancing", "--options", "-"],
            "loadAware: {evictionLimitTotal: 0}",
            "error: spec.options.loadAware.evictionLimitTotal is 0: must be from 1 to 1000",
        ),
        (
            &["virt-higher-density", "--options", "-"],
            "loadAware: {}",
            "error: options.loadAware can only be used with profile 'load-aware-rebalancing'",
        ),
        (
            &["load-aware-rebalancing", "--restore", "virt-higher-density-1"],
            "",
            "error: --restore virt-higher-density-1: must be original or the name of a VirtPlatformPlanRecord of this profile, for \
             example load-aware-rebalancing-7",
        ),
        // What was applied before there were records.
        (
            &["load-aware-rebalancing", "--restore", "original"],
            "",
            "error: Missing required dependencies:\n  - No record tells what was there before load-aware-rebalancing managed anything",
        ),
        (
            &["load-aware-rebalancing", "--restore", "load-aware-rebalancing-3"],
            "",
            "error: Missing required dependencies:\n  - VirtPlatformPlanRecord load-aware-rebalancing-3 does not exist. There is no \
             record of load-aware-rebalancing to restore instead: set the objects back by hand",
        ),
        (&["load-aware-rebalancing", "--context", "nowhere"], "", "error: reading the kubeconfig: "),
    ];
    for (args, input, expected) in cases {
        let output = preview(args, input).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.starts_with(expected), "{args:?}: {said}");
        assert!(!said.contains('\u{1b}'), "no colors where nobody looks: {said:?}");
    }
}

#[tokio::test]
async fn a_misspelled_profile_is_told_with_the_one_that_was_meant() {
    let output = preview(&["load-aware"], "").await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("[possible values: load-aware-rebalancing, virt-higher-density, example-profile]"), "{said}");
}

#[test]
fn without_a_kubeconfig_one_line_says_what_to_set() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_virt-advisor"));
    command.args(["preview", "example-profile"]).env_remove("KUBECONFIG").env("HOME", folder.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: there is no cluster to look at: set KUBECONFIG to a kubeconfig file\n"
    );
}

/// A preview of the example profile from the API server at an address, by plain HTTP.
fn preview_from(address: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
        "clusters": [{"name": "x", "cluster": {"server": format!("http://{address}")}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    });
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_virt-advisor"));
    command.args(["preview", "example-profile"]).env("KUBECONFIG", path).output().unwrap()
}

#[test]
fn an_api_server_that_does_not_answer_is_named() {
    let output = preview_from("127.0.0.1:1");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(6));
    assert!(said.starts_with("error: reading ConfigMap openshift-cnv/example-config: "), "{said}");
    assert!(said.contains("Connection refused"), "{said}");
}

/// As kube-apiserver answers for a moment after a definition was created.
#[test]
fn a_kind_that_was_just_defined_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        for number in 0.. {
            let (mut stream, _) = listener.accept().unwrap();
            let read = stream.read(&mut [0; 4096]).unwrap();
            assert!(read > 0);
            let (status, body) = match number {
                0..3 => ("429 Too Many Requests", json!({"code": 429, "message": "storage is (re)initializing"})),
                3 => ("404 Not Found", json!({"code": 404, "details": {"name": "example-config"}})),
                _ => ("200 OK", json!({"kind": "ConfigMap", "metadata": {"name": "example-config"}})),
            };
            let body = body.to_string();
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
            if number == 4 {
                return;
            }
        }
    });
    let text = out(&preview_from(&address));
    assert!(text.starts_with("Plan for example-profile: "), "{text}");
    server.join().unwrap();
}
