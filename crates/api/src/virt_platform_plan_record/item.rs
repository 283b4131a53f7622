//! One item of a recorded plan: what was reviewed, and each managed leaf of the target before and after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::virt_platform_config::{ImpactDetail, Operation, Severity, TakeOver, TargetRef};

/// A change to one object, as it was reviewed, and what was there before.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedItem {
    /// Name of the change, unique within the plan.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub name: String,

    /// The object that is changed.
    pub target_ref: TargetRef,

    /// What is done to the target.
    ///
    /// - Apply: the object is created, or fields of it are set.
    /// - Delete: the object is deleted.
    pub operation: Operation,

    /// The field manager under which the item is applied.
    #[schemars(length(min = 1, max = bounds::MANAGER))]
    pub field_manager: String,

    /// How much the change disturbs, as reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Severity>,

    /// What stands behind impactSeverity, as reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_detail: Option<ImpactDetail>,

    /// The reviewed change as a unified diff of the objects as they are stored. It is cut when the record would
    /// become too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::DIFF))]
    pub diff: Option<String>,

    /// The same with decoded files. Absent when it says the same as diff; cut before diff is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::DIFF))]
    pub readable_diff: Option<String>,

    /// Who lost fields to this item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["manager"])
    )]
    pub takes_over: Vec<TakeOver>,

    /// Whether the object existed before. If not, restoring deletes it.
    pub existed: bool,

    /// The metadata.uid that the object had before. Absent when it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,

    /// The fields that the item sets, takes out or gives up, each with its value before and after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = bounds::LEAVES), extend("x-kubernetes-list-type" = "atomic"))]
    pub leaves: Vec<Leaf>,

    /// Maps that did not exist before, as paths. Restoring takes them out if nothing is left in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::LEAVES),
        inner(length(max = bounds::PATH_ELEMENTS), inner(length(max = bounds::FIELD_PATH))),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub created_maps: Vec<Vec<String>>,
}

impl RecordedItem {
    /// Whether the plan has changed the target, if the item was applied.
    pub fn changes_something(&self) -> bool {
        !self.leaves.is_empty() || !self.existed
    }
}

/// One field of the target.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaf {
    /// The path of the field, one entry per step, written as in metadata.managedFields: f:NAME is a member of a
    /// map, k:{...} the entry of a list with these keys, v:VALUE an entry of a set, i:NUMBER an entry by index.
    #[schemars(
        length(max = bounds::PATH_ELEMENTS),
        inner(length(max = bounds::FIELD_PATH)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub path: Vec<String>,

    /// The value before, written as JSON. Absent when the field did not exist, or is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::RECORD))]
    pub before: Option<String>,

    /// The value after, as previewed, written as JSON. Absent when the field no longer exists, or is masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::RECORD))]
    pub after: Option<String>,

    /// The field managers that owned the field before. Empty when none did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        inner(length(max = bounds::MANAGER)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub former_owners: Vec<String>,

    /// Whether the values are secret and therefore not recorded. Such a field cannot be restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub masked: bool,
}
