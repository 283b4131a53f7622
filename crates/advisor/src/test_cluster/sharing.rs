//! Two profiles that configure one ConfigMap. They have the names and options of real profiles, with another meaning.

use crate::{
    Access, Change, Draft, Facts, Intent, InvalidOptions, ObjectRef, Planner, Profile, ProfileInfo, Query, Requirement,
    field_manager, fields,
    intent::Weight,
    kind::CONFIG_MAP,
    ownership::{Ownership, ownership},
};
use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{Options, Severity},
};
use serde_json::{Value, json};

pub const LEFT: &str = "load-aware-rebalancing";
pub const RIGHT: &str = "virt-higher-density";
pub const LEFT_MANAGER: &str = "virt-advisor-operator/load-aware-rebalancing";
pub const RIGHT_MANAGER: &str = "virt-advisor-operator/virt-higher-density";

/// `left` is `deschedulingIntervalSeconds`, `shared` is `evictionLimitTotal` and `extra` is `evictionLimitNode`, if given. Without
/// `enablePSIMetrics` what is its own is taken back.
#[derive(Debug)]
pub struct Left;

/// `right` is `memoryToRequestRatio`, and `shared` is the same with `ksmConfiguration`. Without `enableSwap` what is its own is taken
/// back.
#[derive(Debug)]
pub struct Right;

pub static LEFT_AND_RIGHT: &[&dyn Profile] = &[&Left, &Right];

const ABOUT: ProfileInfo = ProfileInfo {
    name: "",
    description: "Shares a ConfigMap",
    category: "test",
    impact_summary: "None",
    impact: Severity::Low,
    advertised: false,
    options_member: None,
    former_manager: None,
    documentation: "",
};

/// The object that both configure, with this data. The operator may change it.
pub fn config_map(data: Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": target().name, "namespace": target().namespace},
    });
    if data.as_object().is_some_and(|data| !data.is_empty()) {
        object["data"] = data;
    }
    object
}

pub fn target() -> ObjectRef {
    ObjectRef::namespaced(&CONFIG_MAP, "openshift-cnv", "example-config")
}

impl Profile for Left {
    fn about(&self) -> &'static ProfileInfo {
        // This profile existed when all profiles shared one field manager.
        static LEFT_ABOUT: ProfileInfo = ProfileInfo { name: LEFT, former_manager: Some(FIELD_MANAGER), ..ABOUT };
        &LEFT_ABOUT
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Create(target())]
    }

    fn resolve(&self, options: Option<&Options>) -> Result<Box<dyn Planner>, InvalidOptions> {
        let options = options.and_then(|options| options.load_aware.clone()).unwrap_or_default();
        let mut data = json!({"left": options.descheduling_interval_seconds.to_string()});
        for (name, value) in [("shared", options.eviction_limit_total), ("extra", options.eviction_limit_node)] {
            if let Some(value) = value {
                data[name] = value.to_string().into();
            }
        }
        let data = options.enable_psi_metrics.then_some(data);
        Ok(Box::new(Sharer { about: self.about(), managed: &["data.left", "data.shared", "data.extra"], data }))
    }
}

impl Profile for Right {
    fn about(&self) -> &'static ProfileInfo {
        static RIGHT_ABOUT: ProfileInfo = ProfileInfo { name: RIGHT, ..ABOUT };
        &RIGHT_ABOUT
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Create(target())]
    }

    fn resolve(&self, options: Option<&Options>) -> Result<Box<dyn Planner>, InvalidOptions> {
        let options = options.and_then(|options| options.virt_higher_density.clone()).unwrap_or_default();
        let ratio = options.effective_memory_to_request_ratio().to_string();
        let mut data = json!({"right": ratio});
        if options.ksm_configuration.is_some() {
            data["shared"] = ratio.into();
        }
        let data = options.enable_swap.then_some(data);
        Ok(Box::new(Sharer { about: self.about(), managed: &["data.right", "data.shared"], data }))
    }
}

/// Sets data of the ConfigMap, or gives up what it has set.
#[derive(Debug)]
struct Sharer {
    about: &'static ProfileInfo,
    managed: &'static [&'static str],
    data: Option<Value>,
}

impl Planner for Sharer {
    fn requirements(&self, _: &Facts) -> Vec<Requirement> {
        Vec::new()
    }

    fn wants(&self, _: &Facts) -> Vec<Query> {
        vec![Query::Object(target())]
    }

    fn plan(&self, facts: &Facts) -> Draft {
        let live = facts.object(&target());
        let us = field_manager::of_profile(self.about, live, self.managed);
        let sets_something = live.is_some_and(|live| !fields::applied_by(live, &us).is_empty());
        let apply = |data: Value| Change::Apply { fields: config_map(data), remove: Vec::new() };
        let change = match (&self.data, live.map(|live| ownership(live, &us))) {
            (Some(data), _) => apply(data.clone()),
            (None, Some(Ownership::Ours)) => Change::Delete,
            (None, Some(Ownership::Shared { .. })) if sets_something => apply(json!({})),
            (None, _) => return Draft::default(),
        };
        let intent = Intent {
            name: "share".into(),
            target: target(),
            version: "v1",
            change,
            managed: self.managed.iter().map(|&path| path.into()).collect(),
            message: "It will be shared".into(),
            why: "to see what two profiles make of one object",
            inputs: Vec::new(),
            weight: Weight::Negligible,
            restores: None,
        };
        Draft { intents: vec![intent], ..Draft::default() }
    }
}
