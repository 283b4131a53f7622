//! The impact of a change, derived from what would change and not from the name of the profile.

use api::virt_platform_config::{ImpactDetail, PoolImpact, Severity};
use serde_json::Value;

use crate::{
    Facts,
    intent::Weight,
    kind,
    machine_config::{self, Disruption},
    pools::{self, Pool},
    rendered_config,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impact {
    pub severity: Severity,
    /// The affected nodes. Only for changes that reach nodes.
    pub detail: Option<ImpactDetail>,
}

impl Impact {
    const NONE: Impact = Impact { severity: Severity::Low, detail: None };
}

/// The impact of going from `before` to `after`; `None` is an object that does not exist.
pub fn impact(weight: Weight, before: Option<&Value>, after: Option<&Value>, changes: bool, facts: &Facts) -> Impact {
    if !changes {
        return Impact::NONE;
    }
    match weight {
        Weight::Negligible => Impact::NONE,
        Weight::Platform => Impact { severity: Severity::Medium, detail: None },
        Weight::Component if before.is_none() => Impact { severity: Severity::Medium, detail: None },
        Weight::Component => Impact::NONE,
        Weight::Nodes => of_nodes(before, after, facts),
    }
}

/// The impact of a change that could not be previewed: the worst case.
pub fn unknown(weight: Weight) -> Impact {
    let severity = match weight {
        Weight::Negligible => Severity::Low,
        Weight::Component | Weight::Platform => Severity::Medium,
        Weight::Nodes => Severity::High,
    };
    Impact { severity, detail: None }
}

fn of_nodes(before: Option<&Value>, after: Option<&Value>, facts: &Facts) -> Impact {
    let disruption = machine_config::disruption(before, after, facts);
    let labels = |config: Option<&Value>| config.and_then(|config| config.pointer("/metadata/labels")).cloned();
    // A change of labels moves a config from some pools to others.
    let mut reached = pools::reached(facts, &labels(before).unwrap_or_default());
    for pool in pools::reached(facts, &labels(after).unwrap_or_default()) {
        if !reached.iter().any(|known| known.name() == pool.name()) {
            reached.push(pool);
        }
    }
    let relabeled = before.is_some() && after.is_some() && labels(before) != labels(after);
    let disruption = if relabeled && !reached.is_empty() { Disruption::Rebooted } else { disruption };

    let known = facts.version(&kind::MACHINE_CONFIG_POOL).is_some();
    let reboot = disruption == Disruption::Rebooted && (!reached.is_empty() || !known);
    let severity = match disruption {
        Disruption::Rebooted if reboot => Severity::High,
        Disruption::Restarted if !reached.is_empty() || !known => Severity::Medium,
        _ => Severity::Low,
    };
    let is_unchanged = before.is_some() && disruption == Disruption::Unchanged;
    let pools = reached.iter().map(|pool| PoolImpact {
        name: pool.name().to_owned(),
        nodes: pool.nodes(),
        paused: pool.is_paused(),
        rendered: pool
            .target()
            .filter(|_| !is_unchanged && must_render_anew(*pool, before, after, facts))
            .map(str::to_owned),
    });
    Impact { severity, detail: Some(ImpactDetail { reboot, pools: pools.collect() }) }
}

/// Whether a pool has a config in what its nodes are to run, and not as it is going to be.
fn must_render_anew(pool: Pool<'_>, before: Option<&Value>, after: Option<&Value>, facts: &Facts) -> bool {
    let name = before.or(after).and_then(|config| config.pointer("/metadata/name")?.as_str());
    let target = pool.target_config().and_then(|target| facts.object(&target));
    let is_included = target.zip(after).is_some_and(|(target, after)| {
        rendered_config::content(target, before, after) == rendered_config::Content::Included
    });
    name.is_some_and(|name| pool.target_includes(name)) && !is_included
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Answer, Query};

    const ROLE: &str = "machineconfiguration.openshift.io/role";

    fn pool(name: &str, roles: &[&str], nodes: i32, paused: bool) -> Value {
        json!({
            "metadata": {"name": name},
            "spec": {"paused": paused, "machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": roles}]}},
            "status": {"machineCount": nodes},
        })
    }

    fn facts() -> Facts {
        let items = vec![
            pool("master", &["master"], 3, false),
            pool("worker", &["worker"], 10, false),
            pool("infra", &["worker", "infra"], 2, true),
        ];
        Facts::of([(Query::List(&kind::MACHINE_CONFIG_POOL), Answer::List { version: "v1", items })])
    }

    fn config(role: &str, arguments: &[&str]) -> Value {
        json!({"metadata": {"labels": {ROLE: role}}, "spec": {"kernelArguments": arguments}})
    }

    fn nodes(before: Option<Value>, after: Option<Value>, facts: &Facts) -> (Severity, bool, Vec<String>) {
        let impact = impact(Weight::Nodes, before.as_ref(), after.as_ref(), true, facts);
        let detail = impact.detail.unwrap();
        let names = detail.pools.iter().map(|pool| format!("{} {:?} {}", pool.name, pool.nodes, pool.paused));
        (impact.severity, detail.reboot, names.collect())
    }

    /// W16 (hidden reboots), W27 (unusual pools): whatever reboots nodes is High.
    #[test]
    fn a_worker_argument_reboots_every_pool_that_selects_it() {
        let reached = vec!["worker Some(10) false".to_owned(), "infra Some(2) true".to_owned()];
        let expected = (Severity::High, true, reached);
        assert_eq!(nodes(None, Some(config("worker", &["psi=1"])), &facts()), expected);
        assert_eq!(nodes(Some(config("worker", &["psi=1"])), None, &facts()), expected, "so does its removal");
    }

    #[test]
    fn a_config_that_no_pool_selects_reboots_nothing() {
        assert_eq!(nodes(None, Some(config("gpu", &["psi=1"])), &facts()), (Severity::Low, false, vec![]));
    }

    #[test]
    fn without_pools_to_look_at_the_worst_is_assumed() {
        assert_eq!(nodes(None, Some(config("worker", &["psi=1"])), &Facts::default()), (Severity::High, true, vec![]));
    }

    #[test]
    fn a_new_role_reboots_the_pools_it_leaves_and_those_it_joins() {
        let (severity, reboot, pools) = nodes(Some(config("master", &["a"])), Some(config("infra", &["a"])), &facts());
        assert_eq!((severity, reboot), (Severity::High, true));
        assert_eq!(pools, ["master Some(3) false", "infra Some(2) true"]);
    }

    /// W16 (hidden reboots), D18 (descheduler impact): and no change has no impact.
    #[test]
    fn components_weigh_more_when_new_and_the_platform_always_the_same() {
        let object = json!({});
        let severity =
            |weight, before, changes| impact(weight, before, Some(&object), changes, &Facts::default()).severity;
        assert_eq!(severity(Weight::Component, None, true), Severity::Medium);
        assert_eq!(severity(Weight::Component, Some(&object), true), Severity::Low);
        assert_eq!(severity(Weight::Platform, Some(&object), true), Severity::Medium);
        assert_eq!(severity(Weight::Platform, Some(&object), false), Severity::Low, "no change, no impact");
        assert_eq!(severity(Weight::Nodes, None, false), Severity::Low);
    }
}
