//! `virt-advisor approve`, `reject` and `undo` on a real API server: by scripts, and by a person at a terminal.

use std::path::Path;

use devcluster::{Access, Identity};
use serde_json::Value;
use testkit::{eventually, pty::Pty};

use crate::{
    cli_page::{check, plugin, printed, run},
    impact::{PROFILE, start},
    support::{kubectl, phase, program, text},
};

const ROWS: u16 = 300;

async fn config(access: &Access) -> Value {
    serde_json::from_str(&kubectl(access, &["get", "vpcfg", PROFILE, "-o", "json"]).await).unwrap()
}

/// The exit code, and what was said.
async fn refused(access: &Access, who: &Identity, args: &[&str]) -> (i32, String) {
    let output = run(access, who, args).await;
    (output.status.code().unwrap(), text(&output.stderr))
}

/// A person at a terminal who approves the plan.
async fn at_a_terminal(access: &Access, plugin: &Path) -> Pty {
    at_a_terminal_with(access, plugin, "", ROWS).await
}

/// The same with a redirection of a shell.
async fn at_a_terminal_with(access: &Access, plugin: &Path, redirection: &str, rows: u16) -> Pty {
    let kubeconfig = access.kubeconfig(&Identity::Admin).await.unwrap();
    let env = [("KUBECONFIG", kubeconfig.to_str().unwrap()), ("PAGER", "cat")];
    // A shell cannot take back that a signal is ignored, as in a job in the background.
    let script = format!("exec '{}' approve {PROFILE} --reason CHG-4711 {redirection}", plugin.display());
    Pty::spawn(Path::new("env"), &["--default-signal=INT", "sh", "-c", &script], &env, rows, 80)
}

/// Accepts every risk that is asked about, until the last question.
async fn accept_all(pty: &mut Pty, risks: &[&str]) {
    for risk in risks {
        pty.wait_for(&format!("Accept {risk}? [y/N]")).await;
        pty.send("y\r");
    }
    pty.wait_for("Type yes to go on:").await;
}

const RISKS: [&str; 3] = ["VMBlocksDrain", "VMStaysDown", "VMRestarts"];

