//! What is left out of a screen that is too low. The virtual machines that hold a node, and what stalls, go last.

use super::{Look, StatusReport, render_in};

/// So many nodes of a pool at rest, and so many virtual machines, are listed without --all.
const ROWS: usize = 12;

/// How much of each part is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// Nodes of a pool on which something happens.
    pub(super) busy: usize,
    /// Rows of nodes of a pool, as long as there are nodes at rest to fill them.
    pub(super) nodes: usize,
    pub(super) guests: usize,
    pub(super) events: usize,
    /// Only what somebody has to look at: no facts about the plan, nothing twice.
    pub(super) is_brief: bool,
    /// Without lines between the parts.
    pub(super) is_dense: bool,
}

impl Room {
    /// As much as there is without a limit.
    pub(super) fn open(all: bool) -> Self {
        let rows = if all { usize::MAX } else { ROWS };
        Room { busy: usize::MAX, nodes: rows, guests: rows, events: usize::MAX, is_brief: false, is_dense: false }
    }

    /// From everything to the least.
    fn all(all: bool) -> [Room; 10] {
        let open = Room::open(all);
        let counted = Room { nodes: 0, ..open };
        let brief = Room { events: 0, is_brief: true, ..counted };
        let dense = Room { is_dense: true, ..brief };
        [
            open,
            Room { nodes: 6, ..open },
            counted,
            Room { events: 2, ..counted },
            Room { events: 0, ..counted },
            brief,
            dense,
            Room { busy: 6, guests: 12, ..dense },
            Room { busy: 3, guests: 6, ..dense },
            Room { busy: 2, guests: 3, ..dense },
        ]
    }
}

/// The screen in at most so many lines. The last line says so where it is still too long.
pub(in crate::status) fn fitted(report: &StatusReport, look: &Look, height: usize) -> String {
    let mut text = String::new();
    for room in Room::all(look.all) {
        text = render_in(report, look, room);
        if text.lines().count() <= height {
            return text;
        }
    }
    let lines: Vec<&str> = text.lines().collect();
    let (shown, hidden) = lines.split_at(height.saturating_sub(1).min(lines.len()));
    let shown: String = shown.iter().map(|line| format!("{line}\n")).collect();
    format!("{shown}{} more lines in a larger window\n", hidden.len())
}
