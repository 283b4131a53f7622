//! What a profile wants to know about a cluster, and what was found.
//! An answer always comes from the API server. An object that cannot be read is an error before a plan is made, and never looks like
//! an absent one.

use std::{collections::BTreeMap, fmt, sync::Arc};

use api::virt_platform_config::TargetRef;
use serde_json::Value;

use crate::{Kind, ObjectRef, kind::MACHINE_CONFIG, rendered_config};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Query {
    Object(ObjectRef),
    /// An object that a plan can do without. The right to read it is optional.
    Optional(ObjectRef),
    /// All objects of a kind. Only for kinds of which clusters have a handful.
    List(&'static Kind),
}

impl Query {
    pub fn kind(&self) -> &'static Kind {
        match self {
            Query::Object(reference) | Query::Optional(reference) => reference.kind,
            Query::List(kind) => kind,
        }
    }

    /// What has to be kept of an answer to this query.
    pub fn needed(&self, answer: Answer) -> Answer {
        match (self, answer) {
            (Query::Optional(reference), Answer::Object { version, object }) if reference.kind == &MACHINE_CONFIG => {
                Answer::Object { version, object: rendered_config::excerpt(object) }
            }
            (_, answer) => answer,
        }
    }
}

/// `KubeDescheduler openshift-kube-descheduler-operator/cluster`, `machineconfigpools`
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Object(reference) | Query::Optional(reference) => reference.fmt(f),
            Query::List(kind) => f.write_str(kind.plural),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The API server does not serve the kind in any known version.
    KindMissing,
    /// The kind is served, and the object does not exist.
    Absent {
        version: &'static str,
    },
    Object {
        version: &'static str,
        object: Value,
    },
    List {
        version: &'static str,
        items: Vec<Value>,
    },
    /// The operator may not read it. Only for optional objects.
    Denied,
}

/// Everything found so far. A copy of it shares the answers, which may be large.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    answers: BTreeMap<Query, Arc<Answer>>,
}

impl Facts {
    pub fn insert(&mut self, query: Query, answer: Answer) {
        self.answers.insert(query, Arc::new(answer));
    }

    /// Builds facts from answers, for tests and examples.
    pub fn of(answers: impl IntoIterator<Item = (Query, Answer)>) -> Self {
        Facts { answers: answers.into_iter().map(|(query, answer)| (query, Arc::new(answer))).collect() }
    }

    /// The answers that are to be kept.
    pub fn filtered(&self, is_kept: impl Fn(&Query, &Answer) -> bool) -> Self {
        let kept = self.answers.iter().filter(|(query, answer)| is_kept(query, answer));
        Facts { answers: kept.map(|(query, answer)| (query.clone(), answer.clone())).collect() }
    }

    /// Forgets one answer, so that it is queried again.
    pub fn forget(&mut self, query: &Query) {
        self.answers.remove(query);
    }

