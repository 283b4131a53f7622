//! How we differ from the workflow guide on purpose: where, how, and why. The files beside this one hold the YAML that the
//! guide prints, word for word.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::compare::{Difference, Shape, What, complaints};

/// The parts of the guide that print an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Ignored,
    Prerequisites,
    Review,
    Progress,
    Completed,
    Drift,
    Resolved,
    Appendix,
}

use Section::{Appendix, Completed, Drift, Ignored, Prerequisites, Progress, Resolved, Review};

impl Section {
    const ALL: [Section; 8] = [Ignored, Prerequisites, Review, Progress, Completed, Drift, Resolved, Appendix];
    /// Those that show a plan.
    const PLANS: [Section; 6] = [Review, Progress, Completed, Drift, Resolved, Appendix];

    /// What the guide prints.
    fn text(self) -> &'static str {
        match self {
            Ignored => include_str!("02-ignored.yaml"),
            Prerequisites => include_str!("04-prerequisites.yaml"),
            Review => include_str!("06-review.yaml"),
            Progress => include_str!("08-progress.yaml"),
            Completed => include_str!("09-completed.yaml"),
            Drift => include_str!("10-drift.yaml"),
            Resolved => include_str!("11-resolved.yaml"),
            Appendix => include_str!("appendix.yaml"),
        }
    }

    fn object(self) -> Value {
        serde_saphyr::from_str(self.text()).unwrap()
    }
}

/// Fails unless the object is as the guide prints it, but for what is listed here.
pub(crate) fn assert_as_in_the_guide(section: Section, ours: &Value) {
    let said = complaints(&section.object(), ours, &differences(section));
    let shown = serde_saphyr::to_string(ours).unwrap();
    assert!(said.is_empty(), "section {section:?} of the guide:\n\n{}\nThe object:\n{shown}", said.join("\n"));
}

/// The differences that concern a section.
fn differences(section: Section) -> Vec<Difference> {
    let concerned = table().into_iter().filter(|(sections, ..)| sections.contains(&section));
    concerned.map(|(_, path, what, because)| Difference { path: path.to_owned(), what, because }).collect()
}

