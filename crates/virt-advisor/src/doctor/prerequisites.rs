//! What each profile needs in the cluster, as seen by the person who asks.

use advisor::profile::Missing;
use kube_io::RequestError;

use super::finding::Finding;

const CHECK: &str = "prerequisites";

/// What was found out for one profile.
pub(super) struct Seen {
    pub(super) profile: &'static str,
    /// Whether a configuration asks for a plan.
    pub(super) in_use: bool,
    /// What is missing. An error says what could not be read.
    pub(super) missing: Result<Vec<Missing>, RequestError>,
}

pub(super) fn prerequisites(seen: &[Seen]) -> Vec<Finding> {
    seen.iter().map(of_profile).collect()
}

fn of_profile(seen: &Seen) -> Finding {
    let profile = seen.profile;
    match &seen.missing {
        Ok(missing) if missing.is_empty() => Finding::ok(CHECK, format!("{profile} has all that it needs")),
        Ok(missing) => {
            let what: Vec<&str> = missing.iter().map(|missing| missing.what.as_str()).collect();
            let what = what.join(", ");
            match seen.in_use {
                true => Finding::problem(CHECK, format!("{profile} lacks {what}"), hints(missing)),
                false => Finding::ok(CHECK, format!("{profile} is not in use; it would need {what}")),
            }
        }
        Err(error) => Finding::unknown(CHECK, &format!("{profile}, {}", error.doing), error),
    }
}

fn hints(missing: &[Missing]) -> String {
    let hints: Vec<&str> = missing.iter().filter_map(|missing| missing.hint).collect();
    if hints.is_empty() { "do what this says".into() } else { hints.join("; ") }
}

#[cfg(test)]
mod tests {
    use kube_io::Class;

    use super::*;
    use crate::doctor::finding::Level;

    fn found(in_use: bool, missing: Result<&[(&str, Option<&'static str>)], Class>) -> Finding {
        let parts = |(what, hint): &(&str, Option<&'static str>)| Missing { what: (*what).to_owned(), hint: *hint };
        let missing = missing.map(|missing| missing.iter().map(parts).collect());
        let missing =
            missing.map_err(|class| RequestError::other("reading HyperConverged x".into(), "no".into(), class));
        of_profile(&Seen { profile: "p", in_use, missing })
    }

    #[test]
    fn something_missing_is_a_problem_only_for_a_profile_that_is_in_use() {
        let missing =
            [("KubeDescheduler (operator.openshift.io.v1)", Some("Install it")), ("ConfigMap a/b", Some("Create it"))];
        let finding = found(true, Ok(&missing));
        assert_eq!(finding.level, Level::Problem);
        assert_eq!(finding.message, "p lacks KubeDescheduler (operator.openshift.io.v1), ConfigMap a/b");
        assert_eq!(finding.remedy.as_deref(), Some("Install it; Create it"));
        assert_eq!(found(false, Ok(&missing)).level, Level::Ok);
        assert_eq!(found(true, Ok(&[])).level, Level::Ok);
    }

    /// What a profile says in its own words may hold anything.
    #[test]
    fn a_colon_in_what_is_missing_stays_where_it_is() {
        let finding = found(true, Ok(&[("a record: it was deleted", None)]));
        assert_eq!(finding.message, "p lacks a record: it was deleted");
        assert_eq!(finding.remedy.as_deref(), Some("do what this says"));
    }

    #[test]
    fn what_may_not_be_read_is_named() {
        let finding = found(true, Err(Class::Forbidden));
        assert_eq!(finding.level, Level::Unknown);
        assert_eq!(finding.message, "p, reading HyperConverged x: forbidden (403)");
    }
}
