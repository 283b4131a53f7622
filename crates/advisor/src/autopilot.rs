//! The virt-platform-autopilot of OpenShift Virtualization. It writes some of the objects that plans write, by force and without
//! asking: what it manages, how that shows, and how people tell it to leave an object alone.
//! An annotation on HyperConverged switches it on. Newer versions are on without it, so without it only the objects tell.

mod beside;
mod excluded;
#[cfg(test)]
mod tests;

use api::virt_platform_config::{Item, PlanInput, TargetRef};
use serde_json::Value;

use crate::{
    Facts, ObjectRef, Query,
    fields::{self, Path},
    hyper_converged,
    kind::{HYPER_CONVERGED, KUBE_DESCHEDULER, MACHINE_CONFIG},
    pools::Pool,
};

pub use beside::{AUTOPILOT_MANAGES, beside, concluded};

/// Its field manager, and the value of its label.
pub const MANAGER: &str = "virt-platform-autopilot";

const ANNOTATIONS: &str = "platform.kubevirt.io/";
const SWITCH: &str = "platform.kubevirt.io/autopilot";
const LABEL: &str = "platform.kubevirt.io/managed-by";
const MODE: &str = "platform.kubevirt.io/mode";
const UNMANAGED: &str = "unmanaged";
const PAUSED: &str = "platform.kubevirt.io/reconcile-paused";

/// The most fields that a text lists.
const MOST_FIELDS: usize = 4;

/// Whether an annotation may change what the autopilot does.
pub fn is_relevant(annotation: &str) -> bool {
    annotation.starts_with(ANNOTATIONS)
}

/// What the annotation on HyperConverged switches on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// There is no annotation: the version of the autopilot decides.
    Unset,
    Off,
    Everything,
    /// Assets, or groups of assets, by their names.
    Listed(Vec<String>),
}

impl Scope {
    pub fn parse(annotation: Option<&str>) -> Self {
        match annotation.map(str::trim) {
            None | Some("") => Scope::Unset,
            Some("false") => Scope::Off,
            Some("true") => Scope::Everything,
            Some(list) => {
                let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
                Scope::Listed(names.map(str::to_owned).collect())
            }
        }
    }

    fn of(facts: &Facts) -> Self {
        Scope::parse(switch(facts))
    }

    pub fn covers(&self, asset: &Asset) -> bool {
        match self {
            Scope::Unset | Scope::Off => false,
            Scope::Everything => true,
            Scope::Listed(names) => names.iter().any(|name| asset.names.contains(&name.as_str())),
        }
    }
}

/// An object that the autopilot writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Asset {
    /// The names by which the annotation selects it: its own, and the one of its group.
    pub names: &'static [&'static str],
    /// What it configures, in words.
    pub what: &'static str,
    pub object: ObjectRef,
    /// Whether it sets only some fields of the object, so that only these tell what it manages.
    pub in_part: bool,
}

impl Asset {
    pub fn descheduler() -> Self {
        let object = ObjectRef::namespaced(&KUBE_DESCHEDULER, "openshift-kube-descheduler-operator", "cluster");
        Asset { names: &["descheduler-loadaware"], what: "the descheduler", object, in_part: false }
    }

    /// Its MachineConfigs have other names than the ones of plans.
    pub fn psi() -> Self {
        let object = ObjectRef::cluster(&MACHINE_CONFIG, "99-openshift-machineconfig-worker-psi-karg");
        Asset { names: &["psi-enable", "descheduler-loadaware"], what: "PSI metrics", object, in_part: false }
    }

    pub fn swap() -> Self {
        let object = ObjectRef::cluster(&MACHINE_CONFIG, "90-worker-swap-online");
        Asset { names: &["swap-enable"], what: "swap", object, in_part: false }
    }

    pub fn hyper_converged(facts: &Facts) -> Self {
        let object = hyper_converged::reference(facts);
        Asset { names: &["hco-golden-config"], what: "overcommitment", object, in_part: true }
    }

    /// The asset that consists of this object, if it is one that plans write too.
    pub fn of(object: &ObjectRef, facts: &Facts) -> Option<Self> {
        [Asset::descheduler(), Asset::hyper_converged(facts)].into_iter().find(|asset| asset.object == *object)
    }

    fn live<'a>(&self, facts: &'a Facts) -> Option<&'a Value> {
        facts.object(&self.object).or_else(|| facts.optional(&self.object))
    }

    /// Its MachineConfig, if the autopilot may have created it: only that object tells whether people have opted out.
    pub fn wants(&self, facts: &Facts, pools: &[Pool<'_>]) -> Option<Query> {
        let name = &self.object.name;
        let is_used = pools.iter().any(|pool| pool.is_rendered_from(name) || pool.target_includes(name));
        (is_used || Scope::of(facts).covers(self)).then(|| Query::Optional(self.object.clone()))
    }
}

