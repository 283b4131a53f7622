//! Pressure stall information: the kernel argument `psi=1` on worker nodes, by a MachineConfig.

use api::virt_platform_config::Risk;
use serde_json::{Value, json};

use super::profile::ABOUT;
use crate::{
    Access, Change, Draft, Effect, Facts, Intent, ObjectRef, Query,
    autopilot::Asset,
    field_manager, fields,
    intent::{Weight, risk},
    kernel_arguments, kind,
    machine_config::{of_workers, worker_labels},
    ownership::{Ownership, names, ownership},
    pools::{self, ROLE, no_machine_reached},
};

const NAME: &str = "99-worker-psi-karg";
pub(super) const ITEM: &str = "enable-psi-metrics";
const NAME_OF_PSI: &str = "psi";
const PSI: &str = "psi=1";
const MANAGED: &str = "spec.kernelArguments";
/// The most configs of a pool that are read.
const MOST_SOURCES: usize = 32;
const WHY_NOT: &str = "the options turn PSI metrics off";
const WHY: &str = "with pressure stall information the descheduler sees contention, and not just use";

fn target() -> ObjectRef {
    ObjectRef::cluster(&kind::MACHINE_CONFIG, NAME)
}

/// The names of rendered configs are only known from the pools.
pub(super) fn access() -> Vec<Access> {
    vec![
        Access::Create(target()),
        Access::Delete(target()),
        Access::List(&kind::MACHINE_CONFIG_POOL),
        Access::ReadAny(&kind::MACHINE_CONFIG),
    ]
}

pub(super) fn wants(enabled: bool, facts: &Facts) -> Vec<Query> {
    let mut queries = vec![Query::Object(target())];
    // Pools are also needed to follow a removal.
    if enabled || facts.version(&kind::MACHINE_CONFIG).is_some() {
        queries.push(pools::all());
    }
    if enabled {
        let reached = pools::reached(facts, &worker_labels());
        let configs: Vec<Query> =
            pools::rendered_configs(&reached).chain(pools::target_configs(&reached, NAME)).map(Query::Object).collect();
        for query in configs {
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
        for pool in reached.iter().filter(|pool| rendered(pool, facts).is_some_and(|config| !is_on(config))) {
            let more = later_sources(*pool).filter(|query| !queries.contains(query)).collect::<Vec<_>>();
            queries.extend(more);
        }
        let theirs = Asset::psi().wants(facts, &reached);
        queries.extend(theirs.filter(|query| !queries.contains(query)).into_iter().collect::<Vec<_>>());
    }
    queries
}

/// The configs of a pool that may override the argument: those with later names, and those of a custom pool, which are always merged
/// last.
fn later_sources<'a>(pool: pools::Pool<'a>) -> impl Iterator<Item = Query> + use<'a> {
    let is_custom = pool.name() != "worker";
    let sources = pool.sources().filter(move |name| *name > NAME || (is_custom && *name != NAME));
    sources.take(MOST_SOURCES).map(|name| Query::Optional(ObjectRef::cluster(&kind::MACHINE_CONFIG, name)))
}

fn rendered<'a>(pool: &pools::Pool<'_>, facts: &'a Facts) -> Option<&'a Value> {
    let name = pool.rendered()?;
    facts.object(&ObjectRef::cluster(&kind::MACHINE_CONFIG, name))
}

/// The config that is merged later in a pool and turns PSI off, with its argument.
fn overruled_by<'a>(pool: pools::Pool<'a>, facts: &'a Facts) -> Option<(&'a str, &'a str)> {
    let config = |name: &str| facts.optional(&ObjectRef::cluster(&kind::MACHINE_CONFIG, name));
    let role = |config: &Value| config.pointer("/metadata/labels").map_or(Value::Null, |labels| labels[ROLE].clone());
    let mut later: Vec<_> = pool
        .sources()
        .filter_map(|name| Some((name, config(name)?)))
        .map(|(name, config)| ((role(config) != "worker", name), config))
        .filter(|(place, _)| *place > (false, NAME))
        .collect();
    later.sort_by_key(|(place, _)| *place);
    let last = later.iter().rev().find_map(|((_, name), config)| {
        let is_psi = |argument: &&str| kernel_arguments::name(argument) == NAME_OF_PSI;
        Some((*name, *config, kernel_arguments::of(config).filter(is_psi).last()?))
    });
    last.filter(|(_, config, _)| !is_on(config)).map(|(name, _, argument)| (name, argument))
}

/// Whether the nodes of all pools with the config report pressure.
pub(super) fn effect(facts: &Facts) -> Effect {
    let reached = pools::reached(facts, &worker_labels());
    let off = reached
        .iter()
        .find(|pool| pool.is_rendered_from(NAME) && rendered(pool, facts).is_some_and(|config| !is_on(config)));
    let Some(pool) = off else { return Effect::Confirmed };
    let name = pool.name();
    Effect::Refused(match overruled_by(*pool, facts) {
        Some((config, argument)) => format!(
            "MachineConfigPool '{name}' runs without PSI metrics: MachineConfig '{config}' is merged after '{NAME}' and says \
             '{argument}'. Take that argument out of it"
        ),
        None => format!("MachineConfigPool '{name}' runs without PSI metrics although it has taken in '{NAME}'"),
    })
}

