//! The settings of a stored plan, as the simulator takes them.

use advisor::{
    drift,
    kind::KUBE_DESCHEDULER,
    kube_descheduler::{LONG_LIFECYCLE, PolicyLimits, Release},
};
use api::virt_platform_config::{Item, VirtPlatformConfigStatus};
use balance::{Algorithm, Mode};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use sim::{
    forecast::PlannedSettings,
    scenario::{Limits, MigrationAware},
    units::Span,
};

const CLUSTER: &str = "parallelMigrationsPerCluster";
const PER_NODE: &str = "parallelOutboundMigrationsPerNode";

/// What the plan sets, and what had to be assumed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planned {
    pub(super) settings: PlannedSettings,
    pub(super) assumed: Vec<String>,
}

/// The item that configures the descheduler.
pub(super) fn item(status: &VirtPlatformConfigStatus) -> Option<&Item> {
    let configures = |item: &&Item| item.target_ref.kind == KUBE_DESCHEDULER.kind && item.desired_state.is_some();
    status.items.iter().find(configures)
}

/// The settings of the plan in a status. `live` is the KubeDescheduler as it is: what others have set there stays. `release` is that
/// of the descheduler's operator, if it could be read.
pub(super) fn planned(
    status: &VirtPlatformConfigStatus,
    live: Option<&Value>,
    release: Option<Release>,
) -> Result<Planned, String> {
    let object = item(status).map(|item| {
        let desired = json!(item.desired_state);
        let mut object = live.map_or_else(|| desired.clone(), |live| drift::overlaid(live, &desired));
        drift::remove(item, &mut object);
        object
    });
    let Some(spec) = object.as_ref().and_then(|object| object.get("spec")).and_then(Value::as_object) else {
        return Err("its plan does not configure the descheduler, so it moves no virtual machine by load".to_owned());
    };
    let mut assumed = Vec::new();
    let profiles: Vec<&str> =
        spec.get("profiles").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if profiles.contains(&LONG_LIFECYCLE) {
        return Err(
            "the descheduler of its plan looks at requests and not at load, which a forecast does not model".to_owned()
        );
    }
    if let [others @ .., _] = &profiles[..]
        && !others.is_empty()
    {
        assumed.push(format!("The profiles {} of the descheduler evict nothing.", others.join(", ")));
    }
    if release.is_none() {
        assumed.push("The descheduler has the newest release, because its definition could not be read.".to_owned());
    }
    let release = release.unwrap_or(Release::NEWEST);
    let (limits, one_per_node) = limits(spec, release, &mut assumed);
    let interval = number(spec.get("deschedulingIntervalSeconds"));
    if interval.is_none() {
        assumed.push("The descheduler runs every minute: the plan sets no interval.".to_owned());
    }
    let settings = PlannedSettings {
        algorithm: algorithm(spec, release, &mut assumed),
        mode: mode(spec, &mut assumed)?,
        limits,
        one_per_node,
        interval: Span(interval.unwrap_or(60).into()),
        evicts: spec.get("mode").and_then(Value::as_str) != Some("Predictive"),
        soft_taints: release.has_soft_tainter(customization(spec, "devEnableSoftTainter") == Some(&Value::Bool(true))),
        migration_aware: migration_aware(spec, release)?,
        migrations: migrations(status, CLUSTER, 5, &mut assumed),
        migrations_per_node: migrations(status, PER_NODE, 2, &mut assumed),
    };
    Ok(Planned { settings, assumed })
}

fn number(value: Option<&Value>) -> Option<u32> {
    value?.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
}

fn customization<'a>(spec: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    spec.get("profileCustomizations")?.get(name)
}

/// The limits as the operator of this release sets them, and whether one of each node is evicted at a time. Without a limit per node,
/// that of all nodes holds for each.
fn limits(spec: &Map<String, Value>, release: Release, assumed: &mut Vec<String>) -> (Limits, bool) {
    let given = |name: &str| spec.get("evictionLimits").and_then(|limits| limits.get(name)).and_then(Value::as_i64);
    let PolicyLimits { total, node, plugin } = release.eviction_limits(given("total"), given("node"), true);
    let bounded = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    let most = total.map_or(u32::MAX, bounded);
    let limits = Limits { total: most, per_node: node.map_or(most, bounded) };
    match (given("total"), total) {
        (None, None) => {
            assumed
                .push("The descheduler may evict any number of virtual machines: the plan sets no limit.".to_owned());
        }
        (None, Some(total)) => {
            assumed.push(format!(
                "The descheduler evicts at most {total} at a time, its default: the plan sets no limit."
            ));
        }
        (Some(_), _) => {}
    }
    if let (None, Some(node)) = (given("node"), node) {
        assumed.push(format!(
            "It evicts at most {node} of a node at a time, its default: the plan sets no limit per node."
        ));
    }
    (limits, plugin.is_none())
}

