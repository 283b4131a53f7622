//! What the profile requires, wants and plans.

use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{Item, Options as AllOptions, PlanInput, Severity, TargetRef},
};
use serde_json::Value;

use super::{Options, descheduler, operator, psi};
use crate::{
    Access, Draft, Effect, Facts, InvalidOptions, Planner, Profile, ProfileInfo, Query, Requirement,
    autopilot::{self, Asset},
    fields::Path,
    hyper_converged, kind,
};

#[derive(Debug)]
pub struct LoadAware;

pub(super) static ABOUT: ProfileInfo = ProfileInfo {
    name: "load-aware-rebalancing",
    description: "Enables load-aware VM rebalancing and PSI metrics for intelligent scheduling",
    category: "scheduling",
    impact_summary: "Medium - May require node reboots if PSI metrics are enabled",
    impact: Severity::High,
    advertised: true,
    options_member: Some("loadAware"),
    former_manager: Some(FIELD_MANAGER),
    documentation: "crates/advisor/src/profiles/load_aware/README.md",
};

impl Profile for LoadAware {
    fn about(&self) -> &'static ProfileInfo {
        &ABOUT
    }

    fn access(&self) -> Vec<Access> {
        let inputs = hyper_converged::locations().map(Access::Read);
        [descheduler::access(), psi::access()].into_iter().flatten().chain(inputs).collect()
    }

    fn option_for(&self, target: &TargetRef, field: &Path, now: Option<&Value>) -> Option<(&'static str, Value)> {
        match target.kind.as_str() {
            kind if kind == kind::KUBE_DESCHEDULER.kind => descheduler::option_for(field, now),
            // Without the option, its MachineConfig is removed.
            _ if *field == Path::default() && now.is_none() => Some(("loadAware.enablePSIMetrics", false.into())),
            _ => None,
        }
    }

    fn resolve(&self, options: Option<&AllOptions>) -> Result<Box<dyn Planner>, InvalidOptions> {
        let options = options.and_then(|options| options.load_aware.as_ref());
        Ok(Box::new(Options::resolve(options)?))
    }
}

impl Planner for Options {
    fn requirements(&self, _: &Facts) -> Vec<Requirement> {
        let descheduler = Requirement::Kind {
            kind: &kind::KUBE_DESCHEDULER,
            hint: "Please install the Descheduler Operator via OLM",
        };
        let machine_config = Requirement::Kind {
            kind: &kind::MACHINE_CONFIG,
            hint: "MachineConfig CRD is required for PSI metrics configuration (typically available on OpenShift)",
        };
        if self.psi { vec![descheduler, machine_config] } else { vec![descheduler] }
    }

    fn wants(&self, facts: &Facts) -> Vec<Query> {
        let mut queries = descheduler::wants(facts);
        queries.push(hyper_converged::wants(facts));
        queries.extend(psi::wants(self.psi, facts));
        queries
    }

    fn input_changed(&self, before: &PlanInput, after: &PlanInput) -> String {
        descheduler::limit_changed(before, after)
    }

    fn effect(&self, item: &Item, facts: &Facts) -> Effect {
        match item.name.as_str() {
            psi::ITEM => psi::effect(facts),
            descheduler::ITEM => operator::effect(facts),
            _ => Effect::Unreported,
        }
    }

    fn plan(&self, facts: &Facts) -> Draft {
        let mut psi = psi::plan(self.psi, facts);
        if self.psi {
            psi = autopilot::beside(psi, &Asset::psi(), facts);
        }
        let descheduler = descheduler::plan(self, facts);
        let descheduler = autopilot::beside(descheduler, &Asset::descheduler(), facts);
        autopilot::concluded(psi.and(descheduler), facts)
    }
}
