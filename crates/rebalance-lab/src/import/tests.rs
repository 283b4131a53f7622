//! The guide of `rebalance-lab import` is current. `UPDATE_DOCS=1 cargo test -p rebalance-lab import` rewrites it.

mod cluster;

use std::path::Path;

use clap::Parser;
use serde_json::json;

use super::*;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    import: Args,
}

const TIME: &str = "2026-03-02T22:00:00Z";

/// What the command of the guide prints about the cluster of this test. No two runs have the time in common.
fn printed(command: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let url = cluster::serve();
    let kubeconfig = folder.path().join("kubeconfig");
    let config = json!({
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    });
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let place = |word: &str| match word {
        word if word.starts_with("https://") => url.clone(),
        word if word.ends_with(".gz") => folder.path().join(word).display().to_string(),
        word => word.to_owned(),
    };
    let words = command.split(' ').map(place).chain(["--kubeconfig".to_owned(), kubeconfig.display().to_string()]);
    let args = Program::try_parse_from(words).unwrap().import;
    let said = execute(&args, Terminal { width: Some(120), progress: false }).unwrap();
    let said = anstream::adapter::strip_str(&said).to_string().replace(&format!("{}/", folder.path().display()), "");
    let (before, after) = said.split_once(" up to ").unwrap();
    format!("{before} up to {TIME}{}", &after[TIME.len()..])
}

#[test]
fn the_guide_shows_real_output() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/import.md");
    let text = std::fs::read_to_string(&guide).unwrap();
    let (start, end) =
        ("<!-- output: kept current by a test -->\n```console\n$ rebalance-lab ", "```\n<!-- end of output -->");
    let (before, rest) = text.split_once(start).unwrap();
    let (block, after) = rest.split_once(end).unwrap();
    let command = block.lines().next().unwrap();
    let current = format!("{before}{start}{command}\n{}{end}{after}", printed(command));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&guide, current).unwrap();
    } else {
        assert!(
            text == current,
            "docs/lab/import.md is out of date: run `UPDATE_DOCS=1 cargo test -p rebalance-lab import` and commit the \
             result. It should be\n{current}"
        );
    }
}
