//! Keeps a record within the size that the API server stores. Diffs are cut first; values that a restore needs never are.

use api::{
    VirtPlatformPlanRecordSpec, bounds,
    virt_platform_config::Risk,
    virt_platform_plan_record::{Leaf, RecordedItem},
};
use serde::Serialize;
use serde_json::json;

use crate::truncate::{self, cut, shorten};

/// A plan whose record does not fit. It must not be applied, because it could not be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "The values that item '{item}' replaces in {target} do not fit into a record ({found}, at most {limit}), and what is not recorded \
     could not be restored: nothing is applied. Move what others keep in this object to an object of its own, or shorten it; then plan \
     again"
)]
pub struct TooLarge {
    pub item: String,
    pub target: String,
    pub found: String,
    pub limit: String,
}

impl TooLarge {
    fn new(item: &RecordedItem, found: String, limit: String) -> Self {
        let target = format!("{} {}", item.target_ref.kind, item.target_ref.name);
        TooLarge { item: item.name.clone(), target, found, limit }
    }
}

/// Whether a plan fits into a record without its diffs, whatever its options and its approval are.
pub(super) fn check(
    mut items: Vec<RecordedItem>,
    mut notes: Vec<String>,
    mut risks: Vec<Risk>,
) -> Result<(), TooLarge> {
    truncate::notes(&mut notes);
    truncate::risks(&mut risks);
    for item in &mut items {
        (item.diff, item.readable_diff) = (None, None);
        bound(item);
        check_counts(item)?;
    }
    match excess(&json!({"items": items, "notes": notes, "risks": risks})) {
        Some(excess) => Err(too_many_bytes(&items, excess)),
        None => Ok(()),
    }
}

/// The spec with everything within its bounds.
pub(super) fn fitted(mut spec: VirtPlatformPlanRecordSpec) -> Result<VirtPlatformPlanRecordSpec, TooLarge> {
    truncate::notes(&mut spec.notes);
    truncate::risks(&mut spec.risks);
    for item in &mut spec.items {
        bound(item);
        check_counts(item)?;
    }
    let parts: [fn(&mut RecordedItem) -> &mut Option<String>; 2] =
        [|item| &mut item.readable_diff, |item| &mut item.diff];
    for part in parts {
        while let Some(excess) = excess(&spec) {
            let longest = spec.items.iter_mut().map(part).filter(|text| text.is_some());
            let Some(text) = longest.max_by_key(|text| text.as_ref().map_or(0, String::len)) else { break };
            *text = text.take().and_then(|text| shortened(text, excess));
        }
    }
    match excess(&spec).filter(|excess| *excess > bounds::RECORD_HEAD) {
        Some(excess) => Err(too_many_bytes(&spec.items, excess)),
        None => Ok(spec),
    }
}

/// Blames the item with the longest values.
fn too_many_bytes(items: &[RecordedItem], excess: usize) -> TooLarge {
    let weight = |item: &&RecordedItem| item.leaves.iter().map(bytes).sum::<usize>();
    let found = format!("the record would have {} bytes", bounds::RECORD + excess);
    let none = RecordedItem::default();
    let largest = items.iter().max_by_key(weight).unwrap_or(&none);
    TooLarge::new(largest, found, format!("{} bytes", bounds::RECORD))
}

/// How many bytes of a record are too many.
fn excess(record: &impl Serialize) -> Option<usize> {
    // It can always be written as JSON.
    let size = serde_json::to_vec(record).map_or(0, |text| text.len());
    size.checked_sub(bounds::RECORD).filter(|excess| *excess > 0)
}

/// The text without this many bytes, or nothing if nothing would be left.
fn shortened(text: String, excess: usize) -> Option<String> {
    /// More than the remark at the end of a text that was cut.
    const REMARK: usize = 64;
    let left = text.len().checked_sub(excess + REMARK)?;
    (left > REMARK).then(|| cut(text, left))
}

fn bytes(leaf: &Leaf) -> usize {
    leaf.before.as_ref().map_or(0, String::len) + leaf.after.as_ref().map_or(0, String::len)
}

fn bound(item: &mut RecordedItem) {
    item.diff = item.diff.take().map(|diff| cut(diff, bounds::DIFF));
    item.readable_diff = item.readable_diff.take().map(|diff| cut(diff, bounds::DIFF));
    truncate::take_overs(&mut item.takes_over);
    item.impact_detail.iter_mut().for_each(truncate::impact_detail);
    for owner in item.leaves.iter_mut().flat_map(|leaf| &mut leaf.former_owners) {
        shorten(owner, bounds::MANAGER);
    }
}

/// A path that was cut would be another path.
fn check_counts(item: &RecordedItem) -> Result<(), TooLarge> {
    let paths = || item.leaves.iter().map(|leaf| &leaf.path).chain(&item.created_maps);
    let too_large = |found: String, limit: String| Err(TooLarge::new(item, found, limit));
    if item.leaves.len().max(item.created_maps.len()) > bounds::LEAVES {
        return too_large(format!("{} fields", item.leaves.len()), format!("{} fields", bounds::LEAVES));
    }
    if let Some(deep) = paths().map(Vec::len).max().filter(|deep| *deep > bounds::PATH_ELEMENTS) {
        return too_large(format!("a field at depth {deep}"), format!("depth {}", bounds::PATH_ELEMENTS));
    }
    // The schema counts characters, of which there are at most as many.
    let long = paths().flatten().map(String::len).max().filter(|long| *long > bounds::FIELD_PATH);
    long.map_or(Ok(()), |long| {
        too_large(format!("a field whose name has {long} bytes"), format!("{} bytes", bounds::FIELD_PATH))
    })
}
