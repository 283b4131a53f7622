//! Installs and removes the definition of VirtPlatformConfig. Objects of people are not removed with it unless asked for.

use anyhow::bail;
use api::names::{ADVISOR_GROUP, AUTO_CREATED_ANNOTATION};
use serde_json::Value;

use crate::{kubectl::Kubectl, managed};

const FOLDER: &str = "config/crd";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Delete configurations that people made along with their definition
    #[arg(long)]
    force: bool,
}

fn definition() -> String {
    format!("virtplatformconfigs.{ADVISOR_GROUP}")
}

fn records() -> String {
    format!("virtplatformplanrecords.{ADVISOR_GROUP}")
}

/// What is there of our kinds. Null for a kind that is not installed.
pub(crate) struct Listed {
    pub(crate) configurations: Value,
    pub(crate) records: Value,
}

pub(crate) fn list(kubectl: &Kubectl) -> anyhow::Result<Listed> {
    let all = |definition: String| {
        if kubectl.read(&["get", "crd", &definition, "--ignore-not-found", "-o", "name"])?.is_empty() {
            return anyhow::Ok(Value::Null);
        }
        Ok(serde_json::from_str(&kubectl.read(&["get", &definition, "-o", "json"])?)?)
    };
    Ok(Listed { configurations: all(definition())?, records: all(records())? })
}

pub(crate) fn install() -> anyhow::Result<()> {
    install_with(&Kubectl::of_person()?)
}

/// Installs the definition and waits until the kind can be used.
pub(crate) fn install_with(kubectl: &Kubectl) -> anyhow::Result<()> {
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-k", FOLDER])?;
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", &definition()])
}

pub(crate) fn uninstall(args: &Args) -> anyhow::Result<()> {
    let kubectl = Kubectl::of_person()?;
    let listed = list(&kubectl)?;
    if listed.configurations.is_null() {
        println!("{} is not installed", definition());
        return Ok(());
    }
    let all = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    let of_people: Vec<Value> = all(&listed.configurations).into_iter().filter(is_of_people).collect();
    let records = all(&listed.records).len();
    if !of_people.is_empty() {
        eprintln!("These VirtPlatformConfigs go with their definition:");
        of_people.iter().for_each(|config| eprintln!("  {}", described(config)));
        eprintln!("What they applied stays in the cluster, unmanaged.");
    }
    if records > 0 {
        let lost = "who agreed to what, and what was there before";
        let they = match records {
            1 => "1 VirtPlatformPlanRecord goes with its definition".to_owned(),
            _ => format!("{records} VirtPlatformPlanRecords go with their definition"),
        };
        eprintln!("{they}: {lost}.");
        eprintln!("To keep them: kubectl get {} -o yaml > records.yaml", self::records());
    }
    managed::warn(&listed);
    let loses_something = !of_people.is_empty() || records > 0;
    if loses_something && !args.force {
        bail!("nothing was deleted: delete them first, or say `make uninstall FORCE=1`");
    }
    kubectl.run(&["delete", "--ignore-not-found", "-k", FOLDER])
}

/// Whether a person made or changed it: not a configuration that the operator created and that is still ignored.
fn is_of_people(config: &Value) -> bool {
    let is_offered = config["metadata"]["annotations"][AUTO_CREATED_ANNOTATION] == "true";
    !(is_offered && config["spec"]["action"] == "Ignore")
}

fn described(config: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let phase = text(&config["status"]["phase"]);
    format!("{:<24} action {:<8} phase {phase}", text(&config["metadata"]["name"]), text(&config["spec"]["action"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_offer_that_nobody_took_up_is_nobodys() {
        let config = |created: Option<&str>, action: &str| json!({"metadata": {"annotations": {AUTO_CREATED_ANNOTATION: created}}, "spec": {"action": action}});
        for (config, expected) in [
            (config(Some("true"), "Ignore"), false),
            (config(Some("true"), "DryRun"), true),
            (config(Some("true"), "Apply"), true),
            (config(None, "Ignore"), true),
            (json!({"metadata": {"name": "a"}, "spec": {"action": "Ignore"}}), true),
        ] {
            assert_eq!(is_of_people(&config), expected, "{config}");
        }
    }
}
