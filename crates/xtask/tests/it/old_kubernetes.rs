//! What the API server has to know: rules of definitions and admission policies by CEL, server-side apply. `make test-old-kubernetes`
//! runs this on the oldest one that is supported, and with it the tests of installation and upgrade.

use std::path::Path;

use devcluster::{Cluster, Identity, tools::Program};
use serde_json::{Value, json};
use testkit::{
    eventually,
    platform::{LOAD_AWARE, Platform, descheduler},
    rollout::PSI,
    running_operator::RunningOperator,
};

use crate::commands::{kubectl, printed, text};

const NAMED: &str = "virtplatformconfig/load-aware-rebalancing";
const DIGEST: &str = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";

fn patch(at: &Path, patch: &Value, more: &[&str]) -> Result<(), String> {
    let patch = patch.to_string();
    let output = kubectl(at, &[&["patch", NAMED, "--type=merge", "-p", &patch], more].concat());
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}

fn refused(at: &Path, file: &str) -> String {
    let output = kubectl(at, &["apply", "--server-side", "-f", file]);
    assert!(!output.status.success(), "{file} was accepted");
    text(&output.stderr)
}

async fn oldest(access: &devcluster::Access) {
    let version = access.client().await.unwrap().apiserver_version().await.unwrap().git_version;
    let wanted = Program::OldestKubeApiserver.version();
    assert_eq!(version, wanted, "`make test-old-kubernetes` names the API server");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the API server has to be built, which takes minutes: make test-old-kubernetes"]
async fn definitions_with_their_rules_and_the_admission_policies_work() {
    let cluster = Cluster::builder().start().await.unwrap();
    oldest(cluster.access()).await;
    let at = cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
    let apply = |file: &str| printed(&kubectl(&at, &["apply", "--server-side", "-f", file]));
    apply("dist/install-with-namespace.yaml");
    printed(&kubectl(&at, &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]));
    printed(&kubectl(&at, &["apply", "-k", "config/samples/"]));

    // Rules: across fields, of a transition, and of the name.
    let said = refused(&at, "config/samples/rejected/ratio_without_swap.yaml");
    assert!(said.contains("memoryToRequestRatio > 120 requires enableSwap=true"), "{said}");
    for (spec, expected) in [
        (json!({"profile": "virt-higher-density"}), "Profile is immutable"),
        (json!({"waitTimeout": "soon"}), "must be a positive duration"),
        (json!({"options": {"virtHigherDensity": {}}}), "only options.loadAware may be set"),
        (json!({"restore": {"record": "another-1"}}), "must be 'original' or the name of a VirtPlatformPlanRecord"),
    ] {
        let said = patch(&at, &json!({"spec": spec}), &[]).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }

    // Policies: nobody applies what was not read, and nobody forges what was read.
    let planned = json!({"status": {"phase": "ReviewRequired", "planDigest": DIGEST}});
    patch(&at, &planned, &["--subresource=status"]).unwrap();
    apply("dist/admission-policy.yaml");
    let unread = json!({"spec": {"action": "Apply"}});
    let said = eventually("an unread plan is refused", async || patch(&at, &unread, &["--dry-run=server"]).err()).await;
    assert!(said.contains("does not approve the current plan of load-aware-rebalancing"), "{said}");
    let forged = json!({"status": {"planDigest": "0a"}});
    let forge = async || patch(&at, &forged, &["--subresource=status", "--dry-run=server"]).err();
    let said = eventually("a forged status is refused", forge).await;
    assert!(said.contains("Only the operator, user system:serviceaccount:openshift-cnv:"), "{said}");
    let approval =
        |by: &str| json!({"spec": {"action": "Apply", "approval": {"planDigest": DIGEST, "approvedBy": by}}});
    let said = patch(&at, &approval("somebody"), &[]).unwrap_err();
    assert!(said.contains("must be the user name of whoever sends the request, admin"), "{said}");
    patch(&at, &approval("admin"), &[]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the API server has to be built, which takes minutes: make test-old-kubernetes"]
async fn a_plan_is_applied_watched_and_taken_back() {
    let platform = Platform::at_rest().await;
    oldest(platform.cluster.access()).await;
    platform.install().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 180}))).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 60}))).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "restore": {"record": "original"}})).await;
    platform.until(LOAD_AWARE, "restoring", |config| config["status"]["restore"].is_object()).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let approval = json!({"planDigest": review["status"]["planDigest"]});
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "approval": approval})).await;
    // Somebody has edited the descheduler, so it stays, without what the plan had set.
    eventually("the fields are gone", async || {
        let left = platform.get(&descheduler(Value::Null)).await;
        left["spec"].as_object().is_some_and(|spec| !spec.contains_key("profiles")).then_some(())
    })
    .await;
    operator.stop().await;
}
