//! `rebalance-lab sim` as a process: its streams and its exit code. Its output is tested beside the code.

use std::{
    path::Path,
    process::{Command, Output},
};

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rebalance-lab")).arg("sim").args(arguments).output().unwrap()
}

#[test]
fn results_go_to_standard_output_without_colors_when_nobody_looks() {
    let output = sim(&["run", "mixed"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(text.contains("▼ under-utilized") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn errors_go_to_standard_error_and_the_process_fails() {
    let output = sim(&["run", "nothing"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(text.starts_with("error: there is no scenario or file nothing; "), "{text}");
}

#[test]
fn the_schema_is_the_published_one() {
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/scenario.schema.json");
    assert_eq!(sim(&["schema"]).stdout, std::fs::read(published).unwrap());
}
