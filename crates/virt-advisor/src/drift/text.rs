//! Drift for people: what was applied, what is there, who did it, and both ways out.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use serde_json::{Value, json};
use terminal::{age, minute, table::visible};

use super::{ConfigDrift, DriftReport, FieldDrift, KeepingOption, ObjectDrift};
use crate::{
    plan::{
        diff_text::{ADDED, REMOVED},
        text::object,
    },
    program,
    prose::{BOLD, command, counted, outdented, painted, section},
};

const DRIFTED: Style = AnsiColor::Yellow.on_default().bold();
const INDENT: usize = 15;

pub(super) fn render(report: &DriftReport, width: usize, now: Timestamp) -> String {
    if report.configs.is_empty() {
        return "No plan is applied, so nothing can have drifted.\n".to_owned();
    }
    report.configs.iter().map(|config| of_config(config, width, now)).collect::<Vec<_>>().join("\n")
}

fn of_config(config: &ConfigDrift, width: usize, now: Timestamp) -> String {
    let mut text = outdented(&format!("{BOLD}{}{BOLD:#}: {}", config.profile, headline(config)), width);
    for object in &config.objects {
        text += &of_object(object, width, now);
    }
    text += &section("Not read", config.unread.iter().cloned(), width);
    if !config.objects.is_empty() {
        text += &put_back(&config.profile, width);
        text += &keep(config, width);
    }
    text
}

fn headline(config: &ConfigDrift) -> String {
    let fields: usize = config.objects.iter().map(|object| object.fields.len()).sum();
    let objects = match config.objects.len() {
        1 => format!("{DRIFTED}1 object{DRIFTED:#} is not as it was applied"),
        count => format!("{DRIFTED}{count} objects{DRIFTED:#} are not as they were applied"),
    };
    match (config.applied, config.objects.is_empty(), config.unread.is_empty()) {
        (false, ..) => format!(
            "its plan was not applied, so there is nothing to compare with; `{} plan {}` shows what it would change",
            program::name(),
            config.profile
        ),
        (true, true, true) => "everything is as it was applied".to_owned(),
        (true, true, false) => "what could be read is as it was applied".to_owned(),
        (true, false, _) if fields == 0 => objects,
        (true, false, _) => format!("{objects} ({})", counted(fields, "field")),
    }
}

fn of_object(drift: &ObjectDrift, width: usize, now: Timestamp) -> String {
    let what = match drift.what {
        "deleted" => " was deleted; nothing tells by whom",
        "created" => " was removed and is there again",
        _ => "",
    };
    let mut text = format!("\n{}", outdented(&format!("{BOLD}{}{BOLD:#}{what}", object(&drift.target)), width));
    for field in &drift.fields {
        text += &format!("   {}\n", visible(&field.path));
        for (label, value, style) in of_field(field, now) {
            text += &painted(&format!("      {label}"), &value, style, INDENT, width);
        }
    }
    text
}

fn of_field(field: &FieldDrift, now: Timestamp) -> [(&'static str, String, Style); 3] {
    let value = |value: &Option<Value>| value.as_ref().map_or_else(|| "not set".to_owned(), Value::to_string);
    let by = match (&field.by, field.at) {
        (Some(by), Some(at)) => format!("{by}, {} ago ({} UTC)", age(at, now), minute(at)),
        (Some(by), None) => by.clone(),
        (None, _) => "nothing tells".to_owned(),
    };
    [("applied", value(&field.applied), REMOVED), ("now", value(&field.now), ADDED), ("by", by, Style::new())]
}

/// A new plan is needed in any case, because what is there has changed.
fn put_back(profile: &str, width: usize) -> String {
    format!(
        "\n{BOLD}To put it back{BOLD:#}: have a plan made, and approve it\n{}   {} approve {profile}\n",
        patch(profile, &json!({"action": "DryRun"}), width),
        program::name()
    )
}

fn keep(config: &ConfigDrift, width: usize) -> String {
    let of_fields = config.objects.iter().flat_map(|object| &object.fields).filter_map(|field| field.option.as_ref());
    let options: Vec<&KeepingOption> =
        config.objects.iter().filter_map(|object| object.option.as_ref()).chain(of_fields).collect();
    let mut text = String::new();
    if !options.is_empty() {
        let mut spec = json!({});
        for option in &options {
            let path = advisor::fields::Path::dotted(option.path.trim_start_matches("spec."));
            path.set(&mut spec, option.value.clone());
        }
        let names: Vec<&str> = options.iter().map(|option| option.path.as_str()).collect();
        let title = "To keep it, options of the profile want what is there";
        text += &section(title, names.into_iter().map(str::to_owned), width);
        text += &patch(&config.profile, &spec, width);
    }
    text + &format!(
        "\n{BOLD}To leave everything as it is{BOLD:#}, without a plan and without watching\n{}",
        patch(&config.profile, &json!({"action": "Ignore"}), width)
    )
}

fn patch(profile: &str, spec: &Value, width: usize) -> String {
    command(&format!("kubectl patch vpcfg {profile} --type=merge -p '{}'", json!({"spec": spec})), 3, width)
}
