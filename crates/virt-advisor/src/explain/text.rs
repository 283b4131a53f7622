//! Profiles for people.

use api::virt_platform_config::Severity;
use terminal::table::{self, Cell};

use super::{Explained, ObjectAccess, ProfileExplanation};
use crate::{
    program,
    prose::{BOLD, hanging, indented, section},
};

pub(super) fn render(body: &ProfileExplanation, is_list: bool, width: usize) -> String {
    if is_list {
        let row = |profile: &Explained| -> Vec<Cell> {
            vec![Cell::styled(profile.name, BOLD), profile.category.into(), profile.description.into()]
        };
        let rows: Vec<_> = body.profiles.iter().map(row).collect();
        return table::render(&["PROFILE", "CATEGORY", "WHAT IT DOES"], &rows, width);
    }
    body.profiles.iter().map(|profile| of_profile(profile, width)).collect::<Vec<_>>().join("\n")
}

fn of_profile(profile: &Explained, width: usize) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n{}", profile.name, indented(profile.description, 3, width));
    let reboots = match profile.impact_severity {
        Severity::High => "Nodes may reboot. The plan says which, and how many.",
        Severity::Medium => "No node reboots; components change their behavior.",
        Severity::Low => "Nothing is disturbed.",
    };
    text += &section("Impact", [profile.impact_summary.to_owned(), reboots.to_owned()], width);
    text += &section("Objects that its plans may change", profile.manages.iter().map(access), width);
    text += &section("Objects that its plans read", profile.reads.iter().map(access), width);
    text += &section("What it requires", profile.requires.iter().cloned(), width);
    if !profile.options.is_empty() {
        text += &format!("\n{BOLD}Options{BOLD:#}\n");
    }
    for option in &profile.options {
        let default = option.default.as_ref().map_or_else(String::new, |default| format!(", default {default}"));
        text += &hanging("   ", &format!("{} ({}{default})", option.path, option.kind), 3, width);
        for line in option.description.lines().filter(|line| !line.trim().is_empty()) {
            text += &indented(line, 6, width);
        }
    }
    let name = profile.name;
    text += &section(
        "Rights",
        [format!(
            "The operator has exactly the rights that this needs. A fresh plan of your own (`{} plan {name} --draft`) needs them too: a \
             dry run needs the rights of the change.",
            program::name()
        )],
        width,
    );
    text += &section(
        "How to undo it",
        [format!(
            "`{} undo {name}` asks for a plan that sets every object back to what was there before. It is reviewed like any other.",
            program::name()
        )],
        width,
    );
    text + &format!("\nMore: {}\n", profile.documentation)
}

fn access(access: &ObjectAccess) -> String {
    match access.what.as_slice() {
        ["read"] => access.object.clone(),
        what => format!("{}: {}", access.object, what.join(", ")),
    }
}
