//! The plans of the workflow guide, for the clusters behind its sections 6, 8 and 10 and its appendix.
//! The files in this folder have the guide's YAML, word for word. [`differences`] lists all intended differences with their reasons;
//! any other difference is a failure.

use advisor::{
    Plan, PlannedItem,
    kind::HYPER_CONVERGED,
    test_cluster::{TestCluster, definition, documents, machine_config, pool, sample, set_by, stored},
};
use api::names::field_manager;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const HIGHER_DENSITY: &str = "virt-higher-density";
const PSI: &str = "99-worker-psi-karg";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Review,
    Progress,
    Drift,
    Appendix,
}

impl Section {
    const ALL: [Section; 4] = [Section::Review, Section::Progress, Section::Drift, Section::Appendix];

    fn file(self) -> &'static str {
        match self {
            Section::Review => "06-review",
            Section::Progress => "08-progress",
            Section::Drift => "10-drift",
            Section::Appendix => "appendix",
        }
    }

    /// What the guide shows.
    fn status(self) -> Value {
        documents(&format!("crates/advisor/tests/it/golden/{}.yaml", self.file())).remove(0)["status"].take()
    }
}

/// One intended difference from the guide.
struct Difference {
    section: Section,
    item: &'static str,
    /// The place in the item, as a JSON pointer.
    at: &'static str,
    edit: Edit,
    because: &'static str,
}