/// What the autopilot has to do with the fields of an object. The texts say how that shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutopilotState {
    /// Nothing shows that it writes them.
    Uninvolved,
    Manages(String),
    /// It writes the object, and none of these fields.
    WritesOthers(String),
    /// It has found that somebody else writes the object too, and has stopped until its annotation is removed.
    Paused(String),
    /// People have told it to leave the object alone.
    OptedOut,
}

impl AutopilotState {
    /// `managed` are the fields that a plan manages.
    pub fn of(asset: &Asset, managed: &[impl AsRef<str>], facts: &Facts) -> Self {
        let (scope, live) = (Scope::of(facts), asset.live(facts));
        let (mut evidence, mut owned) = (Vec::new(), Vec::new());
        if scope.covers(asset) {
            let value = switch(facts).unwrap_or_default();
            evidence.push(format!("{} has the annotation {SWITCH}: {value:?}", hyper_converged::reference(facts)));
        }
        if let Some(live) = live {
            if live.pointer("/metadata/labels").is_some_and(|labels| labels[LABEL] == MANAGER) {
                evidence.push(format!("it has the label {LABEL}"));
            }
            owned = owned_fields(live, asset.in_part.then_some(managed));
            if !owned.is_empty() {
                evidence.push(format!("{MANAGER} owns {}", listed(&owned)));
            }
        }
        let evidence = evidence.join("; ");
        if evidence.is_empty() || scope == Scope::Off {
            return AutopilotState::Uninvolved;
        }
        let has = |name: &str, value: &str| live.and_then(|live| annotation(live, name)) == Some(value);
        if has(MODE, UNMANAGED) || excluded::excludes(facts, &asset.object) {
            return AutopilotState::OptedOut;
        }
        if asset.in_part && owned.is_empty() {
            return AutopilotState::WritesOthers(evidence);
        }
        if has(PAUSED, "true") { AutopilotState::Paused(evidence) } else { AutopilotState::Manages(evidence) }
    }
}

/// The fields that the autopilot owns by server-side apply: all, or those that a plan manages.
fn owned_fields(live: &Value, managed: Option<&[impl AsRef<str>]>) -> Vec<String> {
    let managed = managed.map(|managed| managed.iter().map(|path| Path::parsed(path.as_ref())).collect::<Vec<_>>());
    let is_asked = |leaf: &Path| managed.as_ref().is_none_or(|paths| paths.iter().any(|path| leaf.overlaps(path)));
    let is_setting = |leaf: &Path| leaf.is_within(&Path::dotted("spec"));
    let owned = fields::applied_by(live, MANAGER).into_iter().filter(|leaf| is_setting(leaf) && is_asked(leaf));
    owned.map(|leaf| leaf.to_string()).collect()
}

fn listed(fields: &[String]) -> String {
    let (shown, rest) = fields.split_at(fields.len().min(MOST_FIELDS));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    format!("{}{more}", shown.join(", "))
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(name)?.as_str()
}

fn switch(facts: &Facts) -> Option<&str> {
    annotation(facts.object(&hyper_converged::reference(facts))?, SWITCH)
}

/// The annotation as an input of a plan, while it is set.
fn input(facts: &Facts) -> Option<PlanInput> {
    let path = Path::member(&["metadata", "annotations", SWITCH]).to_string();
    let value = Value::from(switch(facts)?).to_string();
    let source = format!("{}/{}", HYPER_CONVERGED.kind, hyper_converged::reference(facts).name);
    Some(PlanInput { source, path, value: Some(value) })
}

/// The text about a changed annotation, given the inputs of two plans.
pub fn switched(before: &[PlanInput], after: &[PlanInput]) -> Option<String> {
    let path = Path::member(&["metadata", "annotations", SWITCH]).to_string();
    let value =
        |inputs: &[PlanInput]| inputs.iter().find(|input| input.path == path).and_then(|input| input.value.clone());
    let (before, after) = (value(before), value(after));
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".into());
    (before != after).then(|| format!("HCO annotation {SWITCH} changed ({} -> {})", text(&before), text(&after)))
}

/// Whether the autopilot has changed what an item applied.
pub fn has_taken(item: &Item) -> bool {
    item.drifted_by.as_ref().is_some_and(|by| by.manager == MANAGER)
}

/// The command by which people tell the autopilot to leave an existing object alone.
pub fn opt_out(target: &TargetRef) -> String {
    annotate(&target.kind, target.namespace.as_deref(), &target.name, &format!("{MODE}={UNMANAGED}"))
}

fn annotate(kind: &str, namespace: Option<&str>, name: &str, annotation: &str) -> String {
    let namespace = namespace.map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    format!("kubectl annotate --overwrite {} {name}{namespace} {annotation}", kind.to_lowercase())
}
