//! What each profile needs in the cluster, as seen by the person who asks.

use operator::RequestError;

use super::finding::Finding;

const CHECK: &str = "prerequisites";

/// What was found out for one profile.
pub(super) struct Seen {
    pub(super) profile: &'static str,
    /// Whether a configuration asks for a plan.
    pub(super) in_use: bool,
    /// What is missing, in the words of the profile. An error says what could not be read.
    pub(super) missing: Result<Option<String>, RequestError>,
}

pub(super) fn prerequisites(seen: &[Seen]) -> Vec<Finding> {
    seen.iter().map(of_profile).collect()
}

fn of_profile(seen: &Seen) -> Finding {
    let profile = seen.profile;
    match &seen.missing {
        Ok(None) => Finding::ok(CHECK, format!("{profile} has all that it needs")),
        Ok(Some(missing)) => {
            let (what, hints) = split(missing);
            match seen.in_use {
                true => Finding::problem(CHECK, format!("{profile} lacks {what}"), hints),
                false => Finding::ok(CHECK, format!("{profile} is not in use; it would need {what}")),
            }
        }
        Err(error) => Finding::unknown(CHECK, &format!("{profile}, {}", error.doing), error),
    }
}

/// `Missing required dependencies:\n  - A (b): do x\n  - C: do y` as what is missing, and what to do.
fn split(missing: &str) -> (String, String) {
    let lines: Vec<&str> = missing.lines().filter_map(|line| line.trim().strip_prefix("- ")).collect();
    if lines.is_empty() {
        return (missing.to_owned(), "do what this says".into());
    }
    let parts = lines.iter().map(|line| line.split_once(": ").unwrap_or((line, "")));
    let (what, hints): (Vec<&str>, Vec<&str>) = parts.unzip();
    let hints: Vec<&str> = hints.into_iter().filter(|hint| !hint.is_empty()).collect();
    let hints = if hints.is_empty() { "do what this says".into() } else { hints.join("; ") };
    (what.join(", "), hints)
}

#[cfg(test)]
mod tests {
    use operator::Class;

    use super::*;
    use crate::doctor::finding::Level;

    fn found(in_use: bool, missing: Result<Option<&str>, Class>) -> Finding {
        let missing = missing.map(|missing| missing.map(str::to_owned));
        let missing =
            missing.map_err(|class| RequestError::other("reading HyperConverged x".into(), "no".into(), class));
        of_profile(&Seen { profile: "p", in_use, missing })
    }

    #[test]
    fn something_missing_is_a_problem_only_for_a_profile_that_is_in_use() {
        let missing = "Missing required dependencies:\n  - KubeDescheduler (operator.openshift.io.v1): Install it\n  - ConfigMap a/b: Create it\n";
        let finding = found(true, Ok(Some(missing)));
        assert_eq!(finding.level, Level::Problem);
        assert_eq!(finding.message, "p lacks KubeDescheduler (operator.openshift.io.v1), ConfigMap a/b");
        assert_eq!(finding.remedy.as_deref(), Some("Install it; Create it"));
        assert_eq!(found(false, Ok(Some(missing))).level, Level::Ok);
        assert_eq!(found(true, Ok(None)).level, Level::Ok);
    }

    #[test]
    fn what_may_not_be_read_is_named() {
        let finding = found(true, Err(Class::Forbidden));
        assert_eq!(finding.level, Level::Unknown);
        assert_eq!(finding.message, "p, reading HyperConverged x: forbidden (403)");
    }
}
