//! What is known of the cluster, so that one changed object costs one request and an unchanged one none.
//!
//! An answer is kept until a watch says that it no longer holds. What a plan changes, and what it derives values from, is asked
//! again all the same before a plan is drawn up: this is for looking.

use advisor::{
    Answer, Facts, Kind, Query,
    kind::{CLUSTER_VERSION, CUSTOM_RESOURCE_DEFINITION, MACHINE_CONFIG},
    pools,
};
use serde_json::Value;

use crate::inbox::{Mark, Sighting};

#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    facts: Facts,
}

impl Knowledge {
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What need not be asked again to draw up a plan: what never changes, evidence, and lists, which their watch keeps. An API
    /// server that is asked for a list of something that changes rarely may take a tenth of a second to be sure of it.
    pub(crate) fn kept(&self, is_current: impl Fn(&Query) -> bool) -> Facts {
        let is_kept = |query: &Query, answer: &Answer| match (query, answer) {
            (Query::Evidence(_), answer) => *answer != Answer::Denied && is_current(query),
            (_, Answer::Object { .. }) => is_constant(query),
            (_, Answer::List { .. }) => is_current(query),
            _ => false,
        };
        let keep = |query: &Query| {
            let answer = self.facts.answer(query).filter(|answer| is_kept(query, answer))?;
            Some((query.clone(), answer.clone()))
        };
        Facts::of(self.facts.queries().filter_map(keep))
    }

    pub(crate) fn learn(&mut self, facts: Facts) {
        self.facts = facts;
    }

    pub(crate) fn forget_all(&mut self) {
        self.facts = Facts::default();
    }

    /// Forgets everything about a kind. Whether there was anything.
    pub(crate) fn forget_kind(&mut self, kind: &'static Kind) -> bool {
        let definition = Query::Object(advisor::ObjectRef::definition(kind));
        let concerns = |query: &Query| *query == definition || query.kind() == kind;
        let stale: Vec<Query> = self.facts.queries().filter(|query| concerns(query)).cloned().collect();
        stale.iter().for_each(|query| self.facts.forget(query));
        !stale.is_empty()
    }

    pub(crate) fn forget(&mut self, query: &Query) {
        self.facts.forget(query);
    }

    pub(crate) fn remember(&mut self, query: Query, version: &'static str, object: Value) {
        self.facts.insert(query, Answer::Object { version, object });
    }

    /// Compares what a watch saw with what is known. What no longer holds is forgotten, or known at once if the watch brought
    /// it. Whether there was anything new.
    pub(crate) fn absorb(&mut self, query: &Query, sighting: &Sighting) -> bool {
        let Some(known) = self.facts.answer(query) else { return false };
        if let (Answer::List { items, .. }, Sighting::Members { version, items: seen }) = (known, sighting) {
            let same = items.len() == seen.len() && items.iter().zip(seen).all(|(a, b)| identity(a) == identity(b));
            if !same {
                self.facts.insert(query.clone(), Answer::List { version, items: seen.clone() });
            }
            return !same;
        }
        let same = match (known, sighting) {
            (Answer::Object { object, .. }, Sighting::Object(mark)) => is_same(object, mark, query.kind()),
            (Answer::Absent { .. } | Answer::KindMissing, Sighting::Absent) => true,
            _ => false,
        };
        if !same {
            self.facts.forget(query);
        }
        !same
    }
}

/// Rendered configs are never changed, and of a definition that is we are told.
fn is_constant(query: &Query) -> bool {
    match query {
        Query::Object(reference) => reference.kind == &CUSTOM_RESOURCE_DEFINITION || pools::is_rendered(reference),
        Query::Evidence(_) | Query::List(_) => false,
    }
}

/// Whether a change has to be heard of at once. Which machine configs matter only the cluster knows, so that there is no right
/// to watch them, and its version changes rarely; both are looked at again with everything else.
pub(crate) fn is_watched(query: &Query) -> bool {
    match query {
        Query::Evidence(reference) => ![&MACHINE_CONFIG, &CLUSTER_VERSION].contains(&reference.kind),
        query => !is_constant(query),
    }
}

/// What tells one version of one object from all others.
fn identity(object: &Value) -> [&Value; 2] {
    ["uid", "resourceVersion"].map(|field| &object["metadata"][field])
}