enum Edit {
    /// The guide has nothing there.
    Add(Value),
    /// The guide has another value there.
    Replace { theirs: Value, ours: Value },
    /// A part of a text, which occurs once, is different.
    Reword { theirs: &'static str, ours: String },
    /// The guide has it, but it is not part of the plan.
    Ignore,
}

const SWAP: &str = "enable-kubelet-swap";
const DENSITY: &str = "configure-higher-density";
const PRESSURE: &str = "enable-psi-metrics";
const DESCHEDULER: &str = "enable-load-aware-descheduling";

fn differences() -> Vec<Difference> {
    use Edit::{Add, Ignore, Replace, Reword};
    use Section::{Appendix, Drift, Progress, Review};
    let difference = |section, item, at, edit, because| Difference { section, item, at, edit, because };
    let reword = |theirs, ours: &str| Reword { theirs, ours: ours.to_owned() };
    let detail = || Add(json!({"reboot": true, "pools": [{"name": "worker", "nodes": 3, "paused": false}]}));

    let count = "the guide counts a line too many";
    let told = "beyond the guide: how many nodes of which pools reboot";
    let managed = "the descheduler's own operator cannot update an object without it";
    let taken = "beyond the guide: whose fields change hands";
    let refused = "the descheduler's operator refuses a second threshold, so there must be none";
    let removes = || Add(json!(["spec.profileCustomizations.devLowNodeUtilizationThresholds"]));
    let later = "tells how far the plan got, not what it is";
    let units = "the units are ours to write: a node without the partition must start its kubelet";
    let own = "beyond the guide: every profile applies under a name of its own";
    let manager = |profile| Add(json!(field_manager(profile)));
    vec![
        difference(Review, PRESSURE, "/fieldManager", manager(LOAD_AWARE), own),
        difference(Review, DESCHEDULER, "/fieldManager", manager(LOAD_AWARE), own),
        difference(Progress, PRESSURE, "/fieldManager", manager(LOAD_AWARE), own),
        difference(Progress, DESCHEDULER, "/fieldManager", manager(LOAD_AWARE), own),
        difference(Drift, PRESSURE, "/fieldManager", manager(LOAD_AWARE), own),
        difference(Drift, DESCHEDULER, "/fieldManager", manager(LOAD_AWARE), own),
        difference(Appendix, SWAP, "/fieldManager", manager(HIGHER_DENSITY), own),
        difference(Appendix, DENSITY, "/fieldManager", manager(HIGHER_DENSITY), own),
        difference(Review, PRESSURE, "/diff", reword("@@ -0,0 +1,10 @@", "@@ -0,0 +1,9 @@"), count),
        difference(Review, PRESSURE, "/impactDetail", detail(), told),
        difference(Review, DESCHEDULER, "/desiredState/spec/managementState", Add(json!("Managed")), managed),
        // The guide says 20 lines but shows 19; the plan has 20.
        difference(
            Review,
            DESCHEDULER,
            "/diff",
            reword("+  logLevel: Normal\n", "+  logLevel: Normal\n+  managementState: Managed\n"),
            managed,
        ),
        difference(Review, DESCHEDULER, "/removes", removes(), refused),
        difference(Progress, DESCHEDULER, "/removes", removes(), refused),
        difference(Drift, DESCHEDULER, "/removes", removes(), refused),
        difference(Progress, PRESSURE, "/impactDetail", detail(), told),
        difference(
            Progress,
            DESCHEDULER,
            "/takesOver",
            Add(json!([{"manager": "kubectl", "fields": ["spec.deschedulingIntervalSeconds", "spec.profiles"]}])),
            taken,
        ),
        difference(Progress, PRESSURE, "/state", Ignore, later),
        difference(Progress, PRESSURE, "/message", Ignore, later),
        difference(Progress, PRESSURE, "/lastTransitionTime", Ignore, later),
        difference(Progress, DESCHEDULER, "/state", Ignore, later),
        difference(Progress, DESCHEDULER, "/message", Ignore, later),
        difference(Progress, DESCHEDULER, "/lastTransitionTime", Ignore, later),
        difference(
            Drift,
            DESCHEDULER,
            "/takesOver",
            Add(json!([{
                "manager": "kubectl-edit",
                "fields": ["spec.deschedulingIntervalSeconds", "spec.profileCustomizations.devEnableSoftTainter"],
            }])),
            taken,
        ),
        difference(Appendix, SWAP, "/impactDetail", detail(), told),
        difference(
            Appendix,
            SWAP,
            "/desiredState/spec/config/systemd/units",
            Replace {
                theirs: json!([{
                    "contents": "[Unit]\nDescription=Provision and enable swap\n...\n",
                    "enabled": true,
                    "name": "swap-provision.service",
                }]),
                ours: json!([
                    {
                        "contents": include_str!("../../../src/profiles/higher_density/payload/swap-provision.service"),
                        "enabled": true,
                        "name": "swap-provision.service",
                    },
                    {
                        "contents": include_str!("../../../src/profiles/higher_density/payload/cgroup-system-slice-config.service"),
                        "enabled": true,
                        "name": "cgroup-system-slice-config.service",
                    },
                ]),
            },
            units,
        ),
        difference(
            Appendix,
            SWAP,
            "/desiredState/spec/config/storage/files/0/contents/source",
            Replace { theirs: appendix_script(), ours: script().into() },
            "the guide's script fails where it is run twice or finds no partition, and with it a rollout that restarts the unit",
        ),
        difference(Appendix, SWAP, "/diff", reword("@@ -0,0 +1,53 @@", hunk_of_swap()), units),
        difference(Appendix, SWAP, "/diff", reword("\n...\n", rest_of_swap()), "the guide leaves out the rest"),
        difference(
            Appendix,
            DENSITY,
            "/diff",
            reword("     allowAutoConverge: false\n", "     allowAutoConverge: false\n     allowPostCopy: false\n"),
            "the guide leaves out the last line of its hunk, which it counts",
        ),
    ]
}

/// The script in the plan.
fn script() -> String {
    let text = include_bytes!("../../../src/profiles/higher_density/payload/find-swap-partition");
    format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text))
}

/// The script of the guide.
fn appendix_script() -> Value {
    let items = Section::Appendix.status()["items"].take();
    items[0]["desiredState"]["spec"]["config"]["storage"]["files"][0]["contents"]["source"].clone()
}

