//! The plan for people. Colors repeat what a sign or a word says already; anstream leaves them out where they do not belong.

use advisor::{Verb, approving::RENEW, kind::KUBE_DESCHEDULER};
use anstyle::{AnsiColor, Style};
use api::virt_platform_config::{ImpactDetail, ItemState, Phase, PoolImpact, Severity, TargetRef};
use terminal::table::columns;

use super::{
    diff_text::{self, ADDED, REMOVED},
    forecast,
    view::{ItemView, Origin, PlanView},
};
use crate::{
    program,
    prose::{BOLD, INDENT, command, counted, hanging, outdented, painted, section},
};

const CHANGED: Style = AnsiColor::Yellow.on_default();
const REBOOT: Style = AnsiColor::Red.on_default().bold();

pub(crate) fn render(plan: &PlanView, width: usize) -> String {
    body(plan, width) + &next_step(plan, width)
}

/// All of it but what to do next.
pub(crate) fn body(plan: &PlanView, width: usize) -> String {
    let mut text = outdented(&format!("{BOLD}{}{BOLD:#}", summary(plan)), width);
    text += &standing(plan, width);
    text += &legend(plan);
    for (position, item) in plan.items.iter().enumerate() {
        text += &of_item(plan, position + 1, item, width);
    }
    let input = |input: &api::virt_platform_config::PlanInput| {
        format!("{} {} = {}", input.source, input.path, input.value.as_deref().unwrap_or("not set"))
    };
    text += &section("Derived from", plan.inputs.iter().map(input), width);
    text += &section("Risks", plan.risks.iter().map(|risk| format!("{}: {}", risk.name, risk.message)), width);
    text += &section("Notes", plan.notes.iter().cloned(), width);
    text += &plan.forecast.as_ref().map(|shown| forecast::render(shown, plan, width)).unwrap_or_default();
    text + &closing(plan)
}

/// `Plan for load-aware-rebalancing: 2 of 2 items change, impact High, up to 12 nodes reboot`
fn summary(plan: &PlanView) -> String {
    let total = plan.items.len();
    let refused = count(plan, Verb::Refused);
    let changed = plan.items.iter().filter(|item| item.verb.is_change()).count();
    let severity = plan.impact_severity.unwrap_or(Severity::Low);
    let (word, profile) = (if plan.origin == Origin::Record { "changed" } else { "change" }, &plan.profile);
    let mut text = match (changed, refused) {
        (0, 0) => format!("Plan for {profile}: no changes"),
        _ => format!("Plan for {profile}: {changed} of {total} items {word}, impact {severity}"),
    };
    if let Some(reboots) = reboots(plan.items.iter().filter_map(|item| item.item.impact_detail.as_ref())) {
        text += &format!(", {reboots}");
    }
    if refused > 0 {
        text += &format!(", {refused} refused");
    }
    text
}

fn count(plan: &PlanView, verb: Verb) -> usize {
    plan.items.iter().filter(|item| item.verb == verb).count()
}

/// `up to 12 nodes reboot`: nodes of all pools that some item reboots, each pool counted once.
fn reboots<'a>(details: impl Iterator<Item = &'a ImpactDetail>) -> Option<String> {
    let rebooting: Vec<&ImpactDetail> = details.filter(|detail| detail.reboot).collect();
    let mut pools: Vec<&PoolImpact> = rebooting.iter().flat_map(|detail| &detail.pools).collect();
    pools.sort_by_key(|pool| &pool.name);
    pools.dedup_by_key(|pool| &pool.name);
    let known: i32 = pools.iter().filter_map(|pool| pool.nodes).sum();
    let unknown = pools.is_empty() || pools.iter().any(|pool| pool.nodes.is_none());
    match (rebooting.is_empty(), unknown, known) {
        (true, ..) => None,
        (false, false, known) => Some(format!("up to {known} nodes reboot")),
        (false, true, 0) => Some("an unknown number of nodes reboots".to_owned()),
        (false, true, known) => Some(format!("{known} nodes and an unknown number of others reboot")),
    }
}