/// Whether an object is as it was, but for a status that nobody reads. Labels do not count as a change of the spec, and they
/// matter.
fn is_same(known: &Value, mark: &Mark, kind: &Kind) -> bool {
    let metadata = &known["metadata"];
    if metadata["uid"] != *mark.uid {
        return false;
    }
    if metadata["resourceVersion"] == *mark.version {
        return true;
    }
    if kind.tells_by_status() {
        return false;
    }
    let labels = metadata["labels"].as_object();
    let labels_are_same = labels.map_or(0, serde_json::Map::len) == mark.labels.len()
        && mark
            .labels
            .iter()
            .all(|(name, value)| labels.is_some_and(|labels| labels.get(name) == Some(&Value::from(&**value))));
    mark.generation > 0 && metadata["generation"] == mark.generation && labels_are_same
}

#[cfg(test)]
mod tests {
    use advisor::{
        ObjectRef,
        kind::{HYPER_CONVERGED, MACHINE_CONFIG_POOL},
    };
    use serde_json::json;

    use std::collections::BTreeMap;

    use super::*;

    fn query() -> Query {
        Query::Object(ObjectRef::namespaced(&HYPER_CONVERGED, "here", "it"))
    }

    fn known(metadata: Value) -> Knowledge {
        let object = json!({"metadata": metadata});
        Knowledge { facts: Facts::of([(query(), Answer::Object { version: "v1", object })]) }
    }

    fn mark(version: &str, generation: i64, labels: &[(&str, &str)]) -> Sighting {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Sighting::Object(Mark { uid: "u".into(), version: version.into(), generation, labels })
    }

    /// W38: what others report in their status is not looked at.
    #[test]
    fn only_what_matters_is_a_change() {
        let metadata = json!({"uid": "u", "resourceVersion": "5", "generation": 2, "labels": {"a": "b"}});
        let cases = [
            ("the same version", mark("5", 2, &[("a", "b")]), false),
            ("another status", mark("9", 2, &[("a", "b")]), false),
            ("another spec", mark("9", 3, &[("a", "b")]), true),
            ("another label", mark("9", 2, &[("a", "c")]), true),
            ("one label more", mark("9", 2, &[("a", "b"), ("c", "d")]), true),
            ("gone", Sighting::Absent, true),
        ];
        for (case, sighting, changed) in cases {
            let mut knowledge = known(metadata.clone());
            assert_eq!(knowledge.absorb(&query(), &sighting), changed, "{case}");
            assert_eq!(knowledge.facts().answer(&query()).is_none(), changed, "{case}: forgotten with the change");
        }
        let other =
            Sighting::Object(Mark { uid: "x".into(), version: "5".into(), generation: 2, labels: BTreeMap::new() });
        assert!(known(metadata).absorb(&query(), &other), "another object of the same name");
        let plain = json!({"uid": "u", "resourceVersion": "5"});
        assert!(known(plain).absorb(&query(), &mark("6", 0, &[])), "without a generation the version tells");
        assert!(!Knowledge::default().absorb(&query(), &Sighting::Absent), "nothing was known");
    }

    #[test]
    fn a_list_changes_with_every_version_of_a_member_and_is_known_at_once() {
        let query = Query::List(&MACHINE_CONFIG_POOL);
        let item = |name: &str, version: &str| json!({"metadata": {"uid": name, "resourceVersion": version}});
        let items = vec![item("master", "2"), item("worker", "1")];
        let knowledge =
            || Knowledge { facts: Facts::of([(query.clone(), Answer::List { version: "v1", items: items.clone() })]) };
        let seen = |members: &[(&str, &str)]| Sighting::Members {
            version: "v1",
            items: members.iter().map(|(name, version)| item(name, version)).collect(),
        };
        assert!(!knowledge().absorb(&query, &seen(&[("master", "2"), ("worker", "1")])));
        assert!(knowledge().absorb(&query, &seen(&[("worker", "1")])));
        let mut knowledge = knowledge();
        assert!(knowledge.absorb(&query, &seen(&[("master", "2"), ("worker", "3")])));
        assert_eq!(knowledge.facts().list(&MACHINE_CONFIG_POOL)[1], item("worker", "3"));
    }
}