type Row = (&'static [Section], &'static str, What, &'static str);

fn table() -> Vec<Row> {
    let mut rows = everywhere();
    rows.extend(conditions());
    rows.extend(health());
    rows.extend(generations());
    rows.extend(load_aware_items());
    rows.extend(appendix());
    rows
}

fn differs(theirs: impl Into<Value>, ours: impl Into<Value>) -> What {
    What::Differs { theirs: theirs.into(), ours: ours.into() }
}

fn reads(theirs: &'static str, ours: &str) -> What {
    What::Reads { theirs, ours: ours.to_owned() }
}

fn adds(value: Value) -> What {
    What::Adds(Shape::Exactly(value))
}

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// What the status tells beyond the guide.
fn everywhere() -> Vec<Row> {
    let inputs = |total: &str, node: &str| {
        let input = |name: &str, value: &str| {
            let path = format!("spec.liveMigrationConfig.{name}");
            json!({"source": "HyperConverged/kubevirt-hyperconverged", "path": path, "value": value})
        };
        adds(json!([input("parallelMigrationsPerCluster", total), input("parallelOutboundMigrationsPerNode", node)]))
    };
    let (names, follows) =
        ("a plan has a name, so that an approval can mean it", "it tells what a plan was derived from");
    vec![
        (
            &Section::ALL,
            "status.conditions[*].observedGeneration",
            What::Adds(Shape::Generation),
            "it tells which generation a condition is about",
        ),
        (&Section::PLANS, "status.planDigest", What::Adds(Shape::Digest), names),
        (
            &[Progress, Completed, Drift, Resolved],
            "status.approval",
            What::Adds(Shape::Approval),
            "it tells which plan was approved, and when",
        ),
        (
            &[Progress, Completed, Drift, Resolved],
            "status.record",
            What::Adds(Shape::Record),
            "it names the record of the applied plan",
        ),
        (&[Review, Progress, Completed], "status.inputs", inputs("5", "2"), follows),
        (&[Drift, Resolved], "status.inputs", inputs("10", "4"), follows),
        (&Section::PLANS, "status.operatorVersion", differs("v0.1.31", VERSION), "we have versions of our own"),
    ]
}

const REVIEW: &str = "Plan ready for review. Change action to 'Apply' to execute.";
const IN_SYNC: &str = "Configuration successfully applied and in sync";
const APPLYING: &str = "Applying plan configuration";

/// What a plan says that waits for a review although its action is Apply.
const FORCED: &str = "Plan ready for review. It was made again while action was 'Apply' and needs a new approval: change \
                      action to 'DryRun' and back to 'Apply' to execute.";

fn conditions() -> Vec<Row> {
    let left = "a phase that was left is not told as if it went on";
    let stale = "it says what its siblings say, and not what an earlier phase said";
    let useless = "the action is Apply already: changing it to Apply is no advice";
    let (status, reason, message) = (
        "status.conditions[Pending].status",
        "status.conditions[Pending].reason",
        "status.conditions[Pending].message",
    );
    vec![
        (&[Review], status, differs("True", "False"), left),
        (&[Review], reason, differs("Pending", "ReviewRequired"), left),
        (&[Review], message, differs("Prerequisites now available", REVIEW), left),
        (&[Progress], reason, differs("NotCompleted", "InProgress"), stale),
        (&[Progress], message, differs(IN_SYNC, APPLYING), stale),
        (&[Drift], reason, differs("NotCompleted", "ReviewRequired"), stale),
        (&[Drift], message, differs(IN_SYNC, FORCED), stale),
        (&[Drift], "status.conditions[ReviewRequired].message", differs(REVIEW, FORCED), useless),
        (&[Drift], "status.conditions[PrerequisiteFailed].message", differs(REVIEW, FORCED), useless),
        (&[Drift], "status.conditions[Failed].message", differs(REVIEW, FORCED), useless),
    ]
}

/// The conditions that tools read, behind those of the guide.
fn health() -> Vec<Row> {
    let read = "Flux, Helm and Argo CD tell from it what became of an object of any kind";
    let is = |status, reason| What::Adds(Shape::Condition(status, reason));
    let (ready, reconciling, stalled) =
        ("status.conditions[Ready]", "status.conditions[Reconciling]", "status.conditions[Stalled]");
    vec![
        (&[Ignored], ready, is("True", "Ignored"), read),
        (&[Prerequisites], ready, is("False", "PrerequisiteFailed"), read),
        (&[Prerequisites], stalled, is("True", "PrerequisiteFailed"), read),
        (&[Review], ready, is("True", "PlanReady"), read),
        (&[Progress], ready, is("False", "Applying"), read),
        (&[Progress], reconciling, is("True", "Applying"), read),
        (&[Completed, Resolved], ready, is("True", "Completed"), read),
        (&[Drift], ready, is("False", "ReviewRequired"), read),
        (&[Drift], stalled, is("True", "ReviewRequired"), read),
    ]
}

fn generations() -> Vec<Row> {
    let observed = "the observed generation is one that the object has had; the guide's are ahead of it";
    let edits = "two edits make two generations; the guide was written after more of them";
    vec![
        (&[Review], "status.observedGeneration", differs(6, 2), observed),
        (&[Drift], "status.observedGeneration", differs(6, 3), observed),
        (&[Resolved], "metadata.generation", differs(7, 5), edits),
        (&[Resolved], "status.observedGeneration", differs(7, 5), edits),
        (&[Appendix], "metadata.generation", differs(4, 2), edits),
        (&[Appendix], "status.observedGeneration", differs(4, 2), edits),
    ]
}

fn load_aware_items() -> Vec<Row> {
    let lock = "it locks the item against changes made meanwhile";
    let baseline = "drift is a difference from what was applied";
    let count = "the guide counts a line too many";
    let told = "it tells how many nodes of which pools reboot";
    let managed = "the descheduler's own operator cannot update an object without it";
    let taken = "it tells whose fields change hands";
    let clock = "spec.waitTimeout counts from here";
    let reboot = || json!({"reboot": true, "pools": [{"name": "worker", "nodes": 3, "paused": false}]});
    let takes = |manager: &str, fields: &[&str]| adds(json!([{"manager": manager, "fields": fields}]));
    let before = || takes("kubectl", &["spec.deschedulingIntervalSeconds", "spec.profiles"]);
    let own = "every profile applies under a name of its own, so that two of them can configure one object";
    let manager = || adds(json!("virt-advisor-operator/load-aware-rebalancing"));
    let risk = |fields: &str| {
        let message =
            "Others manage these fields now. If they keep applying their own values, both overwrite each other";
        let message = format!("{message}: KubeDescheduler cluster: {fields}");
        adds(json!([{"name": "TakesOverFields", "message": message}]))
    };
    let edited = || {
        takes("kubectl-patch", &["spec.deschedulingIntervalSeconds", "spec.profileCustomizations.devEnableSoftTainter"])
    };
    vec![
        (&[Review, Progress, Completed, Drift, Resolved], "status.items[*].fieldManager", manager(), own),
        (&Section::PLANS, "status.items[*].sourceFingerprint", What::Adds(Shape::Digest), lock),
        (&[Progress, Completed, Resolved], "status.items[*].appliedFingerprint", What::Adds(Shape::Digest), baseline),
        (&[Review], "status.items[enable-psi-metrics].diff", reads("@@ -0,0 +1,10 @@", "@@ -0,0 +1,9 @@"), count),
        (&[Review, Progress, Completed], "status.items[enable-psi-metrics].impactDetail", adds(reboot()), told),
        (
            &[Progress],
            "status.items[enable-psi-metrics].rollout",
            What::Adds(Shape::Rollout(json!([{"pool": "worker", "state": "Updating", "updated": 1, "total": 3}]))),
            "it tells for each pool how far its nodes are, as data",
        ),
        (
            &[Progress, Completed, Resolved],
            "status.items[enable-psi-metrics].waitingSince",
            What::Adds(Shape::Time),
            clock,
        ),
        (
            &[Review],
            "status.items[enable-load-aware-descheduling].desiredState.spec.managementState",
            adds(json!("Managed")),
            managed,
        ),
        // Their 20 lines are 19 and one that is not there; ours are 20.
        (
            &[Review],
            "status.items[enable-load-aware-descheduling].diff",
            reads("+  logLevel: Normal\n", "+  logLevel: Normal\n+  managementState: Managed\n"),
            managed,
        ),
        (
            &[Review, Progress, Completed, Drift, Resolved],
            "status.notes",
            adds(json!([
                "No operator reports on KubeDescheduler openshift-kube-descheduler-operator/cluster: there is no Deployment \
                 openshift-kube-descheduler-operator/descheduler-operator. What is written counts as done, and nobody confirms that \
                 it is in effect"
            ])),
            "on this cluster there is no operator that would confirm it",
        ),
        (
            &[Review, Progress, Completed, Drift, Resolved],
            "status.items[enable-load-aware-descheduling].removes",
            adds(json!(["spec.profileCustomizations.devLowNodeUtilizationThresholds"])),
            "the descheduler's operator refuses a second threshold, so there must be none",
        ),
        (&[Progress, Completed], "status.items[enable-load-aware-descheduling].takesOver", before(), taken),
        (
            &[Progress, Completed],
            "status.risks",
            risk("spec.deschedulingIntervalSeconds, spec.profiles from kubectl"),
            taken,
        ),
        (&[Drift, Resolved], "status.items[enable-load-aware-descheduling].takesOver", edited(), taken),
        (
            &[Drift, Resolved],
            "status.risks",
            risk(
                "spec.deschedulingIntervalSeconds, spec.profileCustomizations.devEnableSoftTainter from kubectl-patch",
            ),
            taken,
        ),
    ]
}

/// The appendix is an extract: it leaves out much of what is there.
fn appendix() -> Vec<Row> {
    let brief = "the appendix leaves it out";
    let units = "the units are ours to write: a node without the partition must start its kubelet";
    let follows = "it tells what a plan was derived from";
    let input = |path: &str| json!({"source": "HyperConverged/kubevirt-hyperconverged", "path": path});
    let mut percentage = input("spec.higherWorkloadDensity.memoryOvercommitPercentage");
    percentage["value"] = "100".into();
    let reboot = adds(json!({"reboot": true, "pools": [{"name": "worker", "nodes": 3, "paused": false}]}));
    let restriction = json!({
        "contents": include_str!("../../../../advisor/src/profiles/higher_density/payload/cgroup-system-slice-config.service"),
        "enabled": true,
        "name": "cgroup-system-slice-config.service",
    });
    let provision = include_str!("../../../../advisor/src/profiles/higher_density/payload/swap-provision.service");
    let unit = differs("[Unit]\nDescription=Provision and enable swap\n...\n", provision);
    let theirs = &Appendix.object()["status"]["items"][0]["desiredState"]["spec"]["config"]["storage"]["files"][0];
    let script = include_bytes!("../../../../advisor/src/profiles/higher_density/payload/find-swap-partition");
    let script = format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(script));
    // The whole diff; up to the line that the appendix breaks off after, it has to be the same.
    let diff = include_str!("../../../../advisor/tests/it/golden/swap.diff");
    let (shown, rest) = diff.split_once("+kind: MachineConfig").unwrap();
    let hunk = shown.lines().nth(2).unwrap();
    vec![
        (&[Appendix], "spec.bypassOptimisticLock", adds(json!(false)), brief),
        (&[Appendix], "spec.failurePolicy", adds(json!("Abort")), brief),
        (&[Appendix], "status.conditions[*]", What::Adds(Shape::Whatever), brief),
        (
            &[Appendix],
            "status.items[*].fieldManager",
            adds(json!("virt-advisor-operator/virt-higher-density")),
            "every profile applies under a name of its own, so that two of them can configure one object",
        ),
        (&[Appendix], "status.inputs", adds(json!([percentage, input("spec.ksmConfiguration")])), follows),
        (
            &[Appendix],
            "status.items[enable-kubelet-swap].impactDetail",
            reboot,
            "it tells how many nodes of which pools reboot",
        ),
        (
            &[Appendix],
            "status.items[enable-kubelet-swap].desiredState.spec.config.systemd.units[swap-provision.service].contents",
            unit,
            units,
        ),
        (
            &[Appendix],
            "status.items[enable-kubelet-swap].desiredState.spec.config.systemd.units[cgroup-system-slice-config.service]",
            adds(restriction),
            brief,
        ),
        (
            &[Appendix],
            "status.items[enable-kubelet-swap].desiredState.spec.config.storage.files[/etc/find-swap-partition].contents.source",
            differs(theirs["contents"]["source"].clone(), script),
            "the guide's script fails where it is run twice or finds no partition, and with it a rollout that restarts the unit",
        ),
        (&[Appendix], "status.items[enable-kubelet-swap].diff", reads("@@ -0,0 +1,53 @@", hunk), units),
        (&[Appendix], "status.items[enable-kubelet-swap].diff", reads("\n...\n", rest), brief),
        (
            &[Appendix],
            "status.items[configure-higher-density].diff",
            reads("     allowAutoConverge: false\n", "     allowAutoConverge: false\n     allowPostCopy: false\n"),
            "the appendix leaves out the last line of its hunk, which it counts",
        ),
    ]
}

#[test]
fn every_difference_has_a_place_and_a_reason() {
    for (sections, path, _, because) in table() {
        assert!(!sections.is_empty() && !because.is_empty(), "{path}");
    }
}
