//! What the status says about the pools that an item waits for, and whether they get on.
//!
//! A pool gets on when one more of its nodes is updated. Nobody expects that of a paused pool, so its time begins when it is resumed.

use std::time::Duration;

use api::virt_platform_config::{Item, PoolRollout, RolloutState};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use crate::rollout::PoolWait;

/// What follows from the pools of an item.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) message: String,
    /// Whether a pool does not get on.
    pub(super) is_stuck: bool,
    /// When the next pool would be stuck.
    pub(super) stuck_in: Option<Duration>,
}

/// Stores on an item which pools it waits for.
pub(super) fn keep(item: &mut Item, waits: Vec<PoolWait>, now: Timestamp, stuck_after: Duration) -> Kept {
    let mut kept = Kept::default();
    let mut messages = Vec::new();
    let before = std::mem::take(&mut item.rollout);
    for wait in waits {
        let known = before.iter().find(|known| known.pool == wait.pool);
        let progress = last_progress(known, &wait, now);
        let waited = Duration::try_from(now.duration_since(progress)).unwrap_or_default();
        let left = stuck_after.saturating_sub(waited);
        let is_stuck = wait.state != RolloutState::Paused && left.is_zero();
        if wait.state != RolloutState::Paused && !is_stuck {
            kept.stuck_in = Some(kept.stuck_in.map_or(left, |earlier| earlier.min(left)));
        }
        kept.is_stuck |= is_stuck;
        let stuck = format!("no node was updated since {progress:.0}");
        messages.push(if is_stuck { format!("{}; {stuck}", wait.message) } else { wait.message });
        // What is wrong with a pool says more than that it does not get on.
        let is_unexplained = matches!(wait.state, RolloutState::Pending | RolloutState::Updating);
        let (state, cause) = match is_stuck && is_unexplained {
            true => (RolloutState::NoProgress, Some(wait.cause.unwrap_or(stuck))),
            false => (wait.state, wait.cause),
        };
        let same = known.filter(|known| known.state == state).and_then(|known| known.since.as_ref());
        item.rollout.push(PoolRollout {
            pool: wait.pool,
            state,
            updated: wait.updated,
            total: wait.total,
            since: Some(Time(same.map_or(now, |since| since.0.min(now)))),
            last_progress: Some(Time(progress)),
            cause,
        });
    }
    kept.message = messages.join("; ");
    kept
}

