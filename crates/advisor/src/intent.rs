//! What a profile intends to do to one object, before the API server has previewed it.

use std::borrow::Cow;

use api::virt_platform_config::{PlanInput, Risk};
use serde_json::Value;

use crate::{ObjectRef, ProfileInfo, field_manager, fields::Path};

/// The changes of a plan, in order, and remarks for its readers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub intents: Vec<Intent>,
    /// For example why something needs no change.
    pub notes: Vec<String>,
    /// What may go wrong if the plan is applied.
    pub risks: Vec<Risk>,
    /// Settings of other objects that the plan as a whole was derived from.
    pub inputs: Vec<PlanInput>,
    pub left_out: Vec<LeftOut>,
}

/// An item that is not planned because somebody else manages what it would configure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub item: Cow<'static, str>,
    /// Who manages it, how that shows, and what to do.
    pub why: String,
    /// The object by which somebody else will manage it, if it does not exist yet.
    pub absent: Option<ObjectRef>,
}

/// A risk: its name, and how it was recognized.
pub fn risk(name: &str, message: impl Into<String>) -> Risk {
    Risk { name: name.to_owned(), message: message.into() }
}

impl Draft {
    /// No change, and a note that says why.
    pub fn note(text: String) -> Self {
        Draft { notes: vec![text], ..Draft::default() }
    }

    /// Appends another draft.
    pub fn and(mut self, other: Draft) -> Self {
        self.intents.extend(other.intents);
        self.notes.extend(other.notes);
        self.risks.extend(other.risks);
        self.inputs.extend(other.inputs);
        self.left_out.extend(other.left_out);
        self
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// Unique within the plan.
    pub name: Cow<'static, str>,
    pub target: ObjectRef,
    /// The version of the target's kind that is used.
    pub version: &'static str,
    pub change: Change,
    /// The fields that are managed, as shown to people. What lies at or below them is watched for drift.
    pub managed: Vec<Cow<'static, str>>,
    /// What will happen, for the item in the status.
    pub message: String,
    /// The purpose of the change.
    pub why: &'static str,
    /// Settings of other objects that the change was derived from.
    pub inputs: Vec<PlanInput>,
    pub weight: Weight,
    /// If it takes back what was applied before.
    pub restores: Option<Restoration>,
}

/// What is special about taking back an earlier change: afterwards its field manager owns nothing of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// The field manager of the earlier change. No other one can give its fields up.
    pub field_manager: String,
    /// What somebody else has changed since.
    pub changed_since: Vec<String>,
}

impl Intent {
    /// The field manager of both the preview and the write.
    pub fn field_manager(&self, about: &ProfileInfo, live: Option<&Value>) -> String {
        match &self.restores {
            Some(restoration) => restoration.field_manager.clone(),
            None => field_manager::of_profile(about, live, &self.managed),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Server-side apply of an object with just these fields; then the removal of fields that others may have set.
    Apply { fields: Value, remove: Vec<Path> },
    /// Deletion of an object that the operator owns.
    Delete,
}

/// How the impact of a change is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A component's configuration: new is Medium, changed is Low.
    Component,
    /// Behavior of the whole platform: Medium.
    Platform,
    /// Nodes: derived from what the machine config daemon will do.
    Nodes,
    /// Without any noticeable effect: Low.
    Negligible,
}