/// The risks of turning PSI on.
fn risks(facts: &Facts) -> Vec<Risk> {
    let reached = pools::reached(facts, &worker_labels());
    let overruled = reached.iter().filter_map(|pool| {
        let (config, argument) = overruled_by(*pool, facts)?;
        Some(risk(
            "PsiOverruled",
            format!(
                "MachineConfig '{config}' is merged after '{NAME}' in MachineConfigPool '{}' and says '{argument}': its nodes would \
                 reboot, and PSI metrics stay off. Take that argument out of it first",
                pool.name()
            ),
        ))
    });
    overruled.chain(no_machine_reached(NAME, facts, &reached)).collect()
}

pub(super) fn plan(enabled: bool, facts: &Facts) -> Draft {
    if enabled { turn_on(facts) } else { turn_off(facts) }
}

fn turn_on(facts: &Facts) -> Draft {
    let live = facts.object(&target());
    let is_worker = |live: &Value| live.pointer("/metadata/labels").is_some_and(|found| found[ROLE] == "worker");
    let is_set = live.is_some_and(|live| is_worker(live) && is_on(live));
    let effective = effective_in(facts, is_set);
    if let (false, Some(pools)) = (is_set, &effective) {
        // A second argument would only reboot every node.
        let note =
            format!("PSI metrics already effective in {pools} through another MachineConfig: '{NAME}' is not needed");
        return Draft::note(note);
    }
    let message = match effective {
        Some(pools) => format!("PSI metrics already effective in {pools}"),
        None => format!("MachineConfig '{NAME}' will be configured to enable PSI metrics"),
    };
    Draft { intents: vec![intent(apply(with_psi(live)), message, WHY, facts)], risks: risks(facts), ..Draft::default() }
}

/// Removes the whole object if it has nothing else, or only the argument. The list is one leaf that the operator owns since it added
/// to it, so only the arguments show that others have set some of them.
fn turn_off(facts: &Facts) -> Draft {
    let Some(live) = facts.object(&target()) else { return Draft::default() };
    let has_ours = kernel_arguments::of(live).any(|argument| argument == PSI);
    let others = kernel_arguments::without(live, |argument| argument == PSI);
    let us = field_manager::of_profile(&ABOUT, Some(live), &[MANAGED]);
    let (change, message) = match ownership(live, &us) {
        Ownership::Foreign { of: owners } => return left_alone(&owners),
        Ownership::Shared { with: owners } if !owns_arguments(live, &us) => return left_alone(&owners),
        _ if !has_ours => return Draft::default(),
        Ownership::Ours if others.is_empty() => {
            (Change::Delete, format!("MachineConfig '{NAME}' will be deleted to disable PSI metrics"))
        }
        Ownership::Ours | Ownership::Shared { .. } => {
            let change = match others.is_empty() {
                true => Change::Apply { fields: of_workers(NAME, None), remove: vec![fields::Path::dotted(MANAGED)] },
                false => apply(others),
            };
            (change, format!("'{PSI}' will be taken out of MachineConfig '{NAME}' to disable PSI metrics"))
        }
    };
    Draft { intents: vec![intent(change, message, WHY_NOT, facts)], ..Draft::default() }
}

fn left_alone(owners: &[String]) -> Draft {
    let owners = names(owners);
    Draft::note(format!("MachineConfig '{NAME}' belongs to {owners} and is left alone: PSI metrics stay as they are"))
}

fn intent(change: Change, message: String, why: &'static str, facts: &Facts) -> Intent {
    Intent {
        name: ITEM.into(),
        target: target(),
        version: facts.version(&kind::MACHINE_CONFIG).unwrap_or("v1"),
        change,
        managed: vec![MANAGED.into()],
        message,
        why,
        inputs: Vec::new(),
        weight: Weight::Nodes,
        restores: None,
    }
}

fn apply(arguments: Vec<String>) -> Change {
    Change::Apply { fields: of_workers(NAME, Some(json!({"kernelArguments": arguments}))), remove: Vec::new() }
}

/// Whether the kernel would turn PSI on.
fn is_on(config: &Value) -> bool {
    kernel_arguments::value(config, NAME_OF_PSI).is_some_and(kernel_arguments::is_true)
}

/// The list is one leaf and is set as a whole. Arguments of others are kept in their places.
fn with_psi(live: Option<&Value>) -> Vec<String> {
    let Some(live) = live else { return vec![PSI.to_owned()] };
    if is_on(live) {
        return kernel_arguments::entries(live).map(str::to_owned).collect();
    }
    let others = kernel_arguments::without(live, |argument| kernel_arguments::name(argument) == NAME_OF_PSI);
    others.into_iter().chain([PSI.to_owned()]).collect()
}

fn owns_arguments(live: &Value, us: &str) -> bool {
    fields::applied_by(live, us).iter().any(|leaf| leaf.is_within(&fields::Path::dotted(MANAGED)))
}

/// The pools in which PSI is on already, if it is on in all pools that the config would reach. A pool that runs the operator's own
/// config, which is no longer set, does not count.
fn effective_in(facts: &Facts, is_set: bool) -> Option<String> {
    let reached = pools::reached(facts, &worker_labels());
    let is_effective =
        |pool: &pools::Pool<'_>| rendered(pool, facts).is_some_and(is_on) && (is_set || !pool.is_rendered_from(NAME));
    let names: Vec<_> = reached.iter().map(|pool| format!("'{}'", pool.name())).collect();
    let kind = if names.len() == 1 { "MachineConfigPool" } else { "MachineConfigPools" };
    (!reached.is_empty() && reached.iter().all(is_effective)).then(|| format!("{kind} {}", names.join(", ")))
}
