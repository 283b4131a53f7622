//! MachineConfigPools: which MachineConfigs reach which nodes.

use api::virt_platform_config::Risk;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::{
    Answer, Facts, ObjectRef, Query,
    intent::risk,
    kind,
    selector::{Selector, texts},
};

/// The label by which pools select MachineConfigs.
pub const ROLE: &str = "machineconfiguration.openshift.io/role";

/// A view of one pool.
#[derive(Debug, Clone, Copy)]
pub struct Pool<'a>(&'a Value);

impl<'a> Pool<'a> {
    pub fn object(&self) -> &'a Value {
        self.0
    }

    pub fn name(&self) -> &'a str {
        self.0.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
    }

    /// The number of nodes, according to its status.
    pub fn nodes(&self) -> Option<i32> {
        self.count("machineCount")
    }

    /// The number of nodes that run what they are to run, according to its status.
    pub fn updated_nodes(&self) -> Option<i32> {
        self.count("updatedMachineCount")
    }

    fn count(&self, name: &str) -> Option<i32> {
        let count = self.0.pointer("/status")?.get(name).and_then(Value::as_i64);
        count.and_then(|count| i32::try_from(count).ok()).filter(|count| *count >= 0)
    }

    /// Since when it has been updating nodes, if it is. Another target in between does not change that.
    pub fn updating_since(&self) -> Option<Timestamp> {
        let mut conditions = self.0.pointer("/status/conditions")?.as_array()?.iter();
        let updating = conditions.find(|it| it["type"] == "Updating" && it["status"] == "True")?;
        updating["lastTransitionTime"].as_str()?.parse().ok()
    }

    pub fn is_paused(&self) -> bool {
        self.0.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or(false)
    }

    /// The rendered config that all of its nodes run.
    pub fn rendered(&self) -> Option<&'a str> {
        self.0.pointer("/status/configuration/name").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// The rendered config that its nodes are to run.
    pub fn target(&self) -> Option<&'a str> {
        self.0.pointer("/spec/configuration/name").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// The rendered config that all of its nodes run, as an object.
    pub fn running_config(&self) -> Option<ObjectRef> {
        self.rendered().and_then(rendered_config)
    }

    /// The rendered config that its nodes are to run, as an object.
    pub fn target_config(&self) -> Option<ObjectRef> {
        self.target().and_then(rendered_config)
    }

    /// The rendered config that its nodes are to run, or else run.
    pub fn newest_config(&self) -> Option<ObjectRef> {
        self.target().or(self.rendered()).and_then(rendered_config)
    }

    /// The MachineConfigs in the rendered config that its nodes run.
    pub fn sources(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.sources_at("/status/configuration/source")
    }

    /// The MachineConfigs in the rendered config that its nodes are to run.
    pub fn target_sources(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.sources_at("/spec/configuration/source")
    }

    fn sources_at(&self, at: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let sources = self.0.pointer(at).and_then(Value::as_array);
        sources.into_iter().flatten().filter_map(|source| source["name"].as_str())
    }

    /// Whether the rendered config that its nodes are to run includes a MachineConfig.
    pub fn target_includes(&self, config: &str) -> bool {
        self.target_sources().any(|source| source == config)
    }

    /// Whether the rendered config that its nodes run includes a MachineConfig.
    pub fn is_rendered_from(&self, config: &str) -> bool {
        self.sources().any(|source| source == config)
    }

    /// Whether it selects a MachineConfig with these labels. An empty selector selects none.
    fn selects(&self, labels: &Value) -> bool {
        let selector = Selector::of(self.0.pointer("/spec/machineConfigSelector"));
        selector.is_some_and(|selector| !selector.is_empty() && selector.matches(&texts(Some(labels))))
    }
}

/// The pools that select a MachineConfig with these labels. There may be more than the pool of its role.
pub fn reached<'a>(facts: &'a Facts, labels: &Value) -> Vec<Pool<'a>> {
    facts.list(&kind::MACHINE_CONFIG_POOL).iter().map(Pool).filter(|pool| pool.selects(labels)).collect()
}

/// The pools of these names.
pub fn named<'a>(facts: &'a Facts, names: &[&str]) -> Vec<Pool<'a>> {
    facts.list(&kind::MACHINE_CONFIG_POOL).iter().map(Pool).filter(|pool| names.contains(&pool.name())).collect()
}

