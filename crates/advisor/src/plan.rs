//! The plan: the preview of each intent, its impact, and the digest that an approval names.

#[cfg(test)]
mod tests;
mod verb;

use api::{
    bounds,
    virt_platform_config::{Item, ItemState, Operation, PlanInput, Risk, Severity, TakeOver},
};
use serde_json::{Value, json};

use crate::{
    Change, Draft, Facts, Intent, LeftOut, ObjectRef, ProfileInfo,
    autopilot::{self, AUTOPILOT_MANAGES},
    diff, drift, field_manager,
    fields::{self, Path},
    fingerprint::sha256,
    impact,
    ownership::with_removed_fields,
    plan_risks,
    pools::{self, Pool},
    profile_conflict::{conflict, display_name, handovers, lost_by},
    record::{self, TooLarge},
};

pub use verb::Verb;

/// The result of a dry run of one intent.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The target as it is.
    pub live: Option<Value>,
    pub outcome: PreviewOutcome,
    /// Whose fields would be taken over.
    pub takes_over: Vec<TakeOver>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PreviewOutcome {
    /// The target as it would be.
    Object(Value),
    /// The target would not exist any more.
    Gone,
    /// The API server would refuse the change.
    Refused(Refusal),
}

/// Why a change cannot be previewed, and therefore not be applied now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "{target} cannot be created: namespace {namespace} does not exist. Create it, or install the component that owns it"
    )]
    NamespaceMissing { target: String, namespace: String },
    #[error("{target} was refused by an admission webhook: {message}")]
    Webhook { target: String, message: String },
    #[error("{target} was refused by an admission policy: {message}")]
    Policy { target: String, message: String },
    #[error(
        "{target} cannot be created: the definition of its kind is being deleted. When it is gone, install the component that \
         owns it; if it stays, look for objects of the kind that have finalizers"
    )]
    KindTerminating { target: String },
    #[error("{target} cannot be previewed: {message}. The webhook must declare sideEffects None or NoneOnDryRun")]
    NoDryRun { target: String, message: String },
    #[error(
        "{target} has no such field in the version that is installed: {message}. Upgrade the component that owns it"
    )]
    UnknownField { target: String, message: String },
    #[error("{target} was refused as invalid: {message}")]
    Invalid { target: String, message: String },
    #[error("{target} may not be changed: {message}. Grant this right to whoever applies the plan")]
    Forbidden { target: String, message: String },
    #[error(
        "{target} is left as it is: {} has set {} since the plan was made, and the operator does not fight. Edit the spec for a \
         new plan, which says who manages what. To keep the autopilot away, before that: {opt_out}",
        autopilot::MANAGER, .fields.join(", ")
    )]
    Autopilot { target: String, fields: Vec<String>, opt_out: String },
    /// Its values cannot be recorded, so it could not be restored.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// Its fields do not fit into a status, and a list that was cut would be another plan.
    #[error(
        "{target} is left as it is: {found} of its fields would be removed or managed, and a plan lists at most {}. Take out by \
         hand what is not needed any more; then plan again",
        bounds::FIELD_PATHS
    )]
    TooManyFields { target: String, found: usize },
    #[error(
        "{target} is left as it is: profile '{profile}' and {other} want different values for {fields}. Change the options \
         of one of them; or set one to Ignore and take its fields back, those of {other} with: kubectl apply --server-side \
         --field-manager={manager} and an object that leaves them out",
        other = display_name(.manager), fields = .fields.join(", ")
    )]
    ProfileConflict { target: String, profile: &'static str, manager: String, fields: Vec<String> },
}

impl Refusal {
    pub fn reason(&self) -> &'static str {
        match self {
            Refusal::NamespaceMissing { .. } => "NamespaceMissing",
            Refusal::Webhook { .. } => "WebhookRefused",
            Refusal::Policy { .. } => "PolicyRefused",
            Refusal::KindTerminating { .. } => "KindTerminating",
            Refusal::NoDryRun { .. } => "DryRunUnsupported",
            Refusal::UnknownField { .. } => "UnknownField",
            Refusal::Invalid { .. } => "Invalid",
            Refusal::Forbidden { .. } => "Forbidden",
            Refusal::Autopilot { .. } => AUTOPILOT_MANAGES,
            Refusal::TooLarge(_) => "TooLargeToRecord",
            Refusal::TooManyFields { .. } => "TooManyFields",
            Refusal::ProfileConflict { .. } => "ProfileConflict",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub profile: &'static str,
    pub items: Vec<PlannedItem>,
    pub inputs: Vec<PlanInput>,
    pub notes: Vec<String>,
    pub risks: Vec<Risk>,
    pub left_out: Vec<LeftOut>,
    /// The strongest impact of any item.
    pub severity: Severity,
    /// Covers everything that a reviewer has read.
    pub digest: String,
    /// Covers the live values of all managed fields.
    pub snapshot: String,
    /// The facts that the plan was made from.
    pub facts: Facts,
}

/// One item of a plan, with data that the status does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedItem {
    /// The profile of the item.
    pub about: &'static ProfileInfo,
    /// The item as it is stored in the status.
    pub item: Item,
    pub target: ObjectRef,
    /// The version of the target's kind that is used.
    pub version: &'static str,
    pub verb: Verb,
    pub why: &'static str,
    /// The diff for people.
    pub readable_diff: String,
    /// Covers the live values of the managed leaves.
    pub fingerprint: String,
    pub refusal: Option<Refusal>,
    /// The target as the dry run left it. None if it would not exist.
    pub after: Option<Value>,
    /// Whether its field manager owns nothing of the target afterwards.
    pub restores: bool,
    /// The fields that the autopilot loses to the item, as the plan says.
    pub lost_by_autopilot: Vec<String>,
}

