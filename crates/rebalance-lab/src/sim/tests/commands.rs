//! The commands of `rebalance-lab sim`, without a terminal.

use clap::Parser;
use serde_json::Value;
use terminal::{Terminal, table::columns};

use super::super::{Sim, execute};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    sim: Sim,
}

pub(crate) fn sim(arguments: &[&str], width: Option<usize>) -> Result<String, String> {
    let program = Program::try_parse_from([&["sim"], arguments].concat()).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    execute(&program.sim, Terminal { width, progress: false }, &mut out).map_err(|error| error.to_string())?;
    Ok(plain(&String::from_utf8(out).unwrap()))
}

/// The text without styles.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain += before;
        rest = after.split_once('m').unwrap().1;
    }
    plain + rest
}

#[test]
fn tables_fit_every_width() {
    for arguments in [
        &["run", "mixed"][..],
        &["algorithms"],
        &["scenarios"],
        &["compare", "light", "--seeds", "2", "--algorithms", "k3,max_metric"],
    ] {
        for width in [60, 80, 120, 200] {
            let text = sim(arguments, Some(width)).unwrap();
            let table = text
                .split("\n\n")
                .find(|part| part.contains("ALGORITHM") || part.contains("NODE ") || part.contains("SCENARIO"))
                .unwrap();
            let rows = table.lines().filter(|line| !line.starts_with("Too narrow"));
            assert!(rows.map(columns).max() <= Some(width), "{arguments:?} {width}\n{table}");
        }
    }
}

#[test]
fn the_same_seed_prints_the_same_and_json_csv_and_table_agree() {
    let table = sim(&["run", "mixed", "--seed", "4"], None).unwrap();
    assert_eq!(table, sim(&["run", "mixed", "--seed", "4"], None).unwrap());
    let json: Value =
        serde_json::from_str(&sim(&["run", "mixed", "--seed", "4", "-o", "json", "--moves"], None).unwrap()).unwrap();
    let csv = sim(&["run", "mixed", "--seed", "4", "-o", "csv"], None).unwrap();
    let samples = json["samples"].as_array().unwrap();
    assert_eq!(csv.lines().count(), samples.len() + 1);
    let keys: Vec<&String> = json["outcome"].as_object().unwrap().keys().collect();
    insta::assert_debug_snapshot!("outcome-keys", keys);
    insta::assert_snapshot!("sample-columns", csv.lines().next().unwrap());
    assert_eq!(
        json["moves"].as_array().unwrap().len() as u64,
        json["outcome"]["migrations"]["total"].as_u64().unwrap()
    );
    let moved: u64 = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(moved, json["outcome"]["migrations"]["total"].as_u64().unwrap());
}

#[test]
fn a_comparison_ranks_all_and_says_who_cannot_be_told_apart() {
    let json: Value =
        serde_json::from_str(&sim(&["compare", "mixed", "--seeds", "6", "--steps", "40", "-o", "json"], None).unwrap())
            .unwrap();
    let entries = json["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 20);
    // With sensitivity 1 the amplified algorithm equals the ideal point, so both cause the same moves.
    let rank = |slug: &str| entries.iter().find(|entry| entry["algorithm"] == slug).unwrap();
    let (ideal, amplified) =
        (rank("ideal_point_positive_distance"), rank("linear_amplified_ideal_point_positive_distance:k1"));
    assert_eq!(ideal["rank"], amplified["rank"]);
    assert_eq!((&ideal["tied"], &ideal["score"]["mean"]), (&Value::Bool(true), &amplified["score"]["mean"]));
    // This algorithm also moves load away from idle nodes.
    assert!(rank("centroid_distance")["rank"].as_u64() > ideal["rank"].as_u64());
    let csv = sim(&["compare", "light", "--seeds", "2", "--algorithms", "k3,k5", "-o", "csv"], None).unwrap();
    insta::assert_snapshot!("comparison-columns", csv.lines().next().unwrap());
}

#[test]
fn a_comparison_shows_the_optimum_first_and_what_no_other_beats_before_the_rest() {
    let arguments = ["compare", "light", "--seeds", "2", "--algorithms", "k3,k5,max_metric", "--modes", "low,asym-low"];
    let text = sim(&[&arguments[..], &["--limits", "5:2,1:1"]].concat(), None).unwrap();
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in\n{text}"));
    assert!(place("The optimum: ") < place("LEAST SPREAD") && place("LEAST SPREAD") < place("ALGORITHM"), "{text}");
    assert!(place("12 combinations of algorithms, modes and limits") < place("The optimum: "), "{text}");
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.contains("ALGORITHM")).skip(1).take(12).collect();
    let marked = rows.iter().take_while(|row| row.starts_with('*')).count();
    assert!(marked > 0 && !rows[marked..].iter().any(|row| row.starts_with('*')), "{text}");
    assert!(rows.iter().any(|row| row.contains(" low ") && row.contains(" 1:1 ")), "{text}");
}

