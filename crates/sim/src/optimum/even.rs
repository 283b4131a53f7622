//! Few migrations after which a cluster is balanced: nodes are brought between a level and the level plus the gap.

use super::problem::{Placement, Problem, greatest};

/// The number of destinations that are tried for a migration, the least used first.
const DESTINATIONS: usize = 8;

/// The number of migrations after which the cluster is balanced around this level, if that takes fewer than `most`.
pub(super) fn migrations(problem: &Problem, level: f64, gap: f64, most: u64) -> Option<u64> {
    let mut placement = Placement::start(problem);
    let mut leaving = problem.movable();
    let mut open: Vec<usize> = problem.open().collect();
    for made in 0..most {
        if placement.is_balanced() {
            return Some(made);
        }
        open.sort_by(|one, other| placement.usage(*one).total_cmp(&placement.usage(*other)).then(one.cmp(other)));
        let (vm, from, to) = next(&placement, &leaving, &open, level, level + gap)?;
        placement.relocate(vm, to);
        leaving[from].retain(|(_, other)| *other != vm);
    }
    None
}

/// A VM of the most used node that can give one, and where it goes.
fn next(
    placement: &Placement<'_>,
    leaving: &[Vec<(f64, usize)>],
    open: &[usize],
    low: f64,
    high: f64,
) -> Option<(usize, usize, usize)> {
    let nodes = &placement.problem.nodes;
    for from in open.iter().rev() {
        let list = &leaving[*from];
        let (usage, cores) = (placement.usage(*from), nodes[*from].cores);
        for to in open.iter().take(DESTINATIONS).filter(|to| *to != from) {
            // A node that is too high gives what is too much, or what another one needs if that is more.
            let lacks = greatest(0.0, (low - placement.usage(*to)) * nodes[*to].cores);
            let gives = greatest(0.0, (usage - high) * cores);
            let wanted = greatest(gives, lacks);
            let may_give = if gives > 0.0 { f64::INFINITY } else { (usage - low) * cores };
            let may_take = (high - placement.usage(*to)) * nodes[*to].cores;
            let fits =
                |(known, vm): &&(f64, usize)| *known <= may_give && *known <= may_take && placement.fits(*vm, *to);
            let enough = list.partition_point(|(known, _)| *known >= wanted);
            let found = list[..enough].iter().rev().find(fits).or_else(|| list[enough..].iter().find(fits));
            if let Some((_, vm)) = found.filter(|_| wanted > 0.0) {
                return Some((*vm, *from, *to));
            }
        }
    }
    None
}
