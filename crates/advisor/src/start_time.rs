//! When an approved plan may start: not before a time, not after a time, and within a weekly window.

use std::time::Duration;

use api::virt_platform_config::{Approval, MaintenanceWindow, Weekday};
use jiff::{SignedDuration, Timestamp, ToSpan, civil, tz::TimeZone};

/// A window lasts a week at most, so no other one reaches the present.
const DAYS_BACK: i64 = 8;
/// Each day of the week occurs once within these.
const DAYS_AHEAD: i64 = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartTime {
    Now,
    At(Timestamp),
    /// The approval ended at this time, or ends before its window opens.
    Expired(Timestamp),
    Invalid(InvalidWindow),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWindow {
    #[error("spec.approval.window.timeZone: there is no time zone '{0}'. Use a name such as Europe/Berlin or UTC")]
    TimeZone(String),
    #[error("spec.approval.window.start: '{0}' is not a time of day such as 22:00")]
    Start(String),
    #[error("spec.approval.window.duration: {0}")]
    Duration(String),
    #[error("spec.approval.window: it never opens in time zone '{0}'")]
    Never(String),
}

/// When a plan with this approval may start, or start something that reboots nodes.
pub fn start_time(approval: Option<&Approval>, now: Timestamp) -> StartTime {
    let Some(approval) = approval else { return StartTime::Now };
    let earliest = approval.not_before.as_ref().map_or(now, |time| time.0.max(now));
    let opens = match approval.window.as_ref().map(|window| next_opening(window, earliest)) {
        Some(Ok(opens)) => opens,
        Some(Err(error)) => return StartTime::Invalid(error),
        None => earliest,
    };
    match &approval.not_after {
        Some(end) if opens >= end.0 => StartTime::Expired(end.0),
        _ if opens <= now => StartTime::Now,
        _ => StartTime::At(opens),
    }
}

/// The first time from `from` on at which the window is open.
fn next_opening(window: &MaintenanceWindow, from: Timestamp) -> Result<Timestamp, InvalidWindow> {
    let name = window.time_zone.as_deref().unwrap_or("UTC");
    let zone = TimeZone::get(name).map_err(|_| InvalidWindow::TimeZone(name.to_owned()))?;
    let start = time_of_day(&window.start).ok_or_else(|| InvalidWindow::Start(window.start.clone()))?;
    let duration = window.duration.duration().map_err(|error| InvalidWindow::Duration(error.to_string()))?;
    let today = zone.to_datetime(from).date();
    let openings = (-DAYS_BACK..=DAYS_AHEAD).filter_map(|offset| {
        let day = today.checked_add(offset.days()).ok()?;
        let is_a_day = window.days.is_empty() || window.days.contains(&weekday(day));
        is_a_day.then(|| opening(&zone, day.to_datetime(start)))?
    });
    let mut openings: Vec<Timestamp> = openings.collect();
    openings.sort_unstable();
    let is_open = openings.iter().any(|opens| *opens <= from && from < end(*opens, duration));
    let next = if is_open { Some(from) } else { openings.into_iter().find(|opens| *opens > from) };
    next.ok_or_else(|| InvalidWindow::Never(name.to_owned()))
}

/// An hour that is skipped when clocks go forward opens as much later as the clocks were set; an hour that occurs twice opens at
/// the first.
fn opening(zone: &TimeZone, local: civil::DateTime) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(local).compatible().ok()
}

fn end(opens: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    opens.checked_add(duration).unwrap_or(Timestamp::MAX)
}