/// The header of the only hunk in the stored diff of the swap item.
fn hunk_of_swap() -> &'static str {
    include_str!("swap.diff").lines().nth(2).unwrap()
}

/// The part of the stored diff of the swap item that the guide does not show.
fn rest_of_swap() -> &'static str {
    let diff = include_str!("swap.diff");
    &diff[diff.find("+kind: MachineConfig\n").unwrap() + "+kind: MachineConfig".len()..]
}

/// The guide's items with the intended differences applied.
fn expected(section: Section) -> Vec<Value> {
    let mut items = section.status()["items"].as_array().unwrap().clone();
    for Difference { item, at, edit, because, .. } in differences().into_iter().filter(|it| it.section == section) {
        let case = format!("{section:?} {item} {at}: {because}");
        let item = items.iter_mut().find(|found| found["name"] == item).unwrap_or_else(|| panic!("{case}"));
        let (parent, name) = at.rsplit_once('/').unwrap();
        match edit {
            Edit::Add(value) => {
                let parent = item.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
                assert_eq!(parent.insert(name.to_owned(), value), None, "{case}");
            }
            Edit::Replace { theirs, ours } => {
                let value = item.pointer_mut(at).unwrap_or_else(|| panic!("{case}"));
                assert_eq!(*value, theirs, "{case}");
                *value = ours;
            }
            Edit::Reword { theirs, ours } => {
                let value = item.pointer_mut(at).unwrap_or_else(|| panic!("{case}"));
                let text = value.as_str().unwrap();
                assert_eq!(text.matches(theirs).count(), 1, "{case}");
                *value = text.replace(theirs, &ours).into();
            }
            Edit::Ignore => {
                let parent = item.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
                assert!(parent.remove(name).is_some(), "{case}");
            }
        }
    }
    items
}

/// The items without what the guide cannot know: the values before the plan.
fn items(plan: &Plan) -> Vec<Value> {
    let item = |planned: &PlannedItem| {
        let mut item = serde_json::to_value(&planned.item).unwrap();
        let source = item.as_object_mut().unwrap().remove("sourceFingerprint");
        assert_eq!(source, Some(planned.fingerprint.as_str().into()));
        item
    };
    plan.items.iter().map(item).collect()
}

/// Compares item by item and field by field, for short failure messages.
fn assert_same(found: &[Value], expected: &[Value]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let name = &expected["name"];
        for (field, value) in expected.as_object().unwrap() {
            match (found[field].as_str(), value.as_str()) {
                (Some(found), Some(text)) => assert!(found == text, "{name} {field}:\n{found}\ninstead of:\n{text}"),
                _ => assert_eq!(&found[field], value, "{name} {field}"),
            }
        }
        let names = |item: &Value| item.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(found), names(expected), "{name}");
    }
}

/// An object as it is after an administrator created it.
fn created(definition: &Value, object: Value) -> Value {
    stored(definition, set_by("kubectl", "Update", object))
}

/// The guide's cluster: three workers, OpenShift Virtualization with its defaults, the descheduler operator.
fn cluster() -> TestCluster {
    let definition = definition("hyperconverged-v1beta1");
    TestCluster::with_descheduler("5.1").with(created(&definition, sample("hyperconverged"))).with(definition)
}

#[test]
fn section_6_the_first_review() {
    let plan = cluster().plan(LOAD_AWARE, Value::Null);
    assert_same(&items(&plan), &expected(Section::Review));
    assert_eq!(plan.severity.as_str(), Section::Review.status()["impactSeverity"]);
}

#[test]
fn section_8_a_descheduler_that_was_there_before() {
    let descheduler = created(&definition("kubedescheduler-5.1"), sample("kubedescheduler"));
    let mut cluster = cluster().with(descheduler);
    let plan = cluster.plan(LOAD_AWARE, Value::Null);
    assert_eq!(plan.severity.as_str(), Section::Progress.status()["impactSeverity"]);
    cluster.apply(LOAD_AWARE, Value::Null);
    let again = cluster.plan(LOAD_AWARE, Value::Null);

    // The guide shows the plan while it takes effect: with the impact of the plan and the current diffs.
    let mut found = items(&plan);
    for (item, now) in found.iter_mut().zip(&again.items) {
        item["diff"] = now.item.diff.clone().into();
        for field in ["state", "message"] {
            assert!(item.as_object_mut().unwrap().remove(field).is_some());
        }
    }
    assert_same(&found, &expected(Section::Progress));
}

