//! A page for every alert, which agrees with it, and whose commands work.

use std::{collections::BTreeSet, fmt::Write as _, process::Output};

use advisor::monitoring::{ALERTS, after};

use crate::{
    guide::terminal::{Terminal, root},
    support::text,
};

/// Commands that need more than an API server, by how they begin, and what they need.
const NOT_RUN: [(&str, &str); 5] = [
    ("kubectl virt-advisor approve ", "it asks somebody at a terminal"),
    ("oc -n openshift-machine-config-operator logs ", "a kubelet has the log, and there is none"),
    ("kubectl -n openshift-cnv logs ", "a kubelet has the log, and there is none"),
    ("kubectl get vmi ", "the definition of VirtualMachineInstance belongs to KubeVirt"),
    ("kubectl -n openshift-cnv get servicemonitors", "their definitions belong to the Prometheus operator"),
];

/// Commands whose exit code is not 0 when they find something, and that one.
const FINDS: (&str, i32) = ("virt-advisor doctor", 1);

/// A section of a runbook with commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Diagnosis,
    Mitigation,
}

pub(super) fn page(alert: &str) -> String {
    std::fs::read_to_string(root().join(format!("docs/runbooks/{alert}.md"))).unwrap_or_default()
}

/// The lines of a page's shell blocks, with the section that they are in.
fn commands(page: &str) -> Vec<(Section, &str)> {
    let (mut section, mut is_inside, mut found) = (None, false, Vec::new());
    for line in page.lines() {
        match line {
            "## Diagnosis" => section = Some(Section::Diagnosis),
            "## Mitigation" => section = Some(Section::Mitigation),
            "```sh" => is_inside = true,
            "```" => is_inside = false,
            line if is_inside => found.push((section.expect("commands are in these two sections"), line)),
            _ => {}
        }
    }
    found
}

fn is_run(command: &str) -> bool {
    !NOT_RUN.iter().any(|(beginning, _)| command.starts_with(beginning))
}

/// Runs the commands of a page up to the end of a section, one after another in one shell, and returns what they printed. The shell is
/// in a folder of its own, which has our manifests.
pub(super) async fn run(terminal: &Terminal, alert: &str, last: Section) -> String {
    let page = page(alert);
    let folder = tempfile::tempdir().unwrap();
    let mut script = format!("set -o pipefail\nln -s \"$PWD/config\" '{0}'\ncd '{0}'\n", folder.path().display());
    let commands = commands(&page);
    let wanted = commands.iter().filter(|(section, _)| last == Section::Mitigation || *section == Section::Diagnosis);
    for (number, (_, command)) in wanted.filter(|(_, command)| is_run(command)).enumerate() {
        let allowed = if *command == FINDS.0 { FINDS.1 } else { 0 };
        let check = format!("[ $code -eq 0 ] || [ $code -eq {allowed} ] || exit {}", 100 + number);
        let _ = write!(script, "{command}\ncode=$?; {check}\n");
    }
    let Output { status, stdout, stderr } = terminal.try_run_by("bash", &script).await;
    let (printed, said) = (text(&stdout), text(&stderr));
    assert!(status.success(), "{alert}: {status} (101 is the second command)\n{script}\n{printed}\n{said}");
    printed
}

#[test]
fn every_alert_has_a_page_and_every_page_an_alert() {
    let alerts: BTreeSet<String> = ALERTS.iter().map(|alert| alert.runbook()).collect();
    let pages: BTreeSet<String> = std::fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|entry| format!("docs/runbooks/{}", entry.unwrap().file_name().to_string_lossy()))
        .collect();
    assert_eq!(alerts, pages);
}

#[test]
fn pages_agree_with_severity_and_times_of_their_alerts() {
    for alert in ALERTS {
        let page = page(alert.name);
        let expected = format!(
            "# {}\n\nSeverity: {}. Fires after: {}. Impact on the health of the operator: {}.\n",
            alert.name,
            alert.severity.as_str(),
            after(alert),
            alert.health_impact.as_str()
        );
        assert!(page.starts_with(&expected), "{}: {:?}", alert.name, page.lines().nth(2));
        let meaning = page.split_once("\n## Meaning\n").unwrap().1.split("\n## ").next().unwrap();
        let (meaning, minutes) = (meaning.replace('\n', " "), alert.hold.as_secs() / 60);
        let is_told = ["for", "For"].iter().any(|word| meaning.contains(&format!("{word} {minutes} minutes")));
        assert!(is_told, "{}: {meaning}", alert.name);
    }
}

#[test]
fn pages_have_the_four_sections_in_their_order_and_commands_for_both_that_act() {
    for alert in ALERTS {
        let page = page(alert.name);
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["Meaning", "Impact", "Diagnosis", "Mitigation"], "{}", alert.name);
        let commands = commands(&page);
        for section in [Section::Diagnosis, Section::Mitigation] {
            let runs = commands.iter().filter(|(found, command)| *found == section && is_run(command)).count();
            assert!(runs > 0, "{}: no command that is tested in {section:?}", alert.name);
        }
        for (_, command) in commands {
            assert!(!command.ends_with('\\') && !command.is_empty(), "{}: one line per command: {command}", alert.name);
        }
    }
}

/// An approval without a digest would approve what nobody has read, and risks have to be accepted by name.
#[test]
fn pages_approve_by_the_command_that_asks_about_risks_or_else_by_the_digest() {
    let approving =
        ["VirtAdvisorConfigFailed", "VirtAdvisorDrifted", "VirtAdvisorRemediationStalled", "VirtAdvisorReviewOverdue"];
    for alert in approving {
        let page = page(alert);
        let found = commands(&page);
        let position = |part: &str| found.iter().position(|(_, command)| command.contains(part));
        let (asks, patches) = (position("kubectl virt-advisor approve \"$PROFILE\""), position("\"action\":\"Apply\""));
        assert!(asks.is_some() && asks < patches, "{alert}: the command comes first");
        let is_exact = |command: &str| !command.contains("\"action\":\"Apply\"") || command.contains("planDigest");
        assert!(found.iter().all(|(_, command)| is_exact(command)), "{alert}");
        assert!(page.contains("`spec.approval.acceptedRisks`"), "{alert}");
    }
}

#[test]
fn what_is_not_run_is_on_a_page() {
    let pages: String = ALERTS.iter().map(|alert| page(alert.name)).collect();
    for (beginning, reason) in NOT_RUN {
        assert!(pages.contains(&format!("\n{beginning}")), "{beginning}: {reason}");
    }
}
