//! The plan for people. Colors repeat what a sign or a word says already; anstream leaves them out where they do not belong.

use advisor::{Plan, PlannedItem, Verb};
use anstyle::{AnsiColor, Style};
use api::virt_platform_config::{ImpactDetail, PoolImpact, Severity};

pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
const BOLD: Style = Style::new().bold();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();

pub(crate) fn render(plan: &Plan) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", summary(plan));
    for (position, planned) in plan.items.iter().enumerate() {
        text += &format!("\n{BOLD}{}. {}{BOLD:#}\n", position + 1, headline(planned));
        for (label, value) in facts(planned) {
            text += &format!("   {label:<11} {value}\n");
        }
        if planned.verb != Verb::Unchanged && planned.verb != Verb::Refused {
            text.push('\n');
            text += &planned.readable_diff.lines().map(colored).collect::<String>();
        }
    }
    if !plan.inputs.is_empty() {
        text += &format!("\n{BOLD}Derived from{BOLD:#}\n");
        for input in &plan.inputs {
            let value = input.value.as_deref().unwrap_or("not set");
            text += &format!("   {} {} = {value}\n", input.source, input.path);
        }
    }
    if !plan.risks.is_empty() {
        text += &format!("\n{BOLD}Risks{BOLD:#}\n");
        text += &plan.risks.iter().map(|risk| format!("   {}: {}\n", risk.name, risk.message)).collect::<String>();
    }
    if !plan.notes.is_empty() {
        text += &format!("\n{BOLD}Notes{BOLD:#}\n");
        text += &plan.notes.iter().map(|note| format!("   {note}\n")).collect::<String>();
    }
    text += &format!("\nPlan digest {}\nNothing was written.\n", plan.digest);
    text
}

/// `Plan for load-aware-rebalancing: 2 of 2 items change, impact High, up to 12 nodes reboot`
fn summary(plan: &Plan) -> String {
    let total = plan.items.len();
    let refused = plan.refusals().count();
    let changed = plan.items.iter().filter(|planned| !matches!(planned.verb, Verb::Unchanged | Verb::Refused)).count();
    let mut text = match (changed, refused) {
        (0, 0) => format!("Plan for {}: no changes", plan.profile),
        _ => format!("Plan for {}: {changed} of {total} items change, impact {}", plan.profile, plan.severity),
    };
    text += &reboots(plan.items.iter().filter_map(|planned| planned.item.impact_detail.as_ref()));
    if refused > 0 {
        text += &format!(", {refused} refused");
    }
    text
}

/// `, up to 12 nodes reboot`: nodes of all pools that some item reboots, each pool counted once.
fn reboots<'a>(details: impl Iterator<Item = &'a ImpactDetail>) -> String {
    let rebooting: Vec<&ImpactDetail> = details.filter(|detail| detail.reboot).collect();
    let mut pools: Vec<&PoolImpact> = rebooting.iter().flat_map(|detail| &detail.pools).collect();
    pools.sort_by_key(|pool| &pool.name);
    pools.dedup_by_key(|pool| &pool.name);
    let known: i32 = pools.iter().filter_map(|pool| pool.nodes).sum();
    let unknown = pools.is_empty() || pools.iter().any(|pool| pool.nodes.is_none());
    match (rebooting.is_empty(), unknown, known) {
        (true, ..) => String::new(),
        (false, false, known) => format!(", up to {known} nodes reboot"),
        (false, true, 0) => ", an unknown number of nodes reboots".to_owned(),
        (false, true, known) => format!(", {known} nodes and an unknown number of others reboot"),
    }
}

fn headline(planned: &PlannedItem) -> String {
    let target = &planned.item.target_ref;
    let namespace = target.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
    let object = format!("{} {namespace}{}", target.kind, target.name);
    match planned.verb {
        Verb::Unchanged => format!("{}: {object} unchanged", planned.item.name),
        Verb::Refused => format!("{}: {object} cannot be changed", planned.item.name),
        verb => format!("{}: {object} would be {}", planned.item.name, verb.as_str()),
    }
}