/// What the plugin KubevirtMigrationAware does, where the release has it.
fn migration_aware(spec: &Map<String, Value>, release: Release) -> Result<Option<MigrationAware>, String> {
    if !release.is_migration_aware() {
        return Ok(None);
    }
    let set = |name: &str, span: &mut Span| {
        let Some(text) = customization(spec, name).and_then(Value::as_str) else { return Ok(()) };
        let wrong = |_| format!("{name} of its KubeDescheduler is no length of time: {text}");
        let time: SignedDuration = text.parse().map_err(wrong)?;
        // A time of 0 counts as not set.
        if time.as_secs() > 0 {
            *span = Span(time.as_secs().unsigned_abs());
        }
        Ok::<(), String>(())
    };
    let mut aware = MigrationAware::default();
    set("devMigrationCooldown", &mut aware.cool_down)?;
    set("devMaxMigrationCooldown", &mut aware.max_cool_down)?;
    set("devMigrationHistoryWindow", &mut aware.history_window)?;
    Ok(Some(aware))
}

fn mode(spec: &Map<String, Value>, assumed: &mut Vec<String>) -> Result<Mode, String> {
    match customization(spec, "devDeviationThresholds").and_then(Value::as_str) {
        None => {
            assumed.push("The thresholds are AsymmetricLow: the plan sets none.".to_owned());
            Ok(Mode::AsymmetricLow)
        }
        Some(named) => named.parse::<Mode>().map_err(|error| error.to_string()),
    }
}

/// What the descheduler measures. Older releases take CPU use alone, and pressure where all nodes are busy.
fn algorithm(spec: &Map<String, Value>, release: Release, assumed: &mut Vec<String>) -> Algorithm {
    let is_combined = match customization(spec, "devActualUtilizationProfile").and_then(Value::as_str) {
        Some("PrometheusCPUCombined") => true,
        Some(other) => {
            assumed.push(format!("The metric {other} is that of the newest release."));
            false
        }
        None => release < Release::V4_21,
    };
    if !is_combined {
        return Algorithm::amplified(3.0);
    }
    assumed.push(
        "Nodes are compared by CPU use. The metric of this release takes pressure instead where nodes use more than 80 % on average."
            .to_owned(),
    );
    Algorithm::CpuFocused(balance::Focus { usage: 1.0, pressure: 0.0 })
}

