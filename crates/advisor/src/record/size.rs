//! Keeps a record within the size that the API server stores. Diffs are cut first; values that a restore needs never are.

use api::{
    VirtPlatformPlanRecordSpec, bounds,
    virt_platform_plan_record::{Leaf, RecordedItem},
};

use crate::text::{cut, shorten};

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

/// The spec with everything within its bounds.
pub(super) fn fitted(mut spec: VirtPlatformPlanRecordSpec) -> Result<VirtPlatformPlanRecordSpec, TooLarge> {
    spec.notes.truncate(bounds::SHORT_LIST);
    spec.notes.iter_mut().for_each(|note| *note = cut(std::mem::take(note), bounds::NOTE));
    spec.risks.truncate(bounds::SHORT_LIST);
    spec.risks.iter_mut().for_each(|risk| risk.message = cut(std::mem::take(&mut risk.message), bounds::NOTE));
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
    let Some(excess) = excess(&spec) else { return Ok(spec) };
    let weight = |item: &&RecordedItem| item.leaves.iter().map(bytes).sum::<usize>();
    let Some(largest) = spec.items.iter().max_by_key(weight) else { return Ok(spec) };
    let found = format!("the record would have {} bytes", bounds::RECORD + excess);
    Err(TooLarge::new(largest, found, format!("{} bytes", bounds::RECORD)))
}

/// How many bytes of the record are too many.
fn excess(spec: &VirtPlatformPlanRecordSpec) -> Option<usize> {
    // A spec can always be written as JSON.
    let size = serde_json::to_vec(spec).map_or(0, |text| text.len());
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
    item.takes_over.truncate(bounds::SHORT_LIST);
    for taken in &mut item.takes_over {
        shorten(&mut taken.manager, bounds::MANAGER);
        taken.fields.truncate(bounds::FIELD_PATHS);
        taken.fields.iter_mut().for_each(|field| shorten(field, bounds::FIELD_PATH));
    }
    for owner in item.leaves.iter_mut().flat_map(|leaf| &mut leaf.former_owners) {
        shorten(owner, bounds::MANAGER);
    }
    if let Some(detail) = &mut item.impact_detail {
        detail.pools.truncate(bounds::SHORT_LIST);
        let rendered = detail.pools.iter_mut().filter_map(|pool| pool.rendered.as_mut());
        rendered.for_each(|rendered| shorten(rendered, bounds::NAME));
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