impl Plan {
    /// Combines the draft of a profile with the previews of the API server.
    pub fn assemble(about: &'static ProfileInfo, draft: Draft, previews: Vec<Preview>, facts: Facts) -> Plan {
        let mut inputs: Vec<PlanInput> = Vec::new();
        let mut items = Vec::new();
        for (intent, preview) in draft.intents.into_iter().zip(previews) {
            let new = intent.inputs.iter().filter(|input| !inputs.contains(input)).cloned().collect::<Vec<_>>();
            inputs.extend(new);
            items.push(PlannedItem::new(about, intent, preview, &facts));
        }
        inputs.extend(draft.inputs);
        let (mut notes, mut risks) = (draft.notes, draft.risks);
        risks.extend(plan_risks::of_items(items.iter().map(|planned| &planned.item)));
        notes.extend(rebooted_pools(&items, &facts).iter().filter_map(pools::reboots_again));
        let gaps = record::gaps(&items, &notes, &risks, &facts);
        notes.extend(gaps.note);
        if let Some(too_large) = gaps.too_large {
            items.iter_mut().filter(|planned| planned.item.name == too_large.item).for_each(|planned| {
                planned.refuse(too_large.clone().into());
            });
        }
        let severity = items.iter().filter_map(|planned| planned.item.impact_severity).max().unwrap_or(Severity::Low);
        let fingerprints: Vec<_> = items.iter().map(|planned| (&planned.item.name, &planned.fingerprint)).collect();
        let snapshot = sha256(&json!(fingerprints));
        let digest = sha256(&json!({
            "profile": about.name,
            "items": items.iter().map(PlannedItem::reviewed).collect::<Vec<_>>(),
            "inputs": inputs,
            "risks": risks.iter().map(|risk| &risk.name).collect::<Vec<_>>(),
        }));
        let left_out = draft.left_out;
        Plan { profile: about.name, items, inputs, notes, risks, left_out, severity, digest, snapshot, facts }
    }

    pub fn has_changes(&self) -> bool {
        self.items.iter().any(|planned| planned.verb != Verb::Unchanged)
    }

    pub fn refusals(&self) -> impl Iterator<Item = &Refusal> {
        self.items.iter().filter_map(|planned| planned.refusal.as_ref())
    }
}

/// The pools whose nodes the plan reboots.
fn rebooted_pools<'a>(items: &[PlannedItem], facts: &'a Facts) -> Vec<Pool<'a>> {
    let details = items.iter().filter_map(|planned| planned.item.impact_detail.as_ref());
    let names: Vec<&str> = details
        .filter(|detail| detail.reboot)
        .flat_map(|detail| &detail.pools)
        .map(|pool| pool.name.as_str())
        .collect();
    pools::named(facts, &names)
}

/// Whether an item leaves an object as it is, in all fields that the item sets, removes or gives up.
fn changes_nothing(item: &Item, live: Option<&Value>, after: &Value) -> bool {
    let Some(live) = live else { return false };
    let mut ours =
        drift::leaves(item, Some(live)).into_iter().chain(fields::applied_by(live, field_manager::of_item(item)));
    drift::is_applied(item, Some(live)) && ours.all(|leaf| leaf.find(live) == leaf.find(after))
}

fn too_many_fields(target: &ObjectRef, item: &Item) -> Option<Refusal> {
    let found = item.removes.len().max(item.managed_fields.len());
    (found > bounds::FIELD_PATHS).then(|| Refusal::TooManyFields { target: target.to_string(), found })
}

