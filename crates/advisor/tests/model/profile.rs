//! Profiles of up to three items, small enough to be explored exhaustively. Their values follow from the options, from an input, or
//! from neither; one kind of item is rolled out to nodes.

use advisor::{
    Access, Change, Draft, Facts, Intent, InvalidOptions, Kind, ObjectRef, Planner, Profile, ProfileInfo, Query,
    Requirement,
    fields::Path,
    intent::Weight,
    kind::{CONFIG_MAP, HYPER_CONVERGED, MACHINE_CONFIG, MACHINE_CONFIG_POOL},
    pools,
};
use api::{
    names::FIELD_MANAGER,
    virt_platform_config::{LoadAwareOptions, Options, PlanInput, Severity},
};
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "here";
pub(crate) const ROLE: &str = "machineconfiguration.openshift.io/role";

/// One item of a plan, and the object that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// A value that follows from the options. Its object does not exist at first.
    Chosen,
    /// A value that follows from the input. Its object belongs to somebody else.
    Derived,
    /// A value that is an input as well: changed by others, it calls for a review.
    Default,
    /// A MachineConfig that its pool has to roll out.
    Nodes,
    /// A value to set and a foreign field to remove, which needs two requests.
    Cleared,
    /// An object of the operator that is deleted under other options.
    Optional,
    /// The same, and it does not exist at first.
    Passing,
}

#[derive(Debug)]
pub(crate) struct ToyProfile {
    about: ProfileInfo,
    pub(crate) parts: &'static [Part],
    /// Whether a pool renders a changed MachineConfig at once. Its nodes follow later in any case.
    pub(crate) renders_at_once: bool,
    /// Whether the pool has a MachineConfig of somebody else, too.
    pub(crate) has_other_config: bool,
}

const fn toy_profile(parts: &'static [Part], renders_at_once: bool) -> ToyProfile {
    let about = ProfileInfo {
        name: "example-profile",
        description: "",
        category: "",
        impact_summary: "",
        impact: Severity::Low,
        advertised: false,
        options_member: None,
        former_manager: Some(FIELD_MANAGER),
        documentation: "",
    };
    ToyProfile { about, parts, renders_at_once, has_other_config: false }
}

pub(crate) static ONE: ToyProfile = toy_profile(&[Part::Derived], true);
pub(crate) static TWO: ToyProfile = toy_profile(&[Part::Chosen, Part::Derived], true);
pub(crate) static DEFAULT: ToyProfile = toy_profile(&[Part::Default, Part::Derived], true);
pub(crate) static NODES: ToyProfile = toy_profile(&[Part::Derived, Part::Nodes], true);
pub(crate) static LATE_NODES: ToyProfile = toy_profile(&[Part::Nodes], false);
pub(crate) static SHARED_NODES: ToyProfile = ToyProfile { has_other_config: true, ..toy_profile(&[Part::Nodes], true) };
pub(crate) static LATE_SHARED_NODES: ToyProfile =
    ToyProfile { has_other_config: true, ..toy_profile(&[Part::Nodes], false) };
pub(crate) static REMOVALS: ToyProfile = toy_profile(&[Part::Cleared, Part::Optional], true);
pub(crate) static CLEARED: ToyProfile = toy_profile(&[Part::Cleared], true);
pub(crate) static PASSING: ToyProfile = toy_profile(&[Part::Derived, Part::Passing], true);
pub(crate) static THREE: ToyProfile = toy_profile(&[Part::Chosen, Part::Derived, Part::Nodes], true);

/// Options that differ from none. Their values do not matter.
pub(crate) fn other_options() -> Option<Options> {
    Some(Options { load_aware: Some(LoadAwareOptions::default()), virt_higher_density: None })
}

pub(crate) fn input() -> ObjectRef {
    ObjectRef::namespaced(&HYPER_CONVERGED, NAMESPACE, "input")
}

