//! When an approved plan starts: the times that an approver names, and those of an earlier approval, which stay.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Approval, Phase},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::start_time::{StartTime, start_time};

/// The times that an approver names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamedTimes {
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    /// Whether the times of an earlier approval are taken away.
    pub now: bool,
}

/// The times of an approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    pub not_before: Option<Timestamp>,
    pub not_after: Option<Timestamp>,
    /// The end of an earlier approval, which has passed and is taken away.
    pub passed: Option<Timestamp>,
}

impl Times {
    /// What is not named stays as it is, so that nobody starts a plan for tonight by approving it twice.
    pub fn new(config: &VirtPlatformConfig, named: NamedTimes, now: Timestamp) -> Self {
        let earlier = config.spec.approval.as_ref().filter(|_| !named.now);
        let earlier_end = earlier.and_then(|approval| approval.not_after.as_ref()).map(|time| time.0);
        let passed = earlier_end.filter(|end| named.not_after.is_none() && *end <= now);
        let earlier_start = earlier.and_then(|approval| approval.not_before.as_ref()).map(|time| time.0);
        Times {
            not_before: named.not_before.or(earlier_start),
            not_after: named.not_after.or(earlier_end.filter(|_| passed.is_none())),
            passed,
        }
    }

    /// When a plan starts that is approved with these times. The window of the configuration stays.
    pub fn start(&self, config: &VirtPlatformConfig, now: Timestamp) -> StartTime {
        let approval = Approval {
            not_before: self.not_before.map(Time),
            not_after: self.not_after.map(Time),
            window: config.spec.approval.as_ref().and_then(|approval| approval.window.clone()),
            ..Approval::default()
        };
        start_time(Some(&approval), now)
    }
}

/// `It starts at 2026-01-12T22:00:00Z`. None if a plan with these times never starts.
pub fn told(start: &StartTime) -> Option<String> {
    match start {
        StartTime::Now => Some("It starts now".to_owned()),
        StartTime::At(time) => Some(format!("It starts at {time:.0}; until then it is {}", Phase::Scheduled)),
        StartTime::Expired(_) | StartTime::Invalid(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use api::{VirtPlatformConfigSpec, virt_platform_config::Profile};

    use super::*;

    fn at(hour: i8) -> Timestamp {
        format!("2026-01-12T{hour:02}:00:00Z").parse().unwrap()
    }

    fn config(not_before: Option<i8>, not_after: Option<i8>) -> VirtPlatformConfig {
        let mut config = VirtPlatformConfig::new("example-profile", VirtPlatformConfigSpec::new(Profile::Example));
        let time = |hour| Time(at(hour));
        let (not_before, not_after) = (not_before.map(time), not_after.map(time));
        config.spec.approval = Some(Approval { not_before, not_after, ..Approval::default() });
        config
    }

    #[test]
    fn times_stay_unless_others_are_named_or_they_are_taken_away() {
        let named = |not_before: Option<i8>, not_after: Option<i8>| NamedTimes {
            not_before: not_before.map(at),
            not_after: not_after.map(at),
            now: false,
        };
        let at_once = NamedTimes { now: true, ..NamedTimes::default() };
        for (case, earlier, named, expected, passed, start) in [
            ("no times", (None, None), named(None, None), (None, None), None, StartTime::Now),
            ("they stay", (Some(22), Some(23)), named(None, None), (Some(22), Some(23)), None, StartTime::At(at(22))),
            (
                "another start",
                (Some(22), Some(23)),
                named(Some(21), None),
                (Some(21), Some(23)),
                None,
                StartTime::At(at(21)),
            ),
            ("an end that has passed", (Some(8), Some(9)), named(None, None), (Some(8), None), Some(9), StartTime::Now),
            ("another end", (Some(8), Some(9)), named(None, Some(23)), (Some(8), Some(23)), None, StartTime::Now),
            ("taken away", (Some(22), Some(23)), at_once, (None, None), None, StartTime::Now),
            (
                "an end before the start",
                (None, Some(20)),
                named(Some(22), None),
                (Some(22), Some(20)),
                None,
                StartTime::Expired(at(20)),
            ),
        ] {
            let config = config(earlier.0, earlier.1);
            let times = Times::new(&config, named, at(12));
            let (not_before, not_after) = (expected.0.map(at), expected.1.map(at));
            assert_eq!(times, Times { not_before, not_after, passed: passed.map(at) }, "{case}");
            assert_eq!(times.start(&config, at(12)), start, "{case}");
        }
    }

    #[test]
    fn the_start_is_told_if_there_is_one() {
        assert_eq!(told(&StartTime::Now).as_deref(), Some("It starts now"));
        let later = told(&StartTime::At(at(22)));
        assert_eq!(later.as_deref(), Some("It starts at 2026-01-12T22:00:00Z; until then it is Scheduled"));
        assert_eq!(told(&StartTime::Expired(at(22))), None);
    }
}