    /// All answered queries.
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.answers.keys()
    }

    /// Which of the queries have not been answered yet.
    pub fn unanswered(&self, queries: Vec<Query>) -> Vec<Query> {
        queries.into_iter().filter(|query| !self.answers.contains_key(query)).collect()
    }

    pub fn answer(&self, query: &Query) -> Option<&Answer> {
        self.answers.get(query).map(Arc::as_ref)
    }

    pub fn object(&self, reference: &ObjectRef) -> Option<&Value> {
        match self.answer(&Query::Object(reference.clone()))? {
            Answer::Object { object, .. } => Some(object),
            _ => None,
        }
    }

    /// An optional object, if it exists and may be read.
    pub fn optional(&self, reference: &ObjectRef) -> Option<&Value> {
        match self.answer(&Query::Optional(reference.clone()))? {
            Answer::Object { object, .. } => Some(object),
            _ => None,
        }
    }

    /// Whether an optional object may not be read.
    pub fn is_denied(&self, reference: &ObjectRef) -> bool {
        self.answer(&Query::Optional(reference.clone())) == Some(&Answer::Denied)
    }

    /// Whether the object is known not to exist.
    pub fn is_absent(&self, reference: &ObjectRef) -> bool {
        let answer = self.answer(&Query::Object(reference.clone()));
        matches!(answer, Some(Answer::Absent { .. } | Answer::KindMissing))
    }

    /// The target of an item, if it was queried in the version of the item; inside, `None` is an object that does not exist.
    pub fn target(&self, target: &TargetRef) -> Option<Option<&Value>> {
        self.answers.iter().find_map(|(query, answer)| {
            let Query::Object(reference) = query else { return None };
            let (version, object) = match &**answer {
                Answer::Object { version, object } => (version, Some(object)),
                Answer::Absent { version } => (version, None),
                Answer::KindMissing | Answer::Denied | Answer::List { .. } => return None,
            };
            (reference.target(version) == *target).then_some(object)
        })
    }

    /// Whether the kind of an item's target was queried and is not served any more.
    pub fn kind_is_gone(&self, target: &TargetRef) -> bool {
        self.answers.iter().any(|(query, answer)| {
            let Query::Object(reference) = query else { return false };
            let is_it = |version: &&'static str| reference.target(version) == *target;
            matches!(**answer, Answer::KindMissing) && reference.kind.versions.iter().any(is_it)
        })
    }

    pub fn list(&self, kind: &'static Kind) -> &[Value] {
        match self.answer(&Query::List(kind)) {
            Some(Answer::List { items, .. }) => items,
            _ => &[],
        }
    }

    /// The served version of a kind. None if it is not served, or was not queried.
    pub fn version(&self, kind: &'static Kind) -> Option<&'static str> {
        self.answers.iter().filter(|(query, _)| query.kind() == kind).find_map(|(_, answer)| match &**answer {
            Answer::KindMissing | Answer::Denied => None,
            Answer::Absent { version } | Answer::Object { version, .. } | Answer::List { version, .. } => {
                Some(*version)
            }
        })
    }

    /// Whether the API server said that it does not serve the kind.
    pub fn is_missing(&self, kind: &'static Kind) -> bool {
        self.answers.iter().any(|(query, answer)| query.kind() == kind && **answer == Answer::KindMissing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::{CONFIG_MAP, HYPER_CONVERGED, MACHINE_CONFIG_POOL};

    fn reference(name: &str) -> ObjectRef {
        ObjectRef::namespaced(&CONFIG_MAP, "here", name)
    }

    fn facts() -> Facts {
        Facts::of([
            (Query::Object(reference("found")), Answer::Object { version: "v1", object: json!({"data": {}}) }),
            (Query::Object(reference("absent")), Answer::Absent { version: "v1" }),
            (Query::Object(ObjectRef::cluster(&HYPER_CONVERGED, "a")), Answer::KindMissing),
            (Query::List(&MACHINE_CONFIG_POOL), Answer::List { version: "v1", items: vec![json!(1), json!(2)] }),
        ])
    }

    #[test]
    fn absent_is_what_was_asked_for_and_is_not_there() {
        let facts = facts();
        assert_eq!(facts.object(&reference("found")), Some(&json!({"data": {}})));
        assert_eq!(facts.object(&reference("absent")), None);
        assert!(facts.is_absent(&reference("absent")));
        assert!(
            facts.is_absent(&ObjectRef::cluster(&HYPER_CONVERGED, "a")),
            "a kind that is not served has no objects"
        );
        assert!(!facts.is_absent(&reference("found")));
        assert!(!facts.is_absent(&reference("never asked")), "what was not asked for may well be there");
        assert!(
            !facts.is_absent(&ObjectRef::namespaced(&CONFIG_MAP, "there", "absent")),
            "elsewhere is another object"
        );
    }

    #[test]
    fn only_what_is_not_answered_is_asked() {
        let facts = facts();
        let (known, new) = (Query::Object(reference("absent")), Query::Object(reference("new")));
        assert_eq!(facts.unanswered(vec![known, new.clone(), Query::List(&MACHINE_CONFIG_POOL)]), [new]);
    }

    /// W18 (unreadable as absent): no answer is not an absence.
    #[test]
    fn a_kind_is_missing_only_when_the_server_said_so() {
        let facts = facts();
        assert!(facts.is_missing(&HYPER_CONVERGED));
        assert!(!facts.is_missing(&CONFIG_MAP));
        assert!(!Facts::default().is_missing(&CONFIG_MAP));
        let list = Facts::of([(Query::List(&MACHINE_CONFIG_POOL), Answer::KindMissing)]);
        assert!(list.is_missing(&MACHINE_CONFIG_POOL));
    }

    #[test]
    fn the_version_is_that_of_any_answer() {
        let facts = facts();
        assert_eq!(facts.version(&CONFIG_MAP), Some("v1"));
        assert_eq!(facts.version(&MACHINE_CONFIG_POOL), Some("v1"));
        assert_eq!(facts.version(&HYPER_CONVERGED), None);
        let absent = Answer::Absent { version: "v1beta1" };
        let absent = Facts::of([(Query::Object(ObjectRef::cluster(&HYPER_CONVERGED, "a")), absent)]);
        assert_eq!(absent.version(&HYPER_CONVERGED), Some("v1beta1"), "even of an object that is not there");
    }

    #[test]
    fn a_list_is_empty_unless_it_was_answered() {
        assert_eq!(facts().list(&MACHINE_CONFIG_POOL), [json!(1), json!(2)]);
        assert!(facts().list(&CONFIG_MAP).is_empty());
    }
}
