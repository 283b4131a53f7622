//! What users see: `kubectl get`, `kubectl explain` and `kubectl get -o yaml` of all kinds, to the letter.

use std::{panic::catch_unwind, time::Duration};

use devcluster::poll;

use crate::kubectl::Kubectl;

const TIMEOUT: Duration = Duration::from_secs(120);
/// Other tests make more.
const RECORDS: [&str; 2] = ["load-aware-rebalancing-7", "virt-higher-density-1"];
const POLL: Duration = Duration::from_millis(100);

async fn kubectl(args: &[&str]) -> Result<String, String> {
    let output = Kubectl::for_example_cluster().await.run(args).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Outputs beside their committed snapshots. All are compared before the test fails.
#[derive(Default)]
struct Golden {
    different: Vec<String>,
}

impl Golden {
    /// Spaces at the ends of lines do not count; editors remove them.
    fn compare(&mut self, name: &str, text: &str) {
        let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        let compare = || {
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(name, text);
            });
        };
        if catch_unwind(compare).is_err() {
            self.different.push(name.to_owned());
        }
    }

    fn finish(self) {
        assert!(self.different.is_empty(), "not as they were: {:?}", self.different);
    }
}

/// The table with every age replaced, along with the padding that depends on it.
fn without_ages(table: &str) -> String {
    let header = table.lines().next().unwrap();
    let start = header.find("AGE").unwrap_or_else(|| panic!("no ages in\n{table}"));
    let next = header[start + 3..].find(|c: char| c != ' ').map(|offset| start + 3 + offset);
    let line = |line: &str| {
        let age = if line == header { "AGE" } else { "<age>" };
        match next {
            Some(next) => format!("{}{age:<8}{}\n", &line[..start], &line[next..]),
            None => format!("{}{age}\n", &line[..start]),
        }
    };
    table.lines().map(line).collect()
}

/// The object with whatever is new in every run replaced.
fn without_identity(yaml: &str) -> String {
    let line = |line: &str| {
        let volatile = ["  creationTimestamp: ", "  resourceVersion: ", "  uid: "];
        match volatile.into_iter().find(|key| line.starts_with(key)) {
            Some(key) => format!("{key}<{}>\n", key.trim().trim_end_matches(':')),
            None => format!("{line}\n"),
        }
    };
    yaml.lines().map(line).collect()
}

#[tokio::test]
async fn get_shows_a_table() {
    let cases = [
        ("get_virtplatformconfigs", vec!["get", "virtplatformconfigs"]),
        ("get_virtplatformconfigs_wide", vec!["get", "virtplatformconfigs", "-o", "wide"]),
        ("get_virtualmachines", vec!["get", "virtualmachines"]),
        ("get_virtualmachines_wide", vec!["get", "virtualmachines", "-o", "wide"]),
    ];
    let mut golden = Golden::default();
    for (name, args) in cases {
        golden.compare(name, &without_ages(&kubectl(&args).await.unwrap()));
    }
    // Times of a record are shown as they are: the day counts, not the age.
    let records = "virtplatformplanrecords";
    for (name, args) in [("", vec!["get", records]), ("_wide", vec!["get", records, "-o", "wide"])] {
        let names = RECORDS.iter().map(|name| (*name).to_owned());
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).chain(names).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        golden.compare(&format!("get_{records}{name}"), &kubectl(&args).await.unwrap());
    }
    golden.finish();
}

/// W34 (no events or columns): `kubectl get vpcfg`.
#[tokio::test]
async fn short_names_and_categories_show_the_same() {
    let names = async |what: &str| kubectl(&["get", what, "-o", "name"]).await.unwrap();
    let configs = names("virtplatformconfigs").await;
    assert_eq!(configs.lines().count(), 3, "{configs}");
    for name in ["vpcfg", "virtplatformconfig", "VirtPlatformConfig"] {
        assert_eq!(names(name).await, configs, "{name}");
    }
    for name in ["vpcrec", "virtplatformplanrecord", "advisor"] {
        let shown = names(name).await;
        assert!(RECORDS.iter().all(|record| shown.contains(&format!("/{record}\n"))), "{name}: {shown}");
    }
    assert!(names("advisor").await.starts_with(&configs), "configurations and their records");
    let machines = names("virtualmachines").await;
    assert_eq!(machines.lines().count(), 2, "{machines}");
    for name in ["vm", "vms", "virtualmachine"] {
        assert_eq!(names(name).await, machines, "{name}");
    }
    let all = names("all").await;
    assert!(all.contains(&machines) && !all.contains(&configs), "{all}");
}

#[tokio::test]
async fn get_shows_an_object_as_yaml() {
    let mut golden = Golden::default();
    for (resource, name) in [
        ("virtplatformconfig", "load-aware-rebalancing"),
        ("virtplatformconfig", "virt-higher-density"),
        ("virtplatformplanrecord", "load-aware-rebalancing-7"),
        ("virtualmachine", "busy-vm"),
        ("virtualmachine", "new-vm"),
    ] {
        let yaml = kubectl(&["get", resource, name, "-o", "yaml"]).await.unwrap();
        golden.compare(&format!("get_yaml_{name}"), &without_identity(&yaml));
    }
    golden.finish();
}

/// The documentation of a field. It is published some time after the kind is served, without any signal.
async fn explain(path: &str) -> String {
    let found = poll(POLL, TIMEOUT, async || kubectl(&["explain", path]).await).await;
    found.unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[tokio::test]
async fn explain_tells_what_to_write_and_what_to_read() {
    let mut golden = Golden::default();
    for path in [
        "virtplatformconfig",
        "virtplatformconfig.spec",
        "virtplatformconfig.spec.action",
        "virtplatformconfig.spec.waitTimeout",
        "virtplatformconfig.spec.approval",
        "virtplatformconfig.spec.options",
        "virtplatformconfig.spec.options.loadAware",
        "virtplatformconfig.spec.options.virtHigherDensity",
        "virtplatformconfig.spec.options.virtHigherDensity.ksmConfiguration",
        "virtplatformconfig.status",
        "virtplatformconfig.status.items",
        "virtplatformplanrecord",
        "virtplatformplanrecord.spec",
        "virtplatformplanrecord.spec.items",
        "virtplatformplanrecord.spec.items.leaves",
        "virtplatformplanrecord.status",
        "virtualmachine",
        "virtualmachine.spec",
        "virtualmachine.spec.resources",
        "virtualmachine.spec.utilization",
        "virtualmachine.status",
    ] {
        golden.compare(&format!("explain_{}", path.replace('.', "_")), &explain(path).await);
    }
    golden.finish();
}