impl Part {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Chosen => "chosen",
            Part::Derived => "derived",
            Part::Default => "default",
            Part::Nodes => "99-nodes",
            Part::Cleared => "cleared",
            Part::Optional => "optional",
            Part::Passing => "passing",
        }
    }

    pub(crate) fn kind(self) -> &'static Kind {
        match self {
            Part::Nodes => &MACHINE_CONFIG,
            Part::Default => &HYPER_CONVERGED,
            _ => &CONFIG_MAP,
        }
    }

    pub(crate) fn target(self) -> ObjectRef {
        match self {
            Part::Nodes => ObjectRef::cluster(&MACHINE_CONFIG, self.name()),
            part => ObjectRef::namespaced(part.kind(), NAMESPACE, part.name()),
        }
    }

    /// The section of the object that has the value.
    pub(crate) fn section(self) -> &'static str {
        if self == Part::Default { "spec" } else { "data" }
    }

    /// The object with nothing but this value, as its owner or the plan sets it.
    pub(crate) fn object(self, value: &str) -> Value {
        let (version, kind, name) = (self.kind().api_version("v1"), self.kind().kind, self.name());
        match self {
            Part::Nodes => json!({
                "apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {ROLE: "worker"}},
                "spec": {"kernelArguments": [value]},
            }),
            _ => json!({
                "apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
                self.section(): {"value": value},
            }),
        }
    }

    /// The managed fields of an object, as text.
    pub(crate) fn managed(self, object: Option<&Value>) -> String {
        let Some(object) = object else { return "absent".into() };
        let field = |pointer: &str| object.pointer(pointer).unwrap_or(&Value::Null).to_string();
        match self {
            Part::Nodes => field("/spec/kernelArguments") + &field("/metadata/labels"),
            Part::Cleared => field("/data/value") + &field("/data/extra"),
            part => field(&format!("/{}/value", part.section())),
        }
    }

    fn intent(self, facts: &Facts, has_other_options: bool) -> Option<Intent> {
        let value = self.value(facts, has_other_options);
        let remove = if self == Part::Cleared { vec![Path::dotted("data.extra")] } else { Vec::new() };
        let change = match value {
            Some(value) => Change::Apply { fields: self.object(&value), remove },
            None if facts.object(&self.target()).is_some() => Change::Delete,
            None => return None,
        };
        Some(Intent {
            name: self.name().into(),
            target: self.target(),
            version: "v1",
            change,
            managed: match self {
                Part::Nodes => vec!["spec.kernelArguments".into()],
                Part::Cleared => vec!["data.value".into(), "data.extra".into()],
                Part::Default => vec!["spec.value".into()],
                _ => vec!["data.value".into()],
            },
            message: String::new(),
            why: "",
            inputs: match self {
                Part::Derived => vec![known_input(facts)],
                Part::Default => vec![own_input(facts)],
                _ => Vec::new(),
            },
            weight: if self == Part::Nodes { Weight::Nodes } else { Weight::Component },
            restores: None,
        })
    }

    /// The planned value. None if the object is to be absent.
    pub(crate) fn value(self, facts: &Facts, has_other_options: bool) -> Option<String> {
        match self {
            Part::Chosen if has_other_options => Some("b".into()),
            Part::Optional | Part::Passing if has_other_options => None,
            Part::Derived => Some(format!("for {}", known_input(facts).value.unwrap_or_default())),
            _ => Some("a".into()),
        }
    }
}

fn known_input(facts: &Facts) -> PlanInput {
    let value = facts.object(&input()).map(|object| object["spec"]["level"].to_string());
    PlanInput { source: "HyperConverged/input".into(), path: "spec.level".into(), value }
}

fn own_input(facts: &Facts) -> PlanInput {
    let value = facts.object(&Part::Default.target()).map(|object| object["spec"]["value"].to_string());
    PlanInput { source: "HyperConverged/default".into(), path: "spec.value".into(), value }
}

impl Profile for ToyProfile {
    fn about(&self) -> &'static ProfileInfo {
        // All profiles are static, but `&self` does not say so.
        [&ONE, &TWO, &DEFAULT, &NODES, &LATE_NODES, &REMOVALS, &CLEARED, &PASSING, &THREE]
            .into_iter()
            .find(|known| known.parts == self.parts)
            .map(|known| &known.about)
            .unwrap()
    }

    fn access(&self) -> Vec<Access> {
        let targets = self.parts.iter().map(|part| part.target());
        targets.flat_map(|target| [Access::Change(target.clone()), Access::Delete(target)]).collect()
    }

    fn resolve(&self, options: Option<&Options>) -> Result<Box<dyn Planner>, InvalidOptions> {
        let has_other_options = options.is_some_and(|options| *options != Options::default());
        Ok(Box::new(ToyPlanner { parts: self.parts, has_other_options }))
    }
}

#[derive(Debug)]
struct ToyPlanner {
    parts: &'static [Part],
    has_other_options: bool,
}

impl Planner for ToyPlanner {
    fn requirements(&self, _: &Facts) -> Vec<Requirement> {
        Vec::new()
    }

    fn wants(&self, facts: &Facts) -> Vec<Query> {
        let targets = self.parts.iter().map(|part| Query::Object(part.target()));
        let rendered = pools::reached(facts, &json!({ROLE: "worker"}));
        let rendered = pools::target_configs(&rendered, Part::Nodes.name()).map(Query::Object);
        let all = targets.chain([Query::Object(input()), Query::List(&MACHINE_CONFIG_POOL)]);
        all.chain(rendered).collect()
    }

    fn plan(&self, facts: &Facts) -> Draft {
        let intents = self.parts.iter().filter_map(|part| part.intent(facts, self.has_other_options));
        Draft { intents: intents.collect(), ..Draft::default() }
    }
}
