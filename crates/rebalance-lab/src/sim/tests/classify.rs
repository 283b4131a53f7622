//! `sim classify`, and the nodes in the JSON of other commands.

use serde_json::Value;

use super::commands::sim;

fn parsed(arguments: &[&str]) -> Value {
    serde_json::from_str(&sim(arguments, None).unwrap()).unwrap()
}

/// A file with this text, and its path.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

/// The golden vectors of the reference.
const TABLE: &str = "node,cpu use,cpu pressure,memory use,memory pressure\n\
                     n1,0.92,0.30,0.40,0.03\nn2,0.75,0.05,0.80,0.10\nn3,0.50,0.035,0.50,0.035\n\
                     n4,0.20,0.014,0.30,0.021\nn5,0.10,0.007,0.70,0\nn6,0.50,0.035,0.50,0.035\n";

#[test]
fn a_table_of_numbers_is_classified_by_all_algorithms_and_modes() {
    let (_folder, path) = file("nodes.csv", TABLE);
    let json = parsed(&["classify", &path, "-o", "json"]);
    let cluster = &json[0];
    assert_eq!((&cluster["loads"], &cluster["semantics"]), (&Value::from("stated"), &Value::from("reference")));
    assert_eq!(cluster["nodes"][0]["cpuPressure"], 0.3);
    let algorithms = cluster["algorithms"].as_array().unwrap();
    assert_eq!(algorithms.len(), 20);
    let of = |slug: &str| algorithms.iter().find(|one| one["algorithm"] == slug).unwrap();
    let expected = [
        "over-utilized",
        "over-utilized",
        "under-utilized",
        "under-utilized",
        "appropriately-utilized",
        "under-utilized",
    ];
    let modes = of("linear_amplified_ideal_point_positive_distance:k3")["modes"].as_array().unwrap();
    assert_eq!(modes.len(), 6);
    for mode in modes {
        assert_eq!(mode["buckets"], Value::from(expected.to_vec()), "{}", mode["mode"]);
    }
    let golden = [0.4125, 0.425, 0.2675, 0.13375, 0.20175, 0.2675];
    for (found, golden) in of("weighted_average")["scores"].as_array().unwrap().iter().zip(golden) {
        assert!((found.as_f64().unwrap() - golden).abs() < 1e-9, "{found} {golden}");
    }
    let csv = sim(&["classify", &path, "-o", "csv"], None).unwrap();
    assert_eq!(csv.lines().count(), 1 + 20 * 6 * 6);
    assert!(csv.contains("\ntable,max_metric,asym-low,n1,0.92,0.3,0.4,0.03,0.92,"), "{csv}");
}

#[test]
fn a_file_of_the_reference_is_classified_as_stated_or_by_its_vms() {
    let node = |name: &str, cpu: f64| {
        format!(
            "{{\"name\": \"{name}\", \"cpu_usage\": {cpu}, \"cpu_pressure\": 0, \"memory_usage\": 0.5, \"memory_pressure\": 0, \
             \"vms\": [{{\"id\": \"{name}\", \"cpu_consumption\": 0.5, \"memory_consumption\": 0.5}}]}}"
        )
    };
    let nodes = format!("[{}, {}]", node("hot", 0.9), node("cool", 0.1));
    let (_folder, path) = file("two.json", &format!("{{\"one\": {nodes}, \"two\": {nodes}}}"));
    let text = sim(&["classify", &path, "-a", "k3", "-m", "low,asym-high"], Some(80)).unwrap();
    assert!(
        text.starts_with("one: 2 nodes, reference semantics (exact score, <= and >=), first loads as stated\n"),
        "{text}"
    );
    assert!(text.contains("\ntwo: 2 nodes, "), "all scenarios of a file: {text}");
    assert!(
        text.contains(
            "\nNODE  SCORE  LOW      ASYM-HIGH\nhot   1.000  ▲ over   ▲ over\ncool  0.000  ▼ under  ▼ under\n"
        ),
        "{text}"
    );
    let derived = sim(&["classify", &format!("{path}:two"), "--loads", "vms", "-a", "k3"], None).unwrap();
    assert!(
        derived.starts_with("two: 2 nodes, reference semantics (exact score, <= and >=), loads from VMs\n"),
        "{derived}"
    );
    assert!(!derived.contains("over\n"), "{derived}");
    for (loads, migrations) in [("stated", 1), ("vms", 0)] {
        let json = parsed(&["run", &format!("{path}:one"), "--loads", loads, "--steps", "1", "-o", "json"]);
        let outcome = &json["outcome"];
        assert_eq!(
            (outcome["loads"].as_str(), outcome["migrations"]["total"].as_u64()),
            (Some(loads), Some(migrations))
        );
    }
}

#[test]
fn json_has_every_node_where_the_table_stops() {
    let (_folder, path) = file("big.yaml", &sim(&["scenarios", "--generate", "40", "200"], None).unwrap());
    let table = sim(&["run", &path, "--steps", "3"], None).unwrap();
    assert!(table.ends_with("... and 10 more nodes; -o json and --html have all.\n"), "{table}");
    let run = parsed(&["run", &path, "--steps", "3", "-o", "json"]);
    let explained = parsed(&["explain", &path, "node-1", "--at", "3", "-o", "json"]);
    assert_eq!(run["nodes"].as_array().unwrap().len(), 40);
    assert_eq!(run["nodes"], explained["nodes"], "both are of step 3");
    for node in run["nodes"].as_array().unwrap() {
        for number in ["cpuUsage", "cpuPressure", "memoryUsage", "memoryPressure", "score"] {
            assert!(node[number].is_f64(), "{node}");
        }
        let (score, lower, upper) = (node["score"].as_f64(), run["lower"].as_f64(), run["upper"].as_f64());
        let bucket = if score <= lower {
            "under-utilized"
        } else if score >= upper {
            "over-utilized"
        } else {
            "appropriately-utilized"
        };
        assert_eq!(node["bucket"], bucket, "{node}");
    }
}

#[test]
fn a_comparison_has_the_steps_until_no_node_was_over() {
    let arguments = ["compare", "mixed", "--seeds", "2", "-a", "k3,centroid_distance", "--by", "none-over"];
    let json = parsed(&[&arguments[..], &["-o", "json"]].concat());
    assert_eq!(json["entries"][0]["algorithm"], "linear_amplified_ideal_point_positive_distance:k3");
    let mean: f64 = ["0", "1"]
        .map(|seed| {
            parsed(&["run", "mixed", "--seed", seed, "-o", "json"])["outcome"]["noneOverAtStep"].as_f64().unwrap()
        })
        .iter()
        .sum();
    assert_eq!(json["entries"][0]["noneOverSteps"]["mean"].as_f64(), Some(mean / 2.0));
    assert_eq!(json["loads"], "vms");
    let table = sim(&arguments, None).unwrap();
    assert!(
        table.contains("RANK is by steps until no node is over-utilized") && table.contains("NONE OVER"),
        "{table}"
    );
}
