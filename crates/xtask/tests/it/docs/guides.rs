//! Every guide that people look for by its name is there, and a test runs its commands or lists why not.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use testkit::checklist::{Checklist, script};

use super::{Page, files_under};
use crate::commands::{printed, root, text};

const PROFILES: &str = "docs/profile-development-guide.md";
const GUIDES: [&str; 13] = [
    "docs/LOADAWARE_PROFILE.md",
    "docs/OPENSHIFT_DEPLOYMENT.md",
    "docs/TESTING_ON_KIND.md",
    "docs/VIRTHIGHERDENSITY_PROFILE.md",
    "docs/WORKFLOW_EXAMPLE.md",
    PROFILES,
    "docs/lab/PODMAN_SETUP.md",
    "docs/lab/PROMETHEUS_ALGORITHMS.md",
    "docs/lab/QUICKSTART.md",
    "docs/lab/README_PODS.md",
    "docs/lab/README_VM_CRD.md",
    "docs/lab/RESOURCE_MODEL.md",
    "docs/lab/SCHEDULER_INTEGRATION.md",
];

/// What the guide for profiles prints and we do not run, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("make check-profile NAME=migration-banner", "the test below runs the command behind it"),
    ("make generate", "it writes to the tree; each generated file has a test that compares it"),
    ("cargo test -p advisor", "it is a part of `make test`"),
    ("INSTA_UPDATE=always cargo test -p virt-advisor-api", "it writes snapshots"),
    ("make test", "it would run this test again"),
];

#[test]
fn every_guide_has_a_test_that_runs_its_commands_or_says_why_not() {
    let mut files = Vec::new();
    files_under(Path::new("crates"), "rs", &mut files);
    let tests: Vec<String> = files
        .iter()
        .filter(|file| file.to_str().is_some_and(|path| path.contains("/tests/") && !path.ends_with("docs/guides.rs")))
        .map(|file| fs::read_to_string(root().join(file)).unwrap())
        .collect();
    for guide in GUIDES.into_iter().filter(|guide| *guide != PROFILES) {
        let quoted = format!("\"{guide}\"");
        assert!(tests.iter().any(|test| test.contains(&quoted)), "no test names {guide}");
    }
    Checklist::of(&script(PROFILES), EXCEPTIONS).finish();
}

/// Otherwise no test would find what is in it.
#[test]
fn every_block_of_a_guide_says_what_is_in_it() {
    for guide in GUIDES {
        let page = Page::at(guide);
        let fences = page.text.lines().filter_map(|line| line.strip_prefix("```"));
        let unnamed = fences.step_by(2).filter(|language| language.is_empty()).count();
        assert_eq!(unnamed, 0, "{guide} has blocks without a language");
    }
}

fn check_profile(name: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(["check-profile", name]).output().unwrap()
}

#[test]
fn one_command_says_what_a_new_profile_lacks() {
    assert!(printed(&check_profile("virt-higher-density")).contains("is complete"));
    let output = check_profile("migration-banner");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    for part in ["the profile migration-banner lacks\n- crates/api/", "a line in the enum Profile", PROFILES] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
}