fn time_of_day(text: &str) -> Option<civil::Time> {
    let (hour, minute) = text.split_once(':')?;
    civil::Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

fn weekday(day: civil::Date) -> Weekday {
    match day.weekday() {
        civil::Weekday::Monday => Weekday::Monday,
        civil::Weekday::Tuesday => Weekday::Tuesday,
        civil::Weekday::Wednesday => Weekday::Wednesday,
        civil::Weekday::Thursday => Weekday::Thursday,
        civil::Weekday::Friday => Weekday::Friday,
        civil::Weekday::Saturday => Weekday::Saturday,
        civil::Weekday::Sunday => Weekday::Sunday,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn start(approval: Value, now: &str) -> StartTime {
        start_time(Some(&serde_json::from_value(approval).unwrap()), at(now))
    }

    fn window(changes: Value) -> Value {
        let mut window = json!({"days": ["Saturday"], "start": "22:00", "duration": "6h", "timeZone": "Europe/Berlin"});
        window.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        json!({ "window": window })
    }

    #[test]
    fn without_limits_a_plan_starts_at_once() {
        assert_eq!(start_time(None, at("2026-11-17T12:00:00Z")), StartTime::Now);
        assert_eq!(start(json!({}), "2026-11-17T12:00:00Z"), StartTime::Now);
    }

    #[test]
    fn a_plan_starts_from_not_before_until_not_after() {
        let limits = json!({"notBefore": "2026-11-17T20:00:00Z", "notAfter": "2026-11-18T04:00:00Z"});
        let cases = [
            ("2026-11-17T19:59:59Z", StartTime::At(at("2026-11-17T20:00:00Z"))),
            ("2026-11-17T20:00:00Z", StartTime::Now),
            ("2026-11-18T03:59:59Z", StartTime::Now),
            ("2026-11-18T04:00:00Z", StartTime::Expired(at("2026-11-18T04:00:00Z"))),
        ];
        for (now, expected) in cases {
            assert_eq!(start(limits.clone(), now), expected, "{now}");
        }
    }

    #[test]
    fn a_weekly_window_opens_in_its_time_zone_and_lasts_over_midnight() {
        // 2026-11-21 is a Saturday; Berlin is one hour ahead of UTC in winter.
        let cases = [
            ("2026-11-17T12:00:00Z", StartTime::At(at("2026-11-21T21:00:00Z"))),
            ("2026-11-21T20:59:59Z", StartTime::At(at("2026-11-21T21:00:00Z"))),
            ("2026-11-21T21:00:00Z", StartTime::Now),
            ("2026-11-22T02:59:59Z", StartTime::Now),
            ("2026-11-22T03:00:00Z", StartTime::At(at("2026-11-28T21:00:00Z"))),
        ];
        for (now, expected) in cases {
            assert_eq!(start(window(json!({})), now), expected, "{now}");
        }
        let daily = window(json!({"days": [], "timeZone": "UTC"}));
        assert_eq!(start(daily, "2026-11-17T12:00:00Z"), StartTime::At(at("2026-11-17T22:00:00Z")));
    }

    #[test]
    fn a_window_of_a_week_is_always_open() {
        for now in ["2026-11-21T20:59:59Z", "2026-11-17T00:00:00Z", "2026-11-21T21:00:00Z"] {
            assert_eq!(start(window(json!({"duration": "168h"})), now), StartTime::Now, "{now}");
        }
    }

    /// In Berlin, 2027-03-28 has no 02:30, and 2026-10-25 has it twice.
    #[test]
    fn a_window_opens_once_when_the_clocks_change() {
        let sunday = window(json!({"days": ["Sunday"], "start": "02:30", "duration": "1h"}));
        assert_eq!(start(sunday.clone(), "2027-03-27T12:00:00Z"), StartTime::At(at("2027-03-28T01:30:00Z")));
        assert_eq!(start(sunday.clone(), "2026-10-24T12:00:00Z"), StartTime::At(at("2026-10-25T00:30:00Z")));
        assert_eq!(start(sunday, "2026-10-25T01:30:00Z"), StartTime::At(at("2026-11-01T01:30:00Z")));
    }

    #[test]
    fn the_window_counts_from_not_before_and_expires_if_it_opens_too_late() {
        let mut approval = window(json!({}));
        approval["notBefore"] = json!("2026-11-22T00:00:00Z");
        assert_eq!(start(approval.clone(), "2026-11-17T12:00:00Z"), StartTime::At(at("2026-11-22T00:00:00Z")));
        approval["notBefore"] = json!("2026-11-23T00:00:00Z");
        assert_eq!(start(approval.clone(), "2026-11-17T12:00:00Z"), StartTime::At(at("2026-11-28T21:00:00Z")));
        approval["notAfter"] = json!("2026-11-25T00:00:00Z");
        assert_eq!(start(approval, "2026-11-17T12:00:00Z"), StartTime::Expired(at("2026-11-25T00:00:00Z")));
    }

    /// The schema cannot check the name of a time zone, and an object may be older than the schema.
    #[test]
    fn a_window_that_makes_no_sense_is_an_error_and_never_open() {
        let cases = [
            (json!({"timeZone": "Mars/Olympus"}), "no time zone 'Mars/Olympus'"),
            (json!({"start": "25:00"}), "'25:00' is not a time of day"),
            (json!({"start": "ten"}), "'ten' is not a time of day"),
            (json!({"duration": "long"}), "window.duration"),
        ];
        for (changes, expected) in cases {
            let StartTime::Invalid(error) = start(window(changes), "2026-11-21T21:00:00Z") else {
                panic!("{expected}")
            };
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