#[test]
fn explain_names_every_term_and_the_comparison_that_decided() {
    let text = sim(&["explain", "mixed", "node-10"], None).unwrap();
    assert!(
        text.starts_with("node-10 of mixed at step 0 is ▲ over-utilized\nbecause its score 1.000000 is at least "),
        "{text}"
    );
    assert!(text.contains("mean of cpu_usage over the nodes"), "{text}");
    let json: Value =
        serde_json::from_str(&sim(&["explain", "week", "worker-2", "--at", "30", "-o", "json"], None).unwrap())
            .unwrap();
    assert_eq!(json["semantics"], "descheduler");
    assert!(json["score"]["parts"].as_array().is_some_and(|parts| !parts.is_empty()));
}

#[test]
fn csv_has_quotes_only_where_a_field_needs_them() {
    let terms = sim(&["explain", "mixed", "node-10", "--algorithm", "pareto_front", "-o", "csv"], None).unwrap();
    let expected = "depth,value,term\n\
                    0,1,Pareto Front (NSGA-II) = level of the Pareto front ÷ last level + crowding\n\
                    1,1,\"front 4 of 0 to 4, divided by the last\"\n\
                    1,0,crowding within the front\n";
    assert_eq!(terms, expected);
    for (list, header, line) in [
        (
            "algorithms",
            "slug,name,relative,formula",
            "max_metric,Max Metric,false,\"max(cpu_usage, cpu_pressure, memory_usage, memory_pressure)\"",
        ),
        (
            "scenarios",
            "name,nodes,vms,durationSeconds,stepSeconds,description",
            "light,6,115,6000,60,\"Six nodes with little to do, unevenly.\"",
        ),
    ] {
        let text = sim(&[list, "-o", "csv"], None).unwrap();
        assert_eq!(text.lines().next(), Some(header));
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}

#[test]
fn what_cannot_be_done_is_told_with_what_could() {
    for (arguments, part) in [
        (
            &["run", "mixt"][..],
            "there is no scenario or file mixt; the scenarios that come with the program are light, mixed",
        ),
        (&["run", "no/such.yaml"], "no/such.yaml: No such file or directory"),
        (&["run", "mixed", "--algorithm", "k"], "rebalancing.algorithm: there is no algorithm"),
        (&["run", "mixed", "--steps", "0"], "duration: 0s is 0 steps of 1m"),
        (&["explain", "mixed", "node-99"], "there is no node node-99; there are node-1, node-2"),
        (&["explain", "mixed", "node-9", "--at", "101"], "step 101 is after the end, step 100"),
        (&["compare", "mixed", "--algorithms", "maxmetrik"], "did you mean \"max_metric\"?"),
        (&["compare", "mixed", "--seeds", "0"], "0 is not in 1..=100000"),
        (&["compare", "mixed", "--modes", "lo"], "there is no threshold mode \"lo\""),
        (&["compare", "mixed", "--limits", "5"], "5 is not a pair of numbers such as 5:2"),
        (&["compare", "mixed", "--limits", "5:2", "--max-total", "3"], "cannot be used with"),
        (&["scenarios", "nothing"], "there is no scenario nothing; there are light"),
        (&["scenarios", "--generate", "0", "5"], "nodes: 0 is not a number from 1 to 100000"),
    ] {
        let error = sim(arguments, None).unwrap_err();
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

#[test]
fn one_of_several_scenarios_in_a_file_is_asked_for_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.json");
    let node =
        "[{\"name\": \"n\", \"cpu_usage\": 0.5, \"cpu_pressure\": 0, \"memory_usage\": 0.5, \"memory_pressure\": 0}]";
    std::fs::write(&path, format!("{{\"one\": {node}, \"two\": {node}}}")).unwrap();
    let path = path.to_str().unwrap();
    let error = sim(&["run", path], None).unwrap_err();
    assert!(error.ends_with(&format!("holds the scenarios one, two: say which, for example {path}:one")), "{error}");
    assert!(sim(&["run", &format!("{path}:two")], None).unwrap().starts_with("scenario      two: 1 nodes"));
}

#[test]
fn plots_and_the_report_need_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (scatter, ranking, report) = (file("a.svg"), file("b.svg"), file("c.html"));
    sim(&["run", "hotspot", "--svg", &scatter], None).unwrap();
    sim(
        &["compare", "light", "--seeds", "3", "--algorithms", "k3,k5,max_metric", "--svg", &ranking, "--html", &report],
        None,
    )
    .unwrap();
    let read = |path: &String| std::fs::read_to_string(path).unwrap();
    for path in [&scatter, &ranking] {
        let text = read(path);
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"));
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    }
    let html = read(&report);
    assert!(!html.contains("{{"), "every place is filled");
    for outside in ["src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // The only URL is the SVG namespace, which browsers do not load.
    assert_eq!(html.matches("http").count(), html.matches("http://www.w3.org/2000/svg").count());
    for part in [
        "id=\"time\"",
        "▼ under-utilized",
        "▲ over-utilized",
        "Ranking",
        "95 % interval over 3 seeds",
        "optimum: the least that is known",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let data = html.split_once("type=\"application/json\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert!(data["frames"].as_array().unwrap().len() > 2);
}