#[tokio::test]
async fn a_plan_is_approved_as_it_was_read_with_its_risks_and_by_whoever_may() {
    let site = start().await;
    let access = site.cluster.access();
    let admin = Identity::Admin;
    let before = config(access).await;
    let digest = before["status"]["planDigest"].as_str().unwrap().to_owned();

    // A script has to name what was read, and what it accepts.
    let (code, said) = refused(access, &admin, &["approve", PROFILE]).await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains(&format!("virt-advisor approve {PROFILE} --digest {digest}")), "{said}");
    let (code, said) = refused(access, &admin, &["approve", PROFILE, "--digest", "0000"]).await;
    assert!(code == 3 && said.contains("is not the current one any more"), "{code} {said}");
    let (code, said) =
        refused(access, &admin, &["approve", PROFILE, "--digest", &digest, "--accept-risk", RISKS[1]]).await;
    let accepting = "--accept-risk VMStaysDown --accept-risk VMBlocksDrain --accept-risk VMRestarts";
    assert!(code == 4 && said.contains(accepting), "{code} {said}");
    let all = RISKS.join(",");
    let petra = Identity::user("petra", &[]);
    let everything = format!("{all},PoolUnknown,NotEverythingRead,SpareCapacityUnknown");
    let (code, said) =
        refused(access, &petra, &["approve", PROFILE, "--digest", &digest, "--accept-risk", &everything]).await;
    assert!(code == 5 && said.contains("forbidden") && said.contains("hint: you lack this right"), "{code} {said}");
    let (code, said) = refused(access, &admin, &["approve", "virt-higher-density"]).await;
    assert!(code == 9 && said.contains("virt-higher-density has no plan"), "{code} {said}");

    // A person who does not accept a risk approves nothing. The plan is where the questions are.
    let (_folder, plugin) = plugin();
    let mut pty = at_a_terminal_with(access, &plugin, "> /dev/null", ROWS).await;
    let screen = pty.wait_for("Accept VMBlocksDrain? [y/N]").await;
    assert!(screen.contains("psi=1") && screen.contains("guests/db-1 on worker-0"), "{screen}");
    pty.send("\r");
    pty.wait_for("VMBlocksDrain was not accepted").await;
    assert_eq!(pty.end().await.code(), Some(4));

    // Ctrl-C is an answer, too, also after a pager.
    let mut pty = at_a_terminal_with(access, &plugin, "", 30).await;
    pty.wait_for("Accept VMBlocksDrain? [y/N]").await;
    pty.interrupt();
    assert_eq!(pty.end().await.code(), Some(130));

    // The plan changes while somebody reads it.
    let mut pty = at_a_terminal(access, &plugin).await;
    accept_all(&mut pty, &RISKS).await;
    let edit = |spec: &str| {
        ["patch", "vpcfg", PROFILE, "--type=merge", "-p"]
            .map(str::to_owned)
            .into_iter()
            .chain([spec.to_owned()])
            .collect::<Vec<_>>()
    };
    let patch = async |spec: &str| {
        let args = edit(spec);
        kubectl(access, &args.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    patch(r#"{"spec":{"options":{"loadAware":{"deschedulingIntervalSeconds":77}}}}"#).await;
    eventually("another plan", async || {
        (config(access).await["status"]["planDigest"] != digest.as_str()).then_some(())
    })
    .await;
    pty.send("yes\r");
    pty.wait_for("has changed while you read it; nothing was written").await;
    assert_eq!(pty.end().await.code(), Some(3));
    patch(r#"{"spec":{"options":null}}"#).await;
    eventually("the plan is back", async || {
        let config = config(access).await;
        let is_back =
            config["status"]["planDigest"] == digest.as_str() && config["status"]["phase"] == "ReviewRequired";
        is_back.then_some(())
    })
    .await;
    assert_eq!(config(access).await["spec"]["approval"], before["spec"]["approval"], "nothing was approved so far");

    // A status that is written meanwhile does not matter.
    let mut pty = at_a_terminal(access, &plugin).await;
    accept_all(&mut pty, &RISKS).await;
    kubectl(access, &["annotate", "vpcfg", PROFILE, "read-by=somebody"]).await;
    pty.send("yes\r");
    pty.wait_for("Follow it: ").await;
    assert_eq!(pty.end().await.code(), Some(0));
    let seen = pty.text();
    assert!(seen.contains(&format!("Approved plan {digest}")), "{seen}");
    let screen: String = seen.trim_end().lines().map(|line| format!("{}\n", line.trim_end())).collect();
    check("approve", &[(&format!("kubectl virt-advisor approve {PROFILE} --reason CHG-4711"), &screen)]);
    phase(access, PROFILE, "InProgress").await;
    let granted = config(access).await["status"]["approval"].clone();
    assert_eq!(granted["planDigest"], digest.as_str());
    assert_eq!((&granted["reason"], &granted["acceptedRisks"]), (&"CHG-4711".into(), &RISKS.to_vec().into()));
    assert!(granted["approvedBy"].as_str().is_some_and(|name| !name.is_empty()), "{granted}");
    let (code, said) = refused(access, &admin, &["approve", PROFILE]).await;
    assert!(code == 2 && said.contains("It is being applied"), "{code} {said}");

    // All of it is written, so it can only be taken back, by a plan that is decided about like any other.
    let (code, said) = refused(access, &admin, &["reject", PROFILE]).await;
    assert!(code == 2 && said.contains("a rollout stops when its pools are paused"), "{code} {said}");
    let (code, said) = refused(access, &admin, &["undo", PROFILE, "--to", "nonsense"]).await;
    assert!(code == 2 && said.contains("must be original or the name of"), "{code} {said}");
    let told = printed(&run(access, &admin, &["undo", PROFILE, "--to", "original"]).await);
    check("undo", &[(&format!("kubectl virt-advisor undo {PROFILE} --to original"), &told)]);
    let restoring = eventually("the way back is planned", async || {
        let config = config(access).await;
        let is_planned = config["status"]["restore"].is_object() && config["status"]["phase"] == "ReviewRequired";
        is_planned.then_some(config)
    })
    .await;
    assert_eq!(restoring["spec"]["action"], "DryRun");
    let (code, _) = refused(access, &admin, &["undo", PROFILE, "--to", "original"]).await;
    assert_eq!(code, 2, "it is under way already");
    let told = printed(&run(access, &admin, &["reject", PROFILE, "--reason", "not before the audit"]).await);
    check("reject", &[(&format!("kubectl virt-advisor reject {PROFILE} --reason 'not before the audit'"), &told)]);
    eventually("the rejection is told", async || {
        let conditions = config(access).await["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_told = |condition: &Value| {
            condition["reason"] == "Rejected" && condition["message"].as_str().unwrap().contains("not before the audit")
        };
        conditions.iter().any(is_told).then_some(())
    })
    .await;
    despite_the_rejection(access, restoring["status"]["planDigest"].as_str().unwrap()).await;
}

/// Nobody cancels a rejection, or the time of a plan, without saying so.
async fn despite_the_rejection(access: &Access, digest: &str) {
    let admin = Identity::Admin;
    let (code, said) = refused(access, &admin, &["approve", PROFILE, "--digest", digest]).await;
    assert!(code == 4 && said.contains("this plan was rejected: not before the audit"), "{code} {said}");
    let command = said.lines().find_map(|line| line.split_once("--digest ")).unwrap().1;
    assert!(command.contains("--despite-rejection"), "{command}");
    let accepting: Vec<&str> = command.split_whitespace().skip(1).collect();
    let approve = async |more: &[&str]| {
        let args = [&["approve", PROFILE, "--digest", digest], &accepting[..], more].concat();
        let output = run(access, &admin, &args).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        eventually("the operator has looked", async || {
            let config = config(access).await;
            (config["status"]["observedGeneration"] == config["metadata"]["generation"]).then_some(())
        })
        .await;
        text(&output.stdout)
    };
    let said = approve(&["--not-before", "2099-01-12T22:00:00Z"]).await;
    assert!(said.contains("It starts at 2099-01-12T22:00:00Z"), "{said}");
    phase(access, PROFILE, "Scheduled").await;
    assert_eq!(config(access).await["spec"]["approval"]["rejected"], Value::Null);
    let said = approve(&["--reason", "once more"]).await;
    assert!(said.contains("It starts at 2099-01-12T22:00:00Z"), "{said}");
    let approval = config(access).await["spec"]["approval"].clone();
    assert_eq!((&approval["notBefore"], &approval["reason"]), (&"2099-01-12T22:00:00Z".into(), &"once more".into()));
    assert!(approve(&["--now"]).await.contains("It starts now."));
    assert_eq!(config(access).await["spec"]["approval"]["notBefore"], Value::Null);
}

#[tokio::test]
async fn a_server_that_is_away_is_told_from_a_missing_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    // Nothing listens on the port of the discard service.
    let kubeconfig = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}], "users": [{"name": "a", "user": {}}]}"#;
    std::fs::write(&path, kubeconfig).unwrap();
    let args = ["approve", PROFILE, "--kubeconfig", path.to_str().unwrap(), "--request-timeout", "5s"];
    let output = std::process::Command::new(program()).args(args).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("hint: check the kubeconfig and --context"), "{said}");
}
