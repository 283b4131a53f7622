//! What has changed between two looks at a configuration, one line for each change: for logs, and for people without a terminal.

use super::{ConfigStatus, NodePhase, NodeProgress, PoolProgress};

/// The changes since `before`, which is None at the first look. Nodes at rest are not worth a line then.
pub fn changes(before: Option<&ConfigStatus>, now: &ConfigStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if before.map(head) != Some(head(now)) {
        lines.push(format!("{}: {}", now.profile, head(now)));
    }
    for pool in &now.pools {
        let known = before.and_then(|before| before.pools.iter().find(|known| known.name == pool.name));
        if known.map(progress) != Some(progress(pool)) {
            lines.push(format!("{} {}: {}", now.profile, pool.name, progress(pool)));
        }
        for node in &pool.nodes {
            let same = |known: &&NodeProgress| known.name == node.name;
            let known = known.and_then(|known| known.nodes.iter().find(same));
            let is_news = match known {
                Some(known) => (known.phase, &known.reason) != (node.phase, &node.reason),
                None => !matches!(node.phase, NodePhase::Waiting | NodePhase::Updated),
            };
            if is_news {
                let reason = node.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                lines.push(format!("{} {} {}: {}{reason}", now.profile, pool.name, node.name, node.phase.word()));
            }
        }
    }
    for guest in &now.guests {
        let same = |known: &&super::GuestState| (&known.namespace, &known.name) == (&guest.namespace, &guest.name);
        let known = before.and_then(|before| before.guests.iter().find(same));
        if known.map(|known| (&known.what, &known.node)) != Some((&guest.what, &guest.node)) {
            let name = format!("{}/{}", guest.namespace, guest.name);
            lines.push(format!("{} {}: {name} {}", now.profile, guest.node, guest.what));
        }
    }
    lines
}

/// `InProgress`, and why somebody has to look.
fn head(config: &ConfigStatus) -> String {
    let phase = config.phase.map_or("not seen by the operator yet", |phase| phase.as_str());
    match config.health.as_ref().filter(|health| health.is_stalled()) {
        Some(health) => format!("{phase}, stalled ({}): {}", health.reason, health.message),
        None => phase.to_owned(),
    }
}

/// `Updating, 3 of 6 nodes`
fn progress(pool: &PoolProgress) -> String {
    let counts = pool.updated.zip(pool.total);
    let counts = counts.map_or_else(String::new, |(updated, total)| format!(", {updated} of {total} nodes"));
    let cause = pool.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{}{counts}{cause}", pool.state)
}

#[cfg(test)]
mod tests {
    use api::virt_platform_config::{Action, Phase};

    use super::*;
    use crate::{blast_radius::Estimate, rollout_view::node_phase::State};

    fn config(phase: Phase, updated: usize, nodes: &[(&str, NodePhase)]) -> ConfigStatus {
        let pool = PoolProgress {
            name: "worker".into(),
            state: "Updating",
            updated: Some(updated),
            total: Some(2),
            since: None,
            last_progress: None,
            cause: None,
            remaining: Estimate::UNKNOWN,
            nodes: nodes.iter().map(|(name, phase)| State::new(*phase, None).named(name)).collect(),
        };
        ConfigStatus {
            profile: "p".into(),
            phase: Some(phase),
            since: None,
            action: Action::Apply,
            plan_digest: None,
            approved: None,
            not_before: None,
            not_after: None,
            window: None,
            health: None,
            pools: if phase == Phase::InProgress { vec![pool] } else { Vec::new() },
            guests: Vec::new(),
            events: Vec::new(),
        }
    }

    #[test]
    fn every_change_is_a_line_and_nothing_else_is() {
        use NodePhase::*;
        let review = config(Phase::ReviewRequired, 0, &[]);
        let begun = config(Phase::InProgress, 0, &[("a", Draining), ("b", Waiting)]);
        let further = config(Phase::InProgress, 0, &[("a", Rebooting), ("b", Waiting)]);
        let half = config(Phase::InProgress, 1, &[("b", Waiting), ("a", Updated)]);
        let done = config(Phase::Completed, 2, &[]);
        assert_eq!(changes(None, &review), ["p: ReviewRequired"]);
        let first = ["p: InProgress", "p worker: Updating, 0 of 2 nodes", "p worker a: draining"];
        assert_eq!(changes(Some(&review), &begun), first);
        assert_eq!(changes(Some(&begun), &further), ["p worker a: rebooting"]);
        assert_eq!(changes(Some(&further), &half), ["p worker: Updating, 1 of 2 nodes", "p worker a: updated"]);
        assert_eq!(changes(Some(&half), &half), [""; 0]);
        assert_eq!(changes(Some(&half), &done), ["p: Completed"]);
    }
}