impl PlannedItem {
    fn new(about: &'static ProfileInfo, intent: Intent, preview: Preview, facts: &Facts) -> Self {
        let manager = intent.field_manager(about, preview.live.as_ref());
        let Preview { live, outcome, takes_over } = preview;
        let (kind, name) = (intent.target.kind.kind, intent.target.name.as_str());
        let live = live.as_ref();
        let (operation, desired_state, remove) = match intent.change {
            Change::Delete => (Operation::Delete, None, Vec::new()),
            Change::Apply { fields, remove } => (Operation::Apply, fields.as_object().cloned(), remove),
        };
        let lost: Vec<Path> =
            remove.iter().filter(|path| live.is_some_and(|live| path.find(live).is_some())).cloned().collect();
        let mut item = Item {
            name: intent.name.clone().into_owned(),
            target_ref: intent.target.target(intent.version),
            operation,
            desired_state,
            takes_over: live.map_or(takes_over.clone(), |live| with_removed_fields(takes_over, live, &manager, &lost)),
            field_manager: Some(manager),
            managed_fields: intent.managed.iter().map(|path| path.clone().into_owned()).collect(),
            removes: remove.iter().map(Path::to_string).collect(),
            changed_since: intent.restores.iter().flat_map(|restores| restores.changed_since.clone()).collect(),
            ..Item::default()
        };
        let refused = conflict(about, &intent.target, &item, live, &item.takes_over)
            .or_else(|| too_many_fields(&intent.target, &item));
        let lost_by_autopilot = lost_by(autopilot::MANAGER, &item, live);
        let (after, refusal) = match outcome {
            PreviewOutcome::Object(_) | PreviewOutcome::Gone if refused.is_some() => (live.cloned(), refused),
            // Fields that others have just added, like a new default, are no change by the operator.
            PreviewOutcome::Object(object) if changes_nothing(&item, live, &object) => (live.cloned(), None),
            PreviewOutcome::Object(object) => (Some(object), None),
            PreviewOutcome::Gone => (None, None),
            PreviewOutcome::Refused(refusal) => (live.cloned(), Some(refusal)),
        };
        let previewed = after;
        let after = previewed.as_ref();
        let changes = diff::differ(live, after);
        let restores = intent.restores.is_some();
        let gives_up = restores && live.is_some_and(|live| fields::owns_anything(live, field_manager::of_item(&item)));
        let handovers = if refusal.is_none() { handovers(about, &item, live) } else { Vec::new() };
        let verb = match (&refusal, live.is_some(), after.is_some()) {
            (Some(_), ..) => Verb::Refused,
            (None, false, true) => Verb::Created,
            (None, true, false) => Verb::Deleted,
            (None, ..) if changes || gives_up || !handovers.is_empty() => Verb::Configured,
            (None, ..) => Verb::Unchanged,
        };
        let impact = match refusal {
            Some(_) => impact::unknown(intent.weight),
            None => impact::impact(intent.weight, live, after, changes, facts),
        };
        let shown = refusal.is_none();
        item.impact_severity = Some(impact.severity);
        item.impact_detail = impact.detail;
        item.diff = shown.then(|| diff::diff(kind, name, live, after));
        item.state = if shown { ItemState::Pending } else { ItemState::Failed };
        let handovers: String = handovers.iter().map(|handover| format!("; {handover}")).collect();
        item.message = Some(refusal.as_ref().map_or(intent.message + &handovers, Refusal::to_string));
        if let Some(Refusal::ProfileConflict { .. }) = refusal {
            item.takes_over.retain(|taken| !field_manager::is_of_a_profile(&taken.manager));
        }
        let fingerprint = drift::fingerprint(&item, live);
        item.source_fingerprint = Some(fingerprint.clone());
        let readable_diff = if shown { diff::readable(kind, name, live, after) } else { String::new() };
        PlannedItem {
            about,
            item,
            target: intent.target,
            version: intent.version,
            verb,
            why: intent.why,
            readable_diff,
            fingerprint,
            refusal,
            after: previewed,
            restores,
            lost_by_autopilot,
        }
    }

    /// Why the item may not be applied to the target, if another profile owns a field that it would change.
    pub fn conflict(&self, live: Option<&Value>) -> Option<Refusal> {
        conflict(self.about, &self.target, &self.item, live, &[])
    }

    /// Why the item may not be applied to the target, if the autopilot has taken fields since the plan was made.
    pub fn taken_by_autopilot(&self, live: Option<&Value>) -> Option<Refusal> {
        let mut fields = lost_by(autopilot::MANAGER, &self.item, live);
        fields.retain(|field| !self.lost_by_autopilot.contains(field));
        let opt_out = autopilot::opt_out(&self.item.target_ref);
        (!fields.is_empty()).then(|| Refusal::Autopilot { target: self.target.to_string(), fields, opt_out })
    }

    /// A refusal that shows only when the whole plan is known.
    fn refuse(&mut self, refusal: Refusal) {
        self.verb = Verb::Refused;
        self.item.state = ItemState::Failed;
        self.item.diff = None;
        self.item.message = Some(refusal.to_string());
        self.readable_diff = String::new();
        self.refusal = Some(refusal);
    }

    /// What a reviewer reads and approves. Without node counts: a pool that grows does not void an approval.
    fn reviewed(&self) -> Value {
        let Item {
            name,
            target_ref,
            operation,
            desired_state,
            removes,
            takes_over,
            changed_since,
            impact_severity,
            impact_detail,
            ..
        } = &self.item;
        let pools = impact_detail.iter().flat_map(|detail| &detail.pools).map(|pool| (&pool.name, pool.paused));
        json!({
            "name": name,
            "target": target_ref,
            "operation": operation,
            "desired": desired_state,
            "removes": removes,
            "takesOver": takes_over,
            "changedSince": changed_since,
            "severity": impact_severity,
            "reboot": impact_detail.as_ref().map(|detail| detail.reboot),
            "pools": pools.collect::<Vec<_>>(),
            "live": self.fingerprint,
            "refusal": self.refusal.as_ref().map(Refusal::reason),
        })
    }
}
