//! What the console of OpenShift shows: a quick start, samples beside the editor, and where to get the command line.

use serde_json::{Value, json};

use super::{PACKAGE, SAMPLES, sample};
use crate::{
    image::arch::Arch,
    packages::{Source, VERSION, workload::LABEL},
};

const API_VERSION: &str = "console.openshift.io/v1";

pub(super) fn objects(source: &Source) -> anyhow::Result<Vec<Value>> {
    let samples: anyhow::Result<Vec<Value>> = SAMPLES.iter().map(|(file, title)| yaml_sample(file, title)).collect();
    Ok([vec![quick_start(), cli_download(source)], samples?].concat())
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name, "labels": {LABEL.0: LABEL.1}});
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
}

fn yaml_sample(file: &str, title: &str) -> anyhow::Result<Value> {
    let (text, sample) = sample(file)?;
    let profile = sample["metadata"]["name"].as_str().unwrap_or_default();
    let spec = json!({
        "targetResource": {"apiVersion": sample["apiVersion"], "kind": sample["kind"]},
        "title": title,
        "description": format!("A plan of the profile {profile}. If there is a configuration of that name already, copy the spec into it. Nothing is changed \
             until you approve the plan."),
        "yaml": text,
    });
    Ok(object("ConsoleYAMLSample", &format!("{PACKAGE}-{profile}"), spec))
}

fn cli_download(source: &Source) -> Value {
    let link = |arch: &Arch| {
        let machine = match arch {
            Arch::Amd64 => "x86_64",
            Arch::Arm64 => "ARM 64",
        };
        let file = format!("virt-advisor-linux-{}.tar.gz", arch.name());
        json!({
            "href": format!("{}/releases/download/{VERSION}/{file}", source.project.repository),
            "text": format!("Download virt-advisor for Linux for {machine}"),
        })
    };
    let links: Vec<Value> = source.architectures.iter().map(link).collect();
    let spec = json!({
        "displayName": "virt-advisor - plugin of oc and kubectl",
        "description": "Shows plans with what they do to each virtual machine, approves them, and follows rollouts. As a plugin, its file \
                        is named kubectl-virt_advisor and is in a folder of your PATH.",
        "links": links,
    });
    object("ConsoleCLIDownload", PACKAGE, spec)
}

fn quick_start() -> Value {
    let task = |title: &str, description: &str, question: &str, help: &str, success: &str| {
        json!({
            "title": title,
            "description": description,
            "review": {"instructions": question, "failedTaskHelp": help},
            "summary": {"success": success, "failed": "Try the steps again."},
        })
    };
    let spec = json!({
        "displayName": "Review a configuration with virt-advisor",
        "durationMinutes": 10,
        "description": "Ask for a plan, read it, and approve it.",
        "introduction": "virt-advisor plans changes of the descheduler, of machine configuration and of HyperConverged. It changes nothing \
                         before you approve a plan.",
        "tasks": [
            task(
                "Ask for a plan",
                "1. Open **Administration → CustomResourceDefinitions** and choose **VirtPlatformConfig**.\n1. Under **Instances**, open \
                 **load-aware-rebalancing**.\n1. In its YAML, set `spec.action` to `DryRun` and save.",
                "Is the phase of the configuration `ReviewRequired`?",
                "The condition with status True says what is missing, for example an operator.",
                "There is a plan, and nothing was changed.",
            ),
            task(
                "Read the plan",
                "1. Read `status.items`: each has its diff, its impact, and the pools whose nodes reboot.\n1. To see what it does to each \
                 virtual machine: `oc virt-advisor impact load-aware-rebalancing`.",
                "Do you know which nodes reboot?",
                "`oc virt-advisor plan load-aware-rebalancing` shows the plan page by page.",
                "You know what would change.",
            ),
            task(
                "Approve it",
                "1. `oc virt-advisor approve load-aware-rebalancing` shows the plan again and approves exactly what it has shown.\n1. Or \
                 copy `status.planDigest` to `spec.approval.planDigest`, set `spec.action` to `Apply`, and save.",
                "Is the phase `InProgress` or `Completed`?",
                "If the plan changed meanwhile, its digest is another one: read it again.",
                "The plan is applied. If somebody changes what was applied, the phase is `Drifted`.",
            ),
        ],
        "conclusion": "To plan the way back to the original state: `oc virt-advisor undo load-aware-rebalancing --to original`. Then approve \
                       that plan.",
    });
    object("ConsoleQuickStart", PACKAGE, spec)
}