/// The rendered configs that the nodes of pools run.
pub fn rendered_configs<'a>(pools: &'a [Pool<'a>]) -> impl Iterator<Item = ObjectRef> + 'a {
    pools.iter().filter_map(Pool::rendered).filter_map(rendered_config)
}

/// The rendered configs that the nodes of pools are to run, of those pools that have taken in a MachineConfig: they tell whether that
/// was its current content.
pub fn target_configs<'a>(pools: &'a [Pool<'a>], config: &'a str) -> impl Iterator<Item = ObjectRef> + 'a {
    pools.iter().filter(move |pool| pool.target_includes(config)).filter_map(Pool::target_config)
}

/// A rendered config by its name. Other names are ignored.
fn rendered_config(name: &str) -> Option<ObjectRef> {
    let config = ObjectRef::cluster(&kind::MACHINE_CONFIG, name);
    (is_rendered(&config) && config.name.len() <= api::bounds::NAME).then_some(config)
}

/// The risk that a MachineConfig reaches no machine.
pub fn no_machine_reached(config: &str, facts: &Facts, reached: &[Pool<'_>]) -> Option<Risk> {
    let is_known = matches!(facts.answer(&all()), Some(Answer::List { .. }));
    let is_empty = reached.iter().all(|pool| pool.nodes() == Some(0));
    let names: Vec<_> = reached.iter().map(|pool| format!("'{}'", pool.name())).collect();
    let why = match names.is_empty() {
        true => "no MachineConfigPool takes it".to_owned(),
        false => format!("MachineConfigPool {} has no machines", names.join(", ")),
    };
    (is_known && is_empty).then(|| {
        let advice = "On a compact cluster the control plane runs the virtual machines, and its pool does not take it";
        risk("NoMachineReached", format!("MachineConfig '{config}' has no effect as things stand: {why}. {advice}"))
    })
}

/// The note on a pool whose nodes are being updated while a plan would reboot them: those that are done reboot twice.
pub fn reboots_again(pool: &Pool<'_>) -> Option<String> {
    let count = |name: &str| pool.0["status"][name].as_i64();
    let (total, updated) = (count("machineCount")?, count("updatedMachineCount").unwrap_or(0));
    let is_updating = pool.target() != pool.rendered() || updated < total;
    is_updating.then(|| {
        format!(
            "MachineConfigPool '{}' is being updated already, and {updated} of {total} nodes are done. Applied now, this plan \
             reboots these once more; the other nodes take both changes in one reboot",
            pool.name()
        )
    })
}

/// Whether a MachineConfig was rendered for a pool. Such a config never changes.
pub fn is_rendered(reference: &ObjectRef) -> bool {
    reference.kind == &kind::MACHINE_CONFIG && reference.name.starts_with("rendered-")
}

pub fn all() -> Query {
    Query::List(&kind::MACHINE_CONFIG_POOL)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_selector_selects_nothing() {
        let worker = json!({ROLE: "worker"});
        for (selector, selects) in [
            (json!({"matchLabels": {ROLE: "worker"}}), true),
            (json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]}), true),
            (json!({"matchLabels": {ROLE: "master"}}), false),
            (json!({}), false),
            (json!({"matchLabels": {}, "matchExpressions": []}), false),
            (Value::Null, false),
        ] {
            let pool = json!({"spec": {"machineConfigSelector": selector}});
            assert_eq!(Pool(&pool).selects(&worker), selects, "{selector}");
        }
    }

    #[test]
    fn a_pool_tells_what_its_nodes_run() {
        let object = json!({
            "metadata": {"name": "worker"},
            "spec": {"configuration": {"name": "rendered-2", "source": [{"name": "99-new"}]}},
            "status": {"configuration": {"name": "rendered-1", "source": [{"name": "00-worker"}, {"name": "99-a"}]}},
        });
        let pool = Pool(&object);
        assert_eq!((pool.rendered(), pool.nodes(), pool.is_paused()), (Some("rendered-1"), None, false));
        let of = |name| pool.is_rendered_from(name);
        assert_eq!([of("99-a"), of("99-new"), of("99")], [true, false, false], "what is to come does not count");
        let fresh = json!({"status": {"configuration": {"name": ""}}});
        assert_eq!((Pool(&fresh).rendered(), Pool(&fresh).is_rendered_from("99-a")), (None, false));
    }
}
