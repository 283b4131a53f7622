//! Turns PSI on and off beside arguments of others, and checks the result with a small model of a node: the pool concatenates the
//! entries of its configs, the daemon splits them, and the kernel uses the last value.

use proptest::prelude::*;
use serde_json::{Value, json};

use advisor::{
    kind::MACHINE_CONFIG,
    test_cluster::{ROLE, TestCluster, arbitrary, machine_config, ours, pool, set_by},
};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const PSI: &str = "99-worker-psi-karg";

/// A config of somebody else: its name, its role, its entries.
type Config = (String, &'static str, Vec<String>);

/// The arguments on the command line of a node, in order.
fn command_line(configs: &[Config]) -> Vec<String> {
    let mut sorted: Vec<&Config> = configs.iter().collect();
    sorted.sort_by_key(|(name, role, _)| (*role != "worker", name));
    sorted.into_iter().flat_map(|(_, _, entries)| entries).flat_map(|entry| arguments(entry)).collect()
}

/// Splits an entry at blanks outside of quotes.
fn arguments(entry: &str) -> Vec<String> {
    let (mut found, mut current, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in entry.chars().chain([' ']) {
        match c {
            ' ' if !is_quoted => {
                found.extend(Some(std::mem::take(&mut current)).filter(|argument| !argument.is_empty()))
            }
            '"' => {
                is_quoted = !is_quoted;
                current.push(c);
            }
            c => current.push(c),
        }
    }
    if !current.trim().is_empty() {
        found.push(current.trim_end().to_owned());
    }
    found
}

fn is_psi(argument: &str) -> bool {
    argument == "psi" || argument.starts_with("psi=")
}

fn has_psi(command_line: &[String]) -> bool {
    command_line.iter().rfind(|argument| is_psi(argument)).is_some_and(|argument| argument == "psi=1")
}

fn others(arguments: &[String]) -> Vec<&String> {
    arguments.iter().filter(|argument| !is_psi(argument)).collect()
}

fn entry() -> impl Strategy<Value = String> {
    let argument = proptest::sample::select(
        &["psi=0", "psi=1", "psi", "quiet", "audit=0", "audit=0", "a=\"x y\"", "psi_cgroups=1", "b=\"psi=1 z\""][..],
    );
    (proptest::collection::vec(argument, 1..4), proptest::sample::select(&[" ", "  "][..]))
        .prop_map(|(arguments, blank)| arguments.join(blank))
}

fn entries() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(entry(), 0..4)
}

fn foreign() -> impl Strategy<Value = Vec<Config>> {
    let config = (proptest::sample::select(&["00-worker", "97-kubelet", "99-zzz", "50-gpu"][..]), entries());
    proptest::collection::vec(config, 0..4).prop_map(|configs| {
        let named = |(number, (name, entries)): (usize, (&str, Vec<String>))| {
            let role = if name.ends_with("gpu") { "gpu" } else { "worker" };
            (format!("{name}-{number}"), role, entries)
        };
        configs.into_iter().enumerate().map(named).collect()
    })
}

/// A pool of both roles whose nodes run these configs.
fn cluster(configs: &[Config], live: Option<&Value>) -> TestCluster {
    let mut all = configs.to_vec();
    all.extend(live.map(own));
    let mut gpu = pool("gpu", &["worker", "gpu"], 2);
    let source: Vec<Value> = all.iter().map(|(name, ..)| json!({"name": name})).collect();
    gpu["status"]["configuration"]["source"] = source.into();
    let cluster = TestCluster::with_descheduler("5.1")
        .with(pool("worker", &["nobody"], 0))
        .with(gpu)
        .with(machine_config("rendered-gpu", json!({"kernelArguments": command_line(&all)})));
    configs.iter().fold(cluster, |cluster, (name, role, entries)| {
        let mut config = machine_config(name, json!({"kernelArguments": entries}));
        config["metadata"]["labels"][ROLE] = (*role).into();
        cluster.with(config)
    })
}

/// The config of the operator, among the others.
fn own(live: &Value) -> Config {
    let entries = live["spec"]["kernelArguments"].as_array().into_iter().flatten();
    (PSI.to_owned(), "worker", entries.map(|entry| entry.as_str().unwrap().to_owned()).collect())
}

fn after(cluster: &TestCluster, configs: &[Config]) -> Vec<String> {
    let live = cluster.find(&MACHINE_CONFIG, None, PSI);
    command_line(&configs.iter().cloned().chain(live.map(own)).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(arbitrary::cases(512))]

    /// Real operators, fifth in rank: an argument of somebody else's is never lost, whatever entry it is in.
    #[test]
    fn turning_psi_on_and_off_keeps_every_other_argument_in_its_place(
        configs in foreign(),
        existing in proptest::option::of((entries(), any::<bool>())),
    ) {
        let live = existing.map(|(entries, is_ours)| {
            let config = machine_config(PSI, json!({"kernelArguments": entries}));
            if is_ours { ours(config) } else { set_by("kubectl", "Update", config) }
        });
        let mut cluster = live.iter().fold(cluster(&configs, live.as_ref()), |cluster, live| cluster.with(live.clone()));
        let before = after(&cluster, &configs);

        cluster.apply(LOAD_AWARE, json!({}));
        let on = after(&cluster, &configs);
        prop_assert_eq!(others(&on), others(&before));
        let own = cluster.find(&MACHINE_CONFIG, None, PSI).map(own);
        let is_overruled = configs.iter().any(|(name, role, entries)| {
            let is_later = *role != "worker" || name.as_str() > PSI;
            is_later && entries.iter().flat_map(|entry| arguments(entry)).any(|argument| is_psi(&argument))
        });
        if own.is_none() {
            prop_assert!(has_psi(&on), "left out although it is needed: {:?}", on);
        } else if !is_overruled {
            prop_assert!(has_psi(&on), "{:?}", on);
        }

        cluster.apply(LOAD_AWARE, json!({"loadAware": {"enablePSIMetrics": false}}));
        let off = after(&cluster, &configs);
        prop_assert_eq!(others(&off), others(&before));
    }
}