/// When the number of updated nodes last changed. It falls when the pool begins: until then it counts the nodes that run what was there
/// before. A time in the future was written by a wrong clock.
fn last_progress(known: Option<&PoolRollout>, wait: &PoolWait, now: Timestamp) -> Timestamp {
    let Some(known) = known else { return now };
    let is_resumed = known.state == RolloutState::Paused && wait.state != RolloutState::Paused;
    let has_moved = wait.updated != known.updated;
    match &known.last_progress {
        Some(time) if !is_resumed && !has_moved => time.0.min(now),
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RolloutState::*;

    const LIMIT: Duration = Duration::from_secs(600);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wait(state: RolloutState, updated: i32) -> PoolWait {
        let cause = (state == Degraded).then(|| "node n".to_owned());
        PoolWait { pool: "worker".into(), state, updated: Some(updated), total: Some(6), cause, message: "it".into() }
    }

    /// What a pool does, second by second: its state, how many nodes are updated; and the state, since when it holds, when a node
    /// was last updated, whether it is stuck, and in how many seconds it would be.
    #[test]
    fn a_pool_is_stuck_when_no_node_was_updated_for_too_long() {
        type Row = (i64, RolloutState, i32, RolloutState, i64, i64, bool, Option<u64>);
        let story: [(&str, &[Row]); 5] = [
            (
                "node after node",
                &[
                    (0, Pending, 6, Pending, 0, 0, false, Some(600)),
                    (60, Updating, 0, Updating, 60, 60, false, Some(600)),
                    (500, Updating, 1, Updating, 60, 500, false, Some(600)),
                    (1099, Updating, 2, Updating, 60, 1099, false, Some(600)),
                ],
            ),
            (
                "stuck, and then it moves",
                &[
                    (0, Updating, 2, Updating, 0, 0, false, Some(600)),
                    (599, Updating, 2, Updating, 0, 0, false, Some(1)),
                    (600, Updating, 2, NoProgress, 600, 0, true, None),
                    (900, Updating, 2, NoProgress, 600, 0, true, None),
                    (950, Updating, 3, Updating, 950, 950, false, Some(600)),
                ],
            ),
            (
                "begun late",
                &[
                    (0, Pending, 6, Pending, 0, 0, false, Some(600)),
                    (700, Pending, 6, NoProgress, 700, 0, true, None),
                    (800, Updating, 0, Updating, 800, 800, false, Some(600)),
                ],
            ),
            (
                "paused for a day, and resumed",
                &[
                    (0, Updating, 2, Updating, 0, 0, false, Some(600)),
                    (100, Paused, 2, Paused, 100, 0, false, None),
                    (86_400, Paused, 2, Paused, 100, 0, false, None),
                    (86_500, Updating, 2, Updating, 86_500, 86_500, false, Some(600)),
                ],
            ),
            (
                "a degraded pool keeps its cause",
                &[
                    (0, Degraded, 2, Degraded, 0, 0, false, Some(600)),
                    (600, Degraded, 2, Degraded, 0, 0, true, None),
                    (700, Updating, 2, NoProgress, 700, 0, true, None),
                    (800, Degraded, 3, Degraded, 800, 800, false, Some(600)),
                ],
            ),
        ];
        for (case, rows) in story {
            let mut item = Item::default();
            for (second, seen, updated, state, since, progress, is_stuck, stuck_in) in rows {
                let kept = keep(&mut item, vec![wait(*seen, *updated)], at(*second), LIMIT);
                let [pool] = &item.rollout[..] else { panic!("{case}") };
                let times = [&pool.since, &pool.last_progress].map(|time| time.as_ref().unwrap().0.as_second());
                assert_eq!((pool.state, times), (*state, [*since, *progress]), "{case} at {second}");
                let stuck_in = stuck_in.map(Duration::from_secs);
                assert_eq!((kept.is_stuck, kept.stuck_in), (*is_stuck, stuck_in), "{case} at {second}");
                let told = kept.message.contains("no node was updated since");
                assert_eq!(told, *is_stuck, "{case} at {second}: {}", kept.message);
                assert!(*state != NoProgress || pool.cause.is_some(), "{case} at {second}");
                assert_eq!(pool.cause.as_deref() == Some("node n"), *seen == Degraded, "{case} at {second}");
            }
        }
    }

    #[test]
    fn the_next_pool_that_would_be_stuck_decides_and_a_pool_that_is_done_is_forgotten() {
        let mut item = Item::default();
        let infra = || PoolWait { pool: "infra".into(), ..wait(Updating, 0) };
        keep(&mut item, vec![wait(Updating, 0)], at(0), LIMIT);
        let kept = keep(&mut item, vec![wait(Updating, 0), infra()], at(100), LIMIT);
        assert_eq!(kept.stuck_in, Some(Duration::from_secs(500)));
        keep(&mut item, vec![infra()], at(200), LIMIT);
        assert_eq!(item.rollout.iter().map(|pool| pool.pool.as_str()).collect::<Vec<_>>(), ["infra"]);
        assert_eq!(keep(&mut item, Vec::new(), at(300), LIMIT), Kept::default());
        assert!(item.rollout.is_empty());
    }

    #[test]
    fn times_of_a_clock_that_was_ahead_are_corrected() {
        let mut item = Item::default();
        keep(&mut item, vec![wait(Updating, 0)], at(5_000), LIMIT);
        let kept = keep(&mut item, vec![wait(Updating, 0)], at(1_000), LIMIT);
        assert_eq!(kept.stuck_in, Some(LIMIT));
        assert_eq!(item.rollout[0].since, Some(Time(at(1_000))));
    }
}
