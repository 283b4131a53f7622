//! `virt-advisor forecast` on a real API server: made, saved, approved with, and kept in the record.

use std::path::Path;

use devcluster::{Access, Identity};
use serde_json::Value;
use testkit::eventually;

use crate::{
    cli_page::{check, printed, run},
    guide::{document::Document, terminal::root},
    impact::{PROFILE, start},
    published,
    support::{kubectl, phase, text},
};

const RISKS: &str = "VMBlocksDrain,VMStaysDown,VMRestarts";

async fn object(access: &Access, kind: &str, name: &str) -> Value {
    serde_json::from_str(&kubectl(access, &["get", kind, name, "-o", "json"]).await).unwrap()
}

/// The exit code, and what was said.
async fn refused(access: &Access, args: &[&str]) -> (i32, String) {
    let output = run(access, &Identity::Admin, args).await;
    (output.status.code().unwrap(), text(&output.stderr))
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_forecast_of_the_plan_is_approved_with_it_and_kept_in_the_record() {
    let site = start().await;
    let (access, admin) = (site.cluster.access(), Identity::Admin);
    let folder = tempfile::tempdir().unwrap();
    let (scenario, file) = (root().join("crates/sim/scenarios/hotspot.yaml"), folder.path().join("forecast.json"));
    let settings = ["--scenario", shown(&scenario), "--seeds", "8", "--horizon", "1h"];
    let args = [&["forecast", PROFILE], &settings[..]].concat();
    let digest = object(access, "vpcfg", PROFILE).await["status"]["planDigest"].as_str().unwrap().to_owned();

    let saved = printed(&run(access, &admin, &[&args[..], &["--save", shown(&file)]].concat()).await);
    assert!(saved.contains(&digest) && saved.contains("spread of CPU use at rest"), "{saved}");
    let page = saved.replace(&format!("{}/", folder.path().display()), "");
    let command = format!(
        "kubectl virt-advisor forecast {PROFILE} --scenario hotspot.yaml --seeds 8 --horizon 1h --save forecast.json"
    );
    check("forecast", &[(&command, &page)]);
    Document::of(format!("$ {command}\n{page}")).check("docs/forecast.md");
    let document = published::document(&run(access, &admin, &[&args[..], &["-o", "json"]].concat()).await);
    assert_eq!((&document["kind"], &document["planDigest"]), (&"Forecast".into(), &digest.as_str().into()));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["forecast"], document["forecast"], "the same seeds give the same forecast");

    // What does not fit is refused, and nothing is written.
    let (code, said) = refused(access, &["forecast", PROFILE, "--check"]).await;
    assert!(code == 9 && said.contains("no plan of load-aware-rebalancing was applied"), "{code} {said}");
    let (code, said) = refused(access, &["forecast", "virt-higher-density", "--scenario", shown(&scenario)]).await;
    assert!(code == 9 && said.contains("virt-higher-density has no plan"), "{code} {said}");
    let (code, said) = refused(access, &["forecast", PROFILE, "--scenario", "no-such-file"]).await;
    assert!(code == 2 && said.contains("reading the scenario no-such-file"), "{code} {said}");
    let other = folder.path().join("other.json");
    std::fs::write(&other, written.to_string().replace(&digest, &"ab".repeat(32))).unwrap();
    let approve = ["approve", PROFILE, "--digest", &digest, "--accept-risk", RISKS, "--forecast"];
    let (code, said) = refused(access, &[&approve[..], &[shown(&other)]].concat()).await;
    assert!(code == 3 && said.contains("is about plan abab"), "{code} {said}");
    assert_eq!(object(access, "vpcfg", PROFILE).await["spec"]["action"], "DryRun");

    // Approved, the summary is in the spec, and the record has a copy.
    printed(&run(access, &admin, &[&approve[..], &[shown(&file)]].concat()).await);
    let summary = object(access, "vpcfg", PROFILE).await["spec"]["approval"]["forecast"].clone();
    assert_eq!(summary, written["summary"]);
    assert_eq!((&summary["planDigest"], &summary["seeds"]), (&digest.as_str().into(), &8.into()));
    phase(access, PROFILE, "InProgress").await;
    let record = eventually("the record", async || {
        let list: Value = serde_json::from_str(&kubectl(access, &["get", "vpcrec", "-o", "json"]).await).ok()?;
        list["items"].as_array()?.first().cloned()
    })
    .await;
    assert_eq!(record["spec"]["approval"]["forecast"], summary);
    let (code, said) = refused(access, &["forecast", PROFILE, "--check"]).await;
    assert!(code == 8 && said.contains("is not in effect, it is Running"), "{code} {said}");
}
