//! The interface of a profile: its description, its requirements, the facts that it wants, and its plan.
//!
//! A [`Profile`] resolves the options of a user into a [`Planner`] once; from then on options are valid and complete.

use std::fmt::Debug;

use api::virt_platform_config::{Item, Options, PlanInput, Severity, TargetRef};
use serde_json::Value;

use crate::{Access, Draft, Facts, Kind, ObjectRef, Query, fields::Path, kind::HYPER_CONVERGED};

/// The description of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInfo {
    pub name: &'static str,
    pub description: &'static str,
    pub category: &'static str,
    pub impact_summary: &'static str,
    /// The impact to expect before there is a plan.
    pub impact: Severity,
    /// Whether the operator offers the profile by creating an ignored object for it.
    pub advertised: bool,
    /// The member of `spec.options` that belongs to the profile.
    pub options_member: Option<&'static str>,
    /// The field manager of earlier versions, which all profiles shared. None for a profile that is newer.
    pub former_manager: Option<&'static str>,
    /// Where it is documented, from the root of the repository.
    pub documentation: &'static str,
}

pub trait Profile: Debug + Sync {
    fn about(&self) -> &'static ProfileInfo;

    /// Everything that its plans may read or change with any options. The operator is granted exactly this.
    fn access(&self) -> Vec<Access>;

    /// The option with which its plans leave a field of a target as it is now: the path below `spec.options`, and the value. The
    /// empty path stands for the whole object. None if no option does.
    fn option_for(&self, _target: &TargetRef, _field: &Path, _now: Option<&Value>) -> Option<(&'static str, Value)> {
        None
    }

    /// Checks the options and fills in the defaults.
    fn resolve(&self, options: Option<&Options>) -> Result<Box<dyn Planner>, InvalidOptions>;
}

/// A profile with its options resolved.
pub trait Planner: Debug + Send + Sync {
    /// What must exist for the plan to make sense. Every kind and object named here must also be wanted.
    fn requirements(&self, facts: &Facts) -> Vec<Requirement>;

    /// What the plan depends on, given the facts so far. Called again after each round of answers, until everything wanted is known.
    fn wants(&self, facts: &Facts) -> Vec<Query>;

    /// The text about a changed input.
    fn input_changed(&self, before: &PlanInput, after: &PlanInput) -> String {
        let leaf = before.path.rsplit('.').next().unwrap_or_default();
        let kind = before.source.split('/').next().unwrap_or_default();
        let kind = if kind == HYPER_CONVERGED.kind { "HCO" } else { kind };
        let value = |input: &PlanInput| input.value.clone().unwrap_or_else(|| "unset".into());
        format!("{kind} {leaf} changed ({} -> {})", value(before), value(after))
    }

    /// Whether a written item is in effect, according to the operator of its target. For MachineConfigs it is called after their
    /// rollout.
    fn effect(&self, _item: &Item, _facts: &Facts) -> Effect {
        Effect::Unreported
    }

    /// The changes to make. Called when the requirements are met and everything wanted is known.
    fn plan(&self, facts: &Facts) -> Draft;
}

/// What the operator of a target reports about a written item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// No operator reports: written counts as done.
    Unreported,
    /// The operator has taken it over.
    Confirmed,
    /// The operator has not taken it over yet.
    Pending(String),
    /// The operator refuses it, or something overrides it.
    Refused(String),
}

/// Options that make no sense but passed the API server, for example with an older schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.options.{field} is {value}: {rule}")]
pub struct InvalidOptions {
    pub field: &'static str,
    pub value: String,
    pub rule: String,
}

