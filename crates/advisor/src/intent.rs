//! What a profile means to do to one object, before anybody asked the API server what would come of it.

use api::virt_platform_config::{Input, Risk};
use serde_json::Value;

use crate::{About, ObjectRef, field_manager, fields::Path};

/// The changes of a plan, in order, and remarks for whoever reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    pub intents: Vec<Intent>,
    /// For example why something needs no change.
    pub notes: Vec<String>,
    /// What may go wrong if it is carried out.
    pub risks: Vec<Risk>,
}

/// A risk by its name, with what it is seen from.
pub fn risk(name: &str, message: impl Into<String>) -> Risk {
    Risk { name: name.to_owned(), message: message.into() }
}

impl Draft {
    /// Nothing to do, and why.
    pub fn note(text: String) -> Self {
        Draft { notes: vec![text], ..Draft::default() }
    }

    /// This, then the other.
    pub fn and(mut self, other: Draft) -> Self {
        self.intents.extend(other.intents);
        self.notes.extend(other.notes);
        self.risks.extend(other.risks);
        self
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// Unique within the plan.
    pub name: &'static str,
    pub target: ObjectRef,
    /// The version of the target's kind that is used.
    pub version: &'static str,
    pub change: Change,
    /// The fields that are managed, as shown to people. What lies at or below them is watched for drift.
    pub managed: Vec<&'static str>,
    /// What will happen, for the item in the status.
    pub message: String,
    /// What it is good for.
    pub why: &'static str,
    /// Settings of other objects that the change was derived from.
    pub inputs: Vec<Input>,
    pub weight: Weight,
}

impl Intent {
    /// Under which name it is applied to its target, previewed and written alike.
    pub fn field_manager(&self, about: &About, live: Option<&Value>) -> String {
        field_manager::of_profile(about, live, &self.managed)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Server-side apply of an object with just these fields; then the removal of fields that others may have set.
    Apply { fields: Value, remove: Vec<Path> },
    /// Deletion of an object that is ours.
    Delete,
}

/// How the impact of a change is weighed, if there is a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A component's configuration: new is Medium, changed is Low.
    Component,
    /// Behavior of the whole platform: Medium.
    Platform,
    /// Nodes: by what the machine config daemon will have to do.
    Nodes,
    /// Nothing that anybody would notice: Low.
    Trifle,
}