fn facts(planned: &PlannedItem) -> Vec<(&'static str, String)> {
    let item = &planned.item;
    let mut facts = vec![("what", item.message.clone().unwrap_or_default()), ("why", planned.why.to_owned())];
    let severity = item.impact_severity.unwrap_or(Severity::Low);
    facts.push(("impact", format!("{severity}{}", item.impact_detail.as_ref().map_or_else(String::new, nodes))));
    for take_over in &item.takes_over {
        facts.push(("takes over", format!("{} from {}", take_over.fields.join(", "), take_over.manager)));
    }
    if !item.removes.is_empty() {
        facts.push((if planned.restores { "takes out" } else { "keeps out" }, item.removes.join(", ")));
    }
    if !item.changed_since.is_empty() {
        let fields = item.changed_since.join(", ");
        facts
            .push(("changed", format!("{fields} by somebody else since. An approval has to accept this item by name")));
    }
    facts
}

/// `: reboots pool worker (10 nodes), pool infra (2 nodes, paused: waits until it is resumed)`
fn nodes(detail: &ImpactDetail) -> String {
    let pool = |pool: &PoolImpact| {
        let nodes = match pool.nodes {
            Some(1) => "1 node".to_owned(),
            Some(count) => format!("{count} nodes"),
            None => "number of nodes unknown".to_owned(),
        };
        let paused = if pool.paused { ", paused: waits until it is resumed" } else { "" };
        format!("pool {} ({nodes}{paused})", pool.name)
    };
    let pools: Vec<_> = detail.pools.iter().map(pool).collect();
    match (detail.reboot, pools.is_empty()) {
        (true, false) => format!(": reboots {}", pools.join(", ")),
        (true, true) => ": reboots nodes; which ones is not known, because there are no MachineConfigPools".to_owned(),
        (false, false) => format!(": no reboot; reaches {}", pools.join(", ")),
        (false, true) => ": no reboot".to_owned(),
    }
}

fn colored(line: &str) -> String {
    let style = match line {
        line if line.starts_with("+++") || line.starts_with("---") => BOLD,
        line if line.starts_with("@@") => HUNK,
        line if line.starts_with('+') => ADDED,
        line if line.starts_with('-') => REMOVED,
        _ => return format!("   {line}\n"),
    };
    format!("   {style}{line}{style:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W16 (hidden reboots): whatever the severity.
    #[test]
    fn the_summary_never_hides_a_reboot() {
        let pool = |name: &str, nodes| PoolImpact { name: name.into(), nodes, ..PoolImpact::default() };
        let detail = |reboot, pools: &[&PoolImpact]| ImpactDetail {
            reboot,
            pools: pools.iter().map(|&pool| pool.clone()).collect(),
        };
        let (worker, infra, unknown) = (pool("worker", Some(10)), pool("infra", Some(2)), pool("gpu", None));
        let cases = [
            ("nothing reaches nodes", vec![], ""),
            ("files that spare the reboot", vec![detail(false, &[&worker])], ""),
            ("two pools", vec![detail(true, &[&worker, &infra])], ", up to 12 nodes reboot"),
            (
                "two items, and the pool they share counts once",
                vec![detail(true, &[&worker]), detail(true, &[&infra, &worker])],
                ", up to 12 nodes reboot",
            ),
            (
                "a pool that does not tell",
                vec![detail(true, &[&worker, &unknown])],
                ", 10 nodes and an unknown number of others reboot",
            ),
            ("no pool that tells", vec![detail(true, &[&unknown])], ", an unknown number of nodes reboots"),
            ("no pools known at all", vec![detail(true, &[])], ", an unknown number of nodes reboots"),
        ];
        for (case, details, expected) in cases {
            assert_eq!(reboots(details.iter()), expected, "{case}");
        }
    }
}
