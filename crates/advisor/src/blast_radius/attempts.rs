//! The attempts in which the machine config controller drains a node.

/// One attempt of the machine config controller to drain a node, in seconds.
const ATTEMPT: u64 = 90;
/// The pause after an attempt that failed early, and after one that failed after `LONG_PAUSE_AFTER`.
const PAUSE: u64 = 60;
const LONG_PAUSE: u64 = 300;
const LONG_PAUSE_AFTER: u64 = 600;
/// After this time a node that is not drained becomes Degraded, although the drain goes on.
pub(super) const DEGRADED_AFTER: u64 = 3600;

/// How many attempts it makes at a time, on all nodes of the cluster.
pub(super) const AT_A_TIME: u64 = 5;

/// When the drain of a node is seen to be over, if nothing is left on it after this time: during an attempt at once, during a pause
/// with the next attempt.
pub(super) fn noticed(seconds: u64) -> u64 {
    let mut start = 0_u64;
    loop {
        let end = start.saturating_add(ATTEMPT);
        if seconds <= end {
            return seconds.max(start);
        }
        let next = end.saturating_add(if end < LONG_PAUSE_AFTER { PAUSE } else { LONG_PAUSE });
        // From here on it repeats: an attempt and a long pause.
        let skipped = if end >= LONG_PAUSE_AFTER { seconds.saturating_sub(next) / (ATTEMPT + LONG_PAUSE) } else { 0 };
        start = next + skipped * (ATTEMPT + LONG_PAUSE);
    }
}

/// The same at the latest, if so many nodes drain at the same time: before each attempt a node may have to wait for those of others,
/// one per node, and of these some go on together.
pub(super) fn noticed_at_most(seconds: u64, nodes: u64) -> u64 {
    let wait = (nodes.max(1).div_ceil(AT_A_TIME) - 1).saturating_mul(ATTEMPT);
    if wait == 0 {
        return noticed(seconds);
    }
    // Nothing leaves the node before the first attempt. Whatever is over after that attempt is noticed by a later one.
    let pause = match seconds {
        0..=ATTEMPT => 0,
        _ if seconds <= LONG_PAUSE_AFTER => PAUSE.saturating_add(wait),
        _ => LONG_PAUSE.saturating_add(wait),
    };
    wait.saturating_add(seconds).saturating_add(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_ends_with_an_attempt() {
        for (work, expected, why) in [
            (0, 0, "nothing to do"),
            (30, 30, "within the first attempt"),
            (90, 90, "at its end"),
            (91, 150, "in the pause: with the second attempt"),
            (200, 200, "within the second attempt"),
            (600, 600, "within the fifth attempt"),
            (691, 990, "after ten minutes pauses are long"),
            (3400, 3400, "within a late attempt"),
            (3600, 3720, "after an hour: in a pause"),
            (1081, 1380, "and stay long"),
        ] {
            assert_eq!(noticed(work), expected, "{work}: {why}");
        }
        let lags = (0..20_000).map(|work| (work, noticed(work) - work));
        for (work, lag) in lags {
            assert!(lag < if work < 600 { 61 } else { 301 }, "{work}: {lag}");
        }
        assert!(noticed(1 << 40) >= 1 << 40, "and it is computed quickly");
        for less in 0..400 {
            assert!(noticed(u64::MAX - less) >= u64::MAX - less, "whatever somebody has written into an object");
        }
    }

    /// The controller as it is: attempts wait in a queue for one of five workers, and pauses do not.
    fn played(work: &[u64]) -> Vec<u64> {
        let (mut queue, mut waiting): (Vec<usize>, Vec<(u64, usize)>) = ((0..work.len()).collect(), Vec::new());
        let mut workers = [(0_u64, None::<usize>); 5];
        let (mut begun, mut done) = (vec![None; work.len()], vec![None; work.len()]);
        for now in 0_u64.. {
            for (until, node) in workers.iter_mut().filter(|(until, _)| *until == now) {
                let Some(node) = node.take() else { continue };
                let drained: u64 = begun[node].unwrap_or(now) + work[node];
                if drained <= *until {
                    done[node] = Some(now);
                } else {
                    let pause = if now - begun[node].unwrap_or(now) < LONG_PAUSE_AFTER { PAUSE } else { LONG_PAUSE };
                    waiting.push((now + pause, node));
                }
            }
            if done.iter().all(Option::is_some) {
                return done.into_iter().flatten().collect();
            }
            queue.extend(waiting.iter().filter(|(at, _)| *at == now).map(|(_, node)| *node));
            waiting.retain(|(at, _)| *at > now);
            for worker in workers.iter_mut().filter(|(_, node)| node.is_none()) {
                if queue.is_empty() {
                    break;
                }
                let node = queue.remove(0);
                let drained = *begun[node].get_or_insert(now) + work[node];
                *worker = (drained.clamp(now + 1, now + ATTEMPT), Some(node));
            }
        }
        unreachable!("every drain ends")
    }

    #[test]
    fn more_nodes_than_are_worked_on_at_a_time_wait_for_each_other() {
        for (work, nodes, expected, why) in [
            (30, 5, 30, "each has its own worker"),
            (91, 5, 150, "and only its own pauses"),
            (30, 6, 90 + 30, "behind the first attempt of another node"),
            (30, 10, 90 + 30, "two by two"),
            (30, 11, 180 + 30, "behind two others"),
            (100, 6, 90 + 100 + 60 + 90, "and once more before the second attempt"),
            (1000, 6, 90 + 1000 + 300 + 90, "which comes later after ten minutes"),
        ] {
            assert_eq!(noticed_at_most(work, nodes), expected, "{work} {nodes}: {why}");
        }
        assert_eq!(noticed_at_most(u64::MAX, u64::MAX), u64::MAX);
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut is_needed = false;
        for _ in 0..200 {
            let work: Vec<u64> = (0..1 + next(14)).map(|_| 1 + next(1500)).collect();
            for (node, took) in played(&work).into_iter().enumerate() {
                let at_most = noticed_at_most(work[node], work.len() as u64);
                assert!(took <= at_most + 1, "{work:?}: node {node} took {took} s, and not {at_most} s");
                is_needed |= took > noticed(work[node]) + 1;
            }
        }
        assert!(is_needed, "without the waits it would be too little");
    }
}