#[test]
fn section_10_hyper_converged_changed_and_the_descheduler_was_edited() {
    // As the operator applied it, except for two fields that somebody edited.
    let definition = definition("kubedescheduler-5.1");
    let mut descheduler = stored(&definition, sample("kubedescheduler-edited"));
    let manager = field_manager(LOAD_AWARE);
    descheduler["metadata"]["managedFields"] = json!([
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {
            "f:evictionLimits": {"f:node": {}, "f:total": {}},
            "f:mode": {},
            "f:profileCustomizations": {"f:devDeviationThresholds": {}, "f:devEnableEvictionsInBackground": {}},
            "f:profiles": {},
        }}},
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:managementState": {}}}},
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {
            "f:deschedulingIntervalSeconds": {},
            "f:profileCustomizations": {"f:devEnableSoftTainter": {}},
        }}},
    ]);
    let mut cluster = cluster()
        .with(descheduler)
        .with(set_by(&manager, "Apply", machine_config(PSI, json!({"kernelArguments": ["psi=1"]}))))
        .with(machine_config("rendered-worker", json!({"kernelArguments": ["psi=0", "psi=1"]})));
    let mut worker = pool("worker", &["worker"], 3);
    worker["status"]["configuration"]["source"] = json!([{"kind": "MachineConfig", "name": PSI}]);
    cluster.put(worker);
    let hyper_converged = cluster.find(&HYPER_CONVERGED, Some("openshift-cnv"), "kubevirt-hyperconverged");
    let mut hyper_converged = hyper_converged.unwrap().clone();
    hyper_converged["spec"]["liveMigrationConfig"]["parallelMigrationsPerCluster"] = 10.into();
    hyper_converged["spec"]["liveMigrationConfig"]["parallelOutboundMigrationsPerNode"] = 4.into();
    cluster.put(hyper_converged);

    let plan = cluster.plan(LOAD_AWARE, Value::Null);
    assert_same(&items(&plan), &expected(Section::Drift));
    assert_eq!(plan.severity.as_str(), Section::Drift.status()["impactSeverity"]);
    let inputs: Vec<_> = plan.inputs.iter().map(|input| (input.path.as_str(), input.value.as_deref())).collect();
    let expected = [
        ("spec.liveMigrationConfig.parallelMigrationsPerCluster", Some("10")),
        ("spec.liveMigrationConfig.parallelOutboundMigrationsPerNode", Some("4")),
    ];
    assert_eq!(inputs, expected);
}

#[test]
fn appendix_higher_density() {
    let plan = cluster().plan(HIGHER_DENSITY, Value::Null);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        // Updates the files. Read the difference before you commit it.
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
        std::fs::write(folder.join("swap.diff"), plan.items[0].item.diff.as_ref().unwrap()).unwrap();
        std::fs::write(folder.join("swap-readable.diff"), &plan.items[0].readable_diff).unwrap();
        return;
    }
    assert_same(&items(&plan), &expected(Section::Appendix));
    assert_eq!(plan.severity.as_str(), Section::Appendix.status()["impactSeverity"]);
    let people = &plan.items[0].readable_diff;
    let golden = include_str!("swap-readable.diff");
    assert!(people == golden, "what people read of the swap item:\n{people}\ninstead of:\n{golden}");
}

#[test]
fn every_difference_is_of_a_section_that_is_compared() {
    for difference in differences() {
        assert!(Section::ALL.contains(&difference.section) && !difference.because.is_empty());
    }
}