/// Where a stored plan stands, and for whom it waits.
fn standing(plan: &PlanView, width: usize) -> String {
    let Some(phase) = plan.phase else { return String::new() };
    let waits = plan.waits_for.as_ref().map_or_else(String::new, |waits| format!(", waits for {waits}"));
    let by = plan.operator_version.as_ref().map_or_else(String::new, |version| format!(", made by operator {version}"));
    hanging("", &format!("{phase}{by}{waits}"), 0, width)
}

fn sign(verb: Verb) -> (char, Style, &'static str) {
    match verb {
        Verb::Created => ('+', ADDED, "create"),
        Verb::Configured => ('~', CHANGED, "change"),
        Verb::Deleted => ('-', REMOVED, "delete"),
        Verb::Unchanged => (' ', Style::new(), ""),
        Verb::Refused => ('x', REBOOT, "cannot be changed"),
    }
}

/// The signs that occur.
fn legend(plan: &PlanView) -> String {
    let verbs = [Verb::Created, Verb::Configured, Verb::Deleted, Verb::Refused];
    let verbs = verbs.into_iter().filter(|verb| count(plan, *verb) > 0).map(sign);
    let reboot = plan.items.iter().any(ItemView::reboots).then_some(('!', REBOOT, "reboots nodes"));
    let signs: Vec<String> =
        verbs.chain(reboot).map(|(sign, style, word)| format!("{style}{sign}{style:#} {word}")).collect();
    if signs.is_empty() { String::new() } else { format!("\n   {}\n", signs.join("   ")) }
}

fn of_item(plan: &PlanView, number: usize, item: &ItemView, width: usize) -> String {
    let (sign, style, _) = sign(item.verb);
    let reboot = if item.reboots() { format!("{REBOOT}!{REBOOT:#}") } else { " ".to_owned() };
    let headline = format!("{number}. {}: {}", item.item.name, sentence(plan, item));
    let signs = format!("{reboot}{style}{sign}{style:#}");
    let mut text = format!("\n{}", painted(&signs, &headline, BOLD, 3, width));
    for (label, value) in facts(item) {
        text += &hanging(&format!("   {label}"), &value, 15, width);
    }
    if item.verb.is_change() {
        text.push('\n');
        text += &diff_text::colored(&item.readable_diff);
    }
    text
}

/// `MachineConfig 99-worker-psi-karg will be created`
fn sentence(plan: &PlanView, item: &ItemView) -> String {
    let (object, verb) = (object(&item.item.target_ref), item.verb.as_str());
    match (plan.origin, item.verb, item.item.state) {
        (Origin::Record, Verb::Unchanged, _) => format!("{object} was as it should be"),
        (Origin::Record, _, state) => format!("{object} was to be {verb}: {state}"),
        (_, Verb::Refused, _) => format!("{object} cannot be changed"),
        (Origin::Draft, Verb::Unchanged, _) | (_, Verb::Unchanged, ItemState::Pending) => format!("{object} unchanged"),
        (Origin::Draft, ..) => format!("{object} would be {verb}"),
        (Origin::Stored, _, ItemState::Pending) => format!("{object} will be {verb}"),
        (Origin::Stored, _, ItemState::InProgress) => format!("{object} is being applied"),
        (Origin::Stored, Verb::Unchanged, ItemState::Completed) => format!("{object} is applied"),
        (Origin::Stored, _, state) => format!("{object} would be {verb}: {state}"),
    }
}

pub(crate) fn object(target: &TargetRef) -> String {
    let namespace = target.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
    format!("{} {namespace}{}", target.kind, target.name)
}

