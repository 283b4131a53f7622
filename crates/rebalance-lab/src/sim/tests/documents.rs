//! Generated files and documents are current. `UPDATE_DOCS=1 cargo test -p rebalance-lab documents` rewrites them.

use std::path::{Path, PathBuf};

use super::commands::sim as perform;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Tests run in parallel, so a test that rewrites the guide takes this lock.
static GUIDE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn keep(path: &Path, current: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, current).unwrap();
    } else {
        let committed = std::fs::read_to_string(path).unwrap();
        let shown = path.display();
        assert!(
            committed == current,
            "{shown} is out of date: run `UPDATE_DOCS=1 cargo test -p rebalance-lab` and commit the result"
        );
    }
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    keep(&path("config/lab/scenario.schema.json"), &sim::scenario::schema());
}

/// Each block between the two comments contains a command and its output.
#[test]
fn the_guide_shows_real_output() {
    let _turn = GUIDE.lock();
    let guide = path("docs/lab/simulator.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let (start, end) =
        ("<!-- output: kept current by a test -->\n```console\n$ rebalance-lab sim ", "```\n<!-- end of output -->");
    let mut current = String::new();
    let mut rest = text.as_str();
    let mut blocks = 0;
    while let Some((before, after)) = rest.split_once(start) {
        let (block, after) = after.split_once(end).expect("a block ends");
        let command = block.lines().next().unwrap();
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = perform(&arguments, Some(120)).unwrap_or_else(|error| format!("error: {error}\n"));
        current += &format!("{before}{start}{command}\n{output}{end}");
        rest = after;
        blocks += 1;
    }
    current += rest;
    assert!(blocks >= 4, "the guide shows something");
    keep(&guide, &current);
}

/// Each row is a mean over runs of a skew with some seeds, without and with the plugin.
#[test]
fn the_guide_shows_what_the_cool_down_of_the_plugin_changes() {
    const SEEDS: u64 = 10;
    let _turn = GUIDE.lock();
    let guide = path("docs/lab/simulator.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let (start, end) = ("<!-- cool-down: kept current by a test -->\n", "<!-- end of cool-down -->");
    let (before, rest) = text.split_once(start).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let mut table = "| skew | algorithm | plugin | migrations | of them repeats | to and fro | spread at the end |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for skew in ["skew-placement", "skew-use"] {
        let file = path(&format!("docs/lab/{skew}.yaml"));
        for (algorithm, flag) in
            ["k3", "k5", "pareto_front"].into_iter().flat_map(|algorithm| [(algorithm, false), (algorithm, true)])
        {
            let mut sums = [0.0; 4];
            for seed in 0..SEEDS {
                let seed = seed.to_string();
                let mut arguments = vec!["run", file.to_str().unwrap(), "-a", algorithm, "--seed", &seed, "-o", "json"];
                arguments.extend(flag.then_some("--migration-aware"));
                let json: serde_json::Value = serde_json::from_str(&perform(&arguments, None).unwrap()).unwrap();
                let outcome = &json["outcome"];
                let count = |of: &str| outcome["migrations"][of].as_f64().unwrap();
                let sigma = outcome["end"]["cpu"]["sigma"].as_f64().unwrap();
                let figures = [count("total"), count("total") - count("vms"), count("pingPong"), sigma];
                sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
            }
            let [total, repeats, to_and_fro, spread] = sums.map(|sum| sum / SEEDS as f64);
            let plugin = if flag { "on" } else { "off" };
            table += &format!(
                "| {skew} | {algorithm} | {plugin} | {total:.1} | {repeats:.1} | {to_and_fro:.1} | {spread:.4} |\n"
            );
        }
    }
    keep(&guide, &format!("{before}{start}{table}{end}{after}"));
}

/// The published results of the reference are shown beside ours, but not asserted.
#[test]
fn the_guide_shows_ours_beside_the_reference() {
    let _turn = GUIDE.lock();
    let guide = path("docs/lab/simulator.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let (start, end) = ("<!-- beside: kept current by a test -->\n", "<!-- end of beside -->");
    let (before, rest) = text.split_once(start).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let mut table =
        "| scenario | the reference, one run without a seed | ours, k3, seed 0 |\n|---|---|---|\n".to_owned();
    for (name, reference) in [
        ("light", "k=3 ended after 3 steps, k=5 after 4; 11 of 19 did nothing, 6 never ended"),
        ("mixed", "k=3 ended after 12 steps with σ 0.163 / 0.135; 2 did nothing, 3 never ended"),
        ("heavy", "k=3 and k=5 ended after 2 steps; 11 did nothing, 6 never ended"),
        ("progression", "k=5 ended after 15 steps with σ 0.118 / 0.077; 1 did nothing, 6 never ended"),
    ] {
        let json: serde_json::Value =
            serde_json::from_str(&perform(&["run", name, "-o", "json"], None).unwrap()).unwrap();
        let samples = json["samples"].as_array().unwrap();
        let first = samples.iter().find(|sample| sample["over"] == 0);
        let shown = |sample: &serde_json::Value| {
            let sigma = |of: &str| sample[of]["sigma"].as_f64().unwrap();
            format!("σ {:.3} / {:.3}", sigma("cpu"), sigma("memory"))
        };
        let when = first.map_or("never".to_owned(), |sample| format!("step {} with {}", sample["step"], shown(sample)));
        table +=
            &format!("| {name} | {reference} | none over at {when}; {} at the end |\n", shown(samples.last().unwrap()));
    }
    keep(&guide, &format!("{before}{start}{table}{end}{after}"));
}
