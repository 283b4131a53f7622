//! How long ago something was, as kubectl writes it.

use jiff::Timestamp;

/// `3d4h`, `12m`, `45s`
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |whole: i64, unit: char, rest: i64, small: char| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{small}"),
    };
    match (minutes, hours, days) {
        (0..2, ..) => format!("{seconds}s"),
        (2..10, ..) => two(minutes, 'm', seconds % 60, 's'),
        (_, 0..3, _) => format!("{minutes}m"),
        (_, 3..8, _) => two(hours, 'h', minutes % 60, 'm'),
        (_, 8..48, _) => format!("{hours}h"),
        (.., 2..8) => two(days, 'd', hours % 24, 'h'),
        _ => format!("{days}d"),
    }
}

/// `2026-03-02 22:00`, in UTC
pub fn minute(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn an_age_has_two_units_at_most() {
        let now: Timestamp = "2026-03-02T22:00:00Z".parse().unwrap();
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (190, "3m10s"),
            (3600, "60m"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600 + 60, "8h"),
            (47 * 3600, "47h"),
            (52 * 3600, "2d4h"),
            (30 * 86_400, "30d"),
        ] {
            assert_eq!(age(now - SignedDuration::from_secs(seconds), now), expected);
        }
        assert_eq!(minute(now), "2026-03-02 22:00");
    }
}