/// A limit of migrations that the plan derives its own limits from.
fn migrations(status: &VirtPlatformConfigStatus, setting: &str, default: u32, assumed: &mut Vec<String>) -> u32 {
    let input = status.inputs.iter().find(|input| input.path.ends_with(setting));
    let value =
        input.and_then(|input| input.value.as_deref()).and_then(|value| value.parse().ok()).filter(|value| *value > 0);
    if input.is_none() {
        assumed.push(format!(
            "HyperConverged has {setting}: {default}, its default: the plan does not read it, because spec.options fixes the limit."
        ));
    }
    value.unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    fn status() -> VirtPlatformConfigStatus {
        golden::configs().remove(2).status.unwrap()
    }

    fn with(change: impl Fn(&mut Map<String, Value>)) -> VirtPlatformConfigStatus {
        let mut status = status();
        let item = status.items.iter_mut().find(|item| item.target_ref.kind == "KubeDescheduler").unwrap();
        change(item.desired_state.as_mut().unwrap()["spec"].as_object_mut().unwrap());
        status
    }

    #[test]
    fn the_settings_are_those_of_the_plan() {
        let Planned { settings, assumed } = planned(&status(), None, Some(Release::V5_1)).unwrap();
        assert_eq!((settings.mode, settings.interval, settings.evicts), (Mode::AsymmetricLow, Span(60), true));
        assert_eq!(settings.algorithm, Algorithm::amplified(3.0));
        assert_eq!(settings.migration_aware, Some(MigrationAware::default()));
        let spec = serde_json::to_value(&status().items).unwrap();
        let limits = &spec[1]["desiredState"]["spec"]["evictionLimits"];
        assert_eq!(json!([settings.limits.total, settings.limits.per_node]), json!([limits["total"], limits["node"]]));
        assert_eq!(assumed, [] as [&str; 0], "everything is told");
        let changed = with(|spec| {
            spec.insert("mode".into(), "Predictive".into());
            spec.insert("deschedulingIntervalSeconds".into(), 300.into());
            spec.insert("evictionLimits".into(), json!({"total": 7}));
            spec.insert("profileCustomizations".into(), json!({"devDeviationThresholds": "High"}));
        });
        let settings = planned(&changed, None, Some(Release::V5_1)).unwrap().settings;
        assert_eq!((settings.mode, settings.interval, settings.evicts), (Mode::High, Span(300), false));
        assert_eq!(settings.limits, Limits { total: 7, per_node: 2 });
    }

    #[test]
    fn limits_and_soft_taints_are_those_of_the_descheduler_s_release() {
        let unlimited = with(|spec| drop(spec.remove("evictionLimits")));
        // By release: the limits of a plan without any, and whether one of each node is evicted at a time.
        let table = [
            (Release::V4_18, Limits { total: u32::MAX, per_node: u32::MAX }, true, "any number"),
            (Release::V4_19, Limits { total: 5, per_node: 2 }, true, "at most 5 at a time"),
            (Release::V4_21, Limits { total: 5, per_node: 2 }, true, "at most 2 of a node"),
            (Release::V5_1, Limits { total: 5, per_node: 2 }, false, "at most 2 of a node"),
        ];
        for (release, limits, one_per_node, said) in table {
            let Planned { settings, assumed } = planned(&unlimited, None, Some(release)).unwrap();
            assert_eq!((settings.limits, settings.one_per_node), (limits, one_per_node), "{release}");
            assert!(assumed.iter().any(|text| text.contains(said)), "{release}: {assumed:?}");
        }
        let untainted =
            with(|spec| drop(spec["profileCustomizations"].as_object_mut().unwrap().remove("devEnableSoftTainter")));
        let taints = |status: &_, release| planned(status, None, Some(release)).unwrap().settings.soft_taints;
        assert!(taints(&status(), Release::V4_18) && !taints(&untainted, Release::V4_18));
        assert!(taints(&untainted, Release::V4_19));
    }

    /// The plan manages a part of the object. The rest stays, and so do its effects.
    #[test]
    fn what_others_have_set_in_the_descheduler_holds_unless_the_plan_sets_or_removes_it() {
        let live = |cool_down: &str| {
            json!({"spec": {"deschedulingIntervalSeconds": 900, "profileCustomizations": {
                "devMigrationCooldown": cool_down, "devMaxMigrationCooldown": "2h0m0s", "devMigrationHistoryWindow": "0s",
            }}})
        };
        let with =
            |live: &Value, release| planned(&status(), Some(live), Some(release)).map(|planned| planned.settings);
        let settings = with(&live("1h30m"), Release::V5_1).unwrap();
        assert_eq!(settings.interval, Span(60), "the plan sets it");
        let expected = MigrationAware { cool_down: Span(5400), max_cool_down: Span(7200), ..MigrationAware::default() };
        assert_eq!(settings.migration_aware, Some(expected));
        assert_eq!(with(&live("1h30m"), Release::V4_21).unwrap().migration_aware, None);
        assert!(with(&live("soon"), Release::V5_1).unwrap_err().contains("devMigrationCooldown"));
        let mut removed = status();
        let at = removed.items.iter().position(|item| item.target_ref.kind == "KubeDescheduler").unwrap();
        removed.items[at].removes = vec!["spec.profileCustomizations.devMigrationCooldown".into()];
        let settings = planned(&removed, Some(&live("1h30m")), Some(Release::V5_1)).unwrap().settings;
        assert_eq!(settings.migration_aware.unwrap().cool_down, MigrationAware::default().cool_down);
    }

    #[test]
    fn what_the_plan_does_not_tell_is_assumed_and_said() {
        let mut status = with(|spec| {
            spec.insert("profiles".into(), json!(["AffinityAndTaints", "KubeVirtRelieveAndMigrate"]));
            for field in ["evictionLimits", "deschedulingIntervalSeconds", "profileCustomizations"] {
                spec.remove(field);
            }
        });
        status.inputs.clear();
        let Planned { settings, assumed } = planned(&status, None, None).unwrap();
        assert_eq!((settings.migrations, settings.migrations_per_node), (5, 2));
        for part in
            ["AffinityAndTaints", "newest release", "no limit", "no interval", "AsymmetricLow", CLUSTER, PER_NODE]
        {
            assert!(assumed.iter().any(|text| text.contains(part)), "{part}: {assumed:?}");
        }
        let older = planned(&status, None, Some(Release::V4_19)).unwrap();
        assert!(
            older.settings.migration_aware.is_none()
                && older.assumed.iter().any(|text| text.contains("compared by CPU use"))
        );
    }

    #[test]
    fn a_plan_that_moves_nothing_by_load_has_no_forecast() {
        let mut without = status();
        without.items.retain(|item| item.target_ref.kind != "KubeDescheduler");
        assert!(planned(&without, None, None).unwrap_err().contains("does not configure the descheduler"));
        let requests = with(|spec| drop(spec.insert("profiles".into(), json!([LONG_LIFECYCLE]))));
        assert!(planned(&requests, None, None).unwrap_err().contains("looks at requests"));
    }
}
