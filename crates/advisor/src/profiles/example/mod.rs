//! `example-profile`: one ConfigMap, to learn the workflow. It is handled like every other profile.

#[cfg(test)]
mod tests;

use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{Options, Severity},
};
use serde_json::json;

use crate::{
    Access, Change, Draft, Facts, Intent, InvalidOptions, ObjectRef, Planner, Profile, ProfileInfo, Query, Requirement,
    intent::Weight, kind::CONFIG_MAP,
};

#[derive(Debug)]
pub struct Example;

static ABOUT: ProfileInfo = ProfileInfo {
    name: "example-profile",
    description: "Example profile for demonstration purposes only",
    category: "example",
    impact_summary: "None - Example profile with no real resources",
    impact: Severity::Low,
    advertised: false,
    options_member: None,
    former_manager: Some(FIELD_MANAGER),
    documentation: "crates/advisor/src/profiles/example/README.md",
};

impl Profile for Example {
    fn about(&self) -> &'static ProfileInfo {
        &ABOUT
    }

    fn access(&self) -> Vec<Access> {
        vec![Access::Create(target())]
    }

    fn resolve(&self, _: Option<&Options>) -> Result<Box<dyn Planner>, InvalidOptions> {
        Ok(Box::new(NoOptions))
    }
}

#[derive(Debug)]
struct NoOptions;

fn target() -> ObjectRef {
    ObjectRef::namespaced(&CONFIG_MAP, "openshift-cnv", "example-config")
}

impl Planner for NoOptions {
    fn requirements(&self, _: &Facts) -> Vec<Requirement> {
        Vec::new()
    }

    fn wants(&self, _: &Facts) -> Vec<Query> {
        vec![Query::Object(target())]
    }

    fn plan(&self, _: &Facts) -> Draft {
        let intent = Intent {
            name: "configure-example-component".into(),
            target: target(),
            version: "v1",
            change: Change::Apply {
                fields: json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": target().name, "namespace": target().namespace},
                    "data": {"example-key": "example-value"},
                }),
                remove: Vec::new(),
            },
            managed: vec!["data".into()],
            message: "ConfigMap 'example-config' will be configured".into(),
            why: "to show how a plan is reviewed, approved and applied",
            inputs: Vec::new(),
            weight: Weight::Negligible,
            restores: None,
        };
        Draft { intents: vec![intent], ..Draft::default() }
    }
}
