//! What the profile requires, wants and plans.

use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{Options as AllOptions, PlanInput, Severity, TargetRef},
};
use serde_json::Value;

use super::{Options, density, swap};
use crate::{
    Access, Draft, Facts, InvalidOptions, Planner, Profile, ProfileInfo, Query, Requirement,
    autopilot::{self, Asset},
    fields::Path,
    hyper_converged, kind,
};

#[derive(Debug)]
pub struct HigherDensity;

pub(super) static ABOUT: ProfileInfo = ProfileInfo {
    name: "virt-higher-density",
    description: "Enables higher VM density through swap and other optimizations",
    category: "density",
    impact_summary: "Enables swap for kubelet to allow memory overcommit and higher VM density. \
                     Requires nodes with swap partition labeled CNV_SWAP.",
    impact: Severity::High,
    advertised: true,
    options_member: Some("virtHigherDensity"),
    former_manager: Some(FIELD_MANAGER),
    documentation: "crates/advisor/src/profiles/higher_density/README.md",
};

impl Profile for HigherDensity {
    fn about(&self) -> &'static ProfileInfo {
        &ABOUT
    }

    fn access(&self) -> Vec<Access> {
        swap::access().into_iter().chain(hyper_converged::locations().map(Access::Change)).collect()
    }

    fn option_for(&self, target: &TargetRef, field: &Path, now: Option<&Value>) -> Option<(&'static str, Value)> {
        match target.kind.as_str() {
            kind if kind == kind::HYPER_CONVERGED.kind => density::option_for(field, now),
            // Without the option, its MachineConfig is removed.
            _ if *field == Path::default() && now.is_none() => Some(("virtHigherDensity.enableSwap", false.into())),
            _ => None,
        }
    }

    fn resolve(&self, options: Option<&AllOptions>) -> Result<Box<dyn Planner>, InvalidOptions> {
        let options = options.and_then(|options| options.virt_higher_density.as_ref());
        Ok(Box::new(Options::resolve(options)?))
    }
}

impl Planner for Options {
    fn requirements(&self, facts: &Facts) -> Vec<Requirement> {
        let mut requirements = Vec::new();
        if self.swap {
            requirements.push(Requirement::Kind {
                kind: &kind::MACHINE_CONFIG,
                hint: "MachineConfig CRD is required for swap configuration (available on OpenShift)",
            });
            requirements.extend(swap::requirements(facts));
        }
        requirements
            .push(Requirement::Kind { kind: &kind::HYPER_CONVERGED, hint: "Install OpenShift Virtualization via OLM" });
        // If the object did not exist, an apply would create it, and with it a whole virtualization platform.
        requirements.push(Requirement::Object {
            reference: hyper_converged::reference(facts),
            hint: "Create it to deploy OpenShift Virtualization",
        });
        requirements
    }

    fn wants(&self, facts: &Facts) -> Vec<Query> {
        let mut queries = vec![hyper_converged::wants(facts)];
        queries.extend(swap::wants(self.swap, facts));
        queries
    }

    fn input_changed(&self, before: &PlanInput, after: &PlanInput) -> String {
        density::setting_changed(before, after)
    }

    fn plan(&self, facts: &Facts) -> Draft {
        let mut swap = swap::plan(self.swap, facts);
        if self.swap {
            swap = autopilot::beside(swap, &Asset::swap(), facts);
        }
        let density = Draft { intents: vec![density::plan(self, facts)], ..Draft::default() };
        let density = autopilot::beside(density, &Asset::hyper_converged(facts), facts);
        autopilot::concluded(swap.and(density), facts)
    }
}
