//! Rights of the person who asks, and of the operator.

use advisor::access::{self, people};
use kube_io::RequestError;

use super::finding::Finding;
use crate::rights::{PREFIX, Question, questions};

/// The questions and their answers.
pub(super) type Answers = (Vec<Question>, Result<Vec<bool>, RequestError>);

/// What each role for people is called when we say what somebody may do, in the order of [`people`].
const MAY: [&str; 4] = ["see", "change", "approve", "administer"];

/// The questions about the person who asks: those of all roles for people.
pub(super) fn about_caller(namespace: &str) -> Vec<Question> {
    questions(&people(), namespace)
}

pub(super) fn caller(namespace: &str, (asked, answers): &Answers) -> Finding {
    const CHECK: &str = "your rights";
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => return Finding::unknown(CHECK, "your rights may not be asked for", error),
    };
    let is_allowed =
        |question: &Question| asked.iter().zip(answers).any(|(known, allowed)| known == question && *allowed);
    let roles = people();
    let granted = roles
        .iter()
        .zip(MAY)
        .filter(|(role, _)| questions(std::slice::from_ref(role), namespace).iter().all(is_allowed));
    let granted: Vec<&str> = granted.map(|(_, may)| may).collect();
    match granted.split_last() {
        Some((last, [])) => Finding::ok(CHECK, format!("you may {last} configurations")),
        Some((last, others)) => Finding::ok(CHECK, format!("you may {} and {last} configurations", others.join(", "))),
        None => {
            let role = format!("{PREFIX}{}", roles.first().map(|role| role.name).unwrap_or_default());
            let remedy = format!("ask an administrator for the ClusterRole {role}");
            Finding::problem(CHECK, "you may not see configurations", remedy)
        }
    }
}

/// The questions about the operator. Last are those about the rights by which it finds out who asks for its metrics.
pub(super) fn about_operator(namespace: &str) -> Vec<Question> {
    let roles: Vec<_> = access::operator().into_iter().chain([access::request_reviewer()]).collect();
    questions(&roles, namespace)
}

/// Everything but watches.
pub(super) fn operator(answers: &Answers) -> Finding {
    let reviews: Vec<_> = questions(&[access::request_reviewer()], "").iter().map(ToString::to_string).collect();
    let effect = |right: &str| match reviews.iter().any(|review| review == right) {
        true => "nobody can read its metrics with a token",
        false => "plans fail or are not made",
    };
    denied("its rights", answers, |question| !question.is_for_a_watch(), effect)
}

pub(super) fn watches(answers: &Answers) -> Finding {
    denied("its watches", answers, Question::is_for_a_watch, |_| "changes are noticed minutes late, or never")
}

fn denied(
    check: &'static str,
    (asked, answers): &Answers,
    concerns: impl Fn(&Question) -> bool,
    effect: impl Fn(&str) -> &'static str,
) -> Finding {
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => return Finding::unknown(check, "the operator's rights may not be asked for", error),
    };
    let all = asked.iter().zip(answers).filter(|(question, _)| concerns(question));
    let denied: Vec<String> = all.filter(|(_, allowed)| !**allowed).map(|(question, _)| question.to_string()).collect();
    match denied.as_slice() {
        [] => Finding::ok(check, "the operator has all that it needs"),
        [first, ..] => {
            let more = if denied.len() == 1 { String::new() } else { format!(", and {} more", denied.len() - 1) };
            let message = format!("the operator may not {first}{more}: {}", effect(first));
            Finding::problem(check, message, "give them back: make deploy, or kubectl apply -k config/default")
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_io::Class;

    use super::*;
    use crate::doctor::finding::Level;

    fn refused() -> Result<Vec<bool>, RequestError> {
        Err(RequestError::other("asking".into(), "no".into(), Class::Forbidden))
    }

    #[test]
    fn what_somebody_may_do_is_told_by_the_roles_that_we_ship() {
        let asked = about_caller("ns");
        let allowed_by = |role: usize| {
            let granted = questions(&people()[role..=role], "ns");
            Ok(asked.iter().map(|question| granted.contains(question)).collect())
        };
        let nothing = Ok(vec![false; asked.len()]);
        for (answers, level, text) in [
            (allowed_by(0), Level::Ok, "you may see configurations"),
            (allowed_by(1), Level::Ok, "you may see and change configurations"),
            (allowed_by(2), Level::Ok, "you may see and approve configurations"),
            (allowed_by(3), Level::Ok, "you may see, change, approve and administer configurations"),
            (nothing, Level::Problem, "you may not see configurations"),
            (refused(), Level::Unknown, "your rights may not be asked for: forbidden (403)"),
        ] {
            let finding = caller("ns", &(asked.clone(), answers));
            assert_eq!((finding.level, finding.message.as_str()), (level, text));
        }
    }

    #[test]
    fn a_missing_watch_is_told_apart_from_other_missing_rights() {
        let asked = about_operator("ns");
        let without = |verb: &str| {
            let answers = asked.iter().map(|question| !question.to_string().starts_with(verb)).collect();
            (asked.clone(), Ok(answers))
        };
        for (verb, rights, watches_level) in [
            ("nothing", Level::Ok, Level::Ok),
            ("patch kubedeschedulers", Level::Problem, Level::Ok),
            ("watch machineconfigpools", Level::Ok, Level::Problem),
        ] {
            let answers = without(verb);
            assert_eq!((operator(&answers).level, watches(&answers).level), (rights, watches_level), "{verb}");
        }
        let finding = operator(&without("create tokenreviews"));
        let told =
            "the operator may not create tokenreviews.authentication.k8s.io: nobody can read its metrics with a token";
        assert_eq!((finding.level, finding.message.as_str()), (Level::Problem, told));
        let finding = operator(&without("patch"));
        assert!(finding.message.contains("may not patch virtplatformconfigs.advisor.kubevirt.io, and "), "{finding:?}");
        assert_eq!(watches(&(asked, refused())).level, Level::Unknown);
    }
}