impl InvalidOptions {
    pub fn reason(&self) -> &'static str {
        "InvalidOptions"
    }

    /// Checks that a number lies within the limits of the schema.
    pub(crate) fn unless_within(
        field: &'static str,
        value: i32,
        limits: std::ops::RangeInclusive<i32>,
    ) -> Result<i32, Self> {
        if limits.contains(&value) {
            return Ok(value);
        }
        let rule = format!("must be from {} to {}", limits.start(), limits.end());
        Err(InvalidOptions { field, value: value.to_string(), rule })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// The kind must be served.
    Kind { kind: &'static Kind, hint: &'static str },
    /// The object must exist; the operator does not create it.
    Object { reference: ObjectRef, hint: &'static str },
    /// Something exists but is not as it must be; the text says what, and what to do.
    Unmet(String),
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub what: String,
    /// What to do about it, unless `what` says it.
    pub hint: Option<&'static str>,
}

/// What is missing, as a message for people.
pub fn missing(requirements: &[Requirement], facts: &Facts) -> Option<String> {
    let line = |Missing { what, hint }| match hint {
        Some(hint) => format!("  - {what}: {hint}\n"),
        None => format!("  - {what}\n"),
    };
    let lines: String = all_missing(requirements, facts).into_iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("Missing required dependencies:\n{lines}"))
}

/// Everything that is missing.
pub fn all_missing(requirements: &[Requirement], facts: &Facts) -> Vec<Missing> {
    let missing = |requirement: &Requirement| match requirement {
        Requirement::Kind { kind, hint } => facts.is_missing(kind).then(|| {
            let version = kind.first_version();
            Missing { what: format!("{} ({}.{version})", kind.kind, kind.group), hint: Some(*hint) }
        }),
        Requirement::Object { reference, hint } => (!facts.is_missing(reference.kind) && facts.is_absent(reference))
            .then(|| Missing { what: reference.to_string(), hint: Some(*hint) }),
        Requirement::Unmet(text) => Some(Missing { what: text.clone(), hint: None }),
    };
    requirements.iter().filter_map(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Answer,
        kind::{CONFIG_MAP, KUBE_DESCHEDULER},
    };

    #[test]
    fn numbers_are_checked_at_both_ends() {
        for (value, fits) in [(59, false), (60, true), (100, true), (101, false)] {
            assert_eq!(InvalidOptions::unless_within("a.b", value, 60..=100).is_ok(), fits, "{value}");
        }
        let error = InvalidOptions::unless_within("a.b", 7, 60..=100).unwrap_err();
        assert_eq!(error.to_string(), "spec.options.a.b is 7: must be from 60 to 100");
        assert_eq!(error.reason(), "InvalidOptions");
    }

    #[test]
    fn what_is_missing_is_told_with_what_to_do() {
        let reference = || ObjectRef::namespaced(&CONFIG_MAP, "here", "it");
        let kind = Requirement::Kind { kind: &KUBE_DESCHEDULER, hint: "Install it" };
        let object = Requirement::Object { reference: reference(), hint: "Create it" };
        let descheduler = || Query::Object(ObjectRef::cluster(&KUBE_DESCHEDULER, "cluster"));
        let config_map = || Query::Object(reference());
        let absent = || Answer::Absent { version: "v1" };
        let found = || Answer::Object { version: "v1", object: serde_json::json!({}) };
        let kind_line = "  - KubeDescheduler (operator.openshift.io.v1): Install it\n";
        let object_line = "  - ConfigMap here/it: Create it\n";
        let cases = [
            ("all there", vec![(descheduler(), found()), (config_map(), found())], String::new()),
            ("a kind needs no object", vec![(descheduler(), absent()), (config_map(), found())], String::new()),
            ("not asked yet", vec![], String::new()),
            ("no such kind", vec![(descheduler(), Answer::KindMissing), (config_map(), found())], kind_line.to_owned()),
            ("no such object", vec![(descheduler(), absent()), (config_map(), absent())], object_line.to_owned()),
            (
                "neither",
                vec![(descheduler(), Answer::KindMissing), (config_map(), absent())],
                format!("{kind_line}{object_line}"),
            ),
            (
                "an object of an unknown kind is told by whoever requires the kind",
                vec![(descheduler(), found()), (config_map(), Answer::KindMissing)],
                String::new(),
            ),
        ];
        for (case, answers, lines) in cases {
            let expected = (!lines.is_empty()).then(|| format!("Missing required dependencies:\n{lines}"));
            assert_eq!(missing(&[kind.clone(), object.clone()], &Facts::of(answers)), expected, "{case}");
        }
    }
}