fn facts(view: &ItemView) -> Vec<(&'static str, String)> {
    let item = &view.item;
    let mut facts = Vec::new();
    facts.extend(item.message.clone().map(|message| ("what", message)));
    facts.extend(view.why.map(|why| ("why", why.to_owned())));
    let severity = item.impact_severity.unwrap_or(Severity::Low);
    facts.push(("impact", format!("{severity}{}", item.impact_detail.as_ref().map_or_else(String::new, nodes))));
    for take_over in &item.takes_over {
        facts.push(("takes over", format!("{} from {}", take_over.fields.join(", "), take_over.manager)));
    }
    if !item.removes.is_empty() {
        facts.push((if view.restores { "takes out" } else { "keeps out" }, item.removes.join(", ")));
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
        let nodes = match pool.nodes.map(usize::try_from) {
            Some(Ok(count)) => counted(count, "node"),
            _ => "number of nodes unknown".to_owned(),
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

/// The numbers and the digest.
fn closing(plan: &PlanView) -> String {
    let [create, change, delete] =
        [Verb::Created, Verb::Configured, Verb::Deleted].map(|verb| count(plan, verb).to_string());
    let reboots = reboots(plan.items.iter().filter_map(|item| item.item.impact_detail.as_ref()));
    let reboots = reboots.unwrap_or_else(|| "no node reboots".to_owned());
    let mut text = match plan.origin {
        Origin::Record => "\n".to_owned(),
        _ => format!("\nPlan: {create} to create, {change} to change, {delete} to delete; {reboots}.\n"),
    };
    if let Some(digest) = &plan.plan_digest {
        text += &format!("Plan digest {digest}\n");
    }
    text
}

fn next_step(plan: &PlanView, width: usize) -> String {
    match (plan.origin, plan.phase) {
        (Origin::Draft, _) => "Nothing was written.\n".to_owned(),
        (Origin::Stored, Some(Phase::ReviewRequired)) if plan.is_out_of_date => {
            format!("It is out of date and will not be applied: {RENEW}\n")
        }
        (Origin::Stored, Some(Phase::ReviewRequired)) => {
            let shown = plan.forecast.as_ref().filter(|forecast| forecast.is_of_this_plan);
            let (before, with) = match shown {
                Some(forecast) => (String::new(), format!(" --forecast {}", forecast.file)),
                None => (how_to_forecast(plan, width), String::new()),
            };
            let approve = format!("{} approve {}{with}", program::name(), plan.profile);
            before + &introduced("Approve it with:", &approve, width)
        }
        _ => String::new(),
    }
}

/// How to see what the plan would do to the load of nodes. Only a plan that configures the descheduler does anything to it.
fn how_to_forecast(plan: &PlanView, width: usize) -> String {
    let balances = |item: &ItemView| item.item.target_ref.kind == KUBE_DESCHEDULER.kind && !item.restores;
    match cfg!(feature = "forecast") && plan.items.iter().any(balances) {
        true => {
            let forecast = format!("{} forecast {} --scenario FILE", program::name(), plan.profile);
            introduced("Forecast it with:", &forecast, width)
        }
        false => String::new(),
    }
}

/// A command behind what it is for, or below it where the line is too short.
fn introduced(purpose: &str, text: &str, width: usize) -> String {
    let line = format!("{purpose} {text}");
    if columns(&line) <= width { format!("{line}\n") } else { format!("{purpose}\n{}", command(text, INDENT, width)) }
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
            ("nothing reaches nodes", vec![], None),
            ("files that spare the reboot", vec![detail(false, &[&worker])], None),
            ("two pools", vec![detail(true, &[&worker, &infra])], Some("up to 12 nodes reboot")),
            (
                "two items, and the pool they share counts once",
                vec![detail(true, &[&worker]), detail(true, &[&infra, &worker])],
                Some("up to 12 nodes reboot"),
            ),
            (
                "a pool that does not tell",
                vec![detail(true, &[&worker, &unknown])],
                Some("10 nodes and an unknown number of others reboot"),
            ),
            ("no pool that tells", vec![detail(true, &[&unknown])], Some("an unknown number of nodes reboots")),
            ("no pools known at all", vec![detail(true, &[])], Some("an unknown number of nodes reboots")),
        ];
        for (case, details, expected) in cases {
            assert_eq!(reboots(details.iter()).as_deref(), expected, "{case}");
        }
    }
}
