//! Answers of the API server, so that a changed object costs one request and an unchanged one none.
//! An answer is kept until a watch delivers a change. Before a plan is made, what it changes and derives values from is read
//! again all the same: the cache is for comparing.

use std::collections::BTreeMap;

use advisor::{
    Answer, Facts, Kind, Query, autopilot,
    kind::{CLUSTER_VERSION, CUSTOM_RESOURCE_DEFINITION, MACHINE_CONFIG, PLAN_RECORD},
    pools,
};
use serde_json::Value;

use crate::work_queue::{ObjectVersion, Observation};

#[derive(Debug, Default)]
pub(crate) struct FactCache {
    facts: Facts,
}

impl FactCache {
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The facts that need not be read again to make a plan: constants, evidence, and lists, which their watch keeps. A list of
    /// objects that change rarely may take the API server a tenth of a second.
    pub(crate) fn current(&self, is_current: impl Fn(&Query) -> bool) -> Facts {
        let is_kept = |query: &Query, answer: &Answer| match (query, answer) {
            (Query::Optional(_), answer) => *answer != Answer::Denied && is_current(query),
            (_, Answer::Object { .. }) => is_constant(query),
            (_, Answer::List { .. }) => is_watched(query) && is_current(query),
            _ => false,
        };
        self.facts.filtered(is_kept)
    }

    pub(crate) fn replace(&mut self, facts: Facts) {
        self.facts = facts;
    }

    pub(crate) fn forget_all(&mut self) {
        self.facts = Facts::default();
    }

    /// Forgets everything about a kind. Returns whether anything was known.
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

    pub(crate) fn insert(&mut self, query: Query, version: &'static str, object: Value) {
        self.facts.insert(query, Answer::Object { version, object });
    }

    /// Compares an observation with what is known. An outdated answer is forgotten, or replaced if the watch delivers all of
    /// it. Returns whether anything has changed.
    pub(crate) fn merge(&mut self, query: &Query, observation: &Observation) -> bool {
        let Some(known) = self.facts.answer(query) else { return false };
        if let (Answer::List { items, .. }, Observation::List { version, items: seen }) = (known, observation) {
            let same = items.len() == seen.len() && items.iter().zip(seen).all(|(a, b)| identity(a) == identity(b));
            if !same {
                self.facts.insert(query.clone(), Answer::List { version, items: seen.clone() });
            }
            return !same;
        }
        let same = match (known, observation) {
            (Answer::Object { object, .. }, Observation::Object(seen)) => is_same(object, seen, query.kind()),
            (Answer::Absent { .. } | Answer::KindMissing, Observation::Absent) => true,
            _ => false,
        };
        if !same {
            self.facts.forget(query);
        }
        !same
    }
}

/// Rendered configs never change. Definitions have a watch of their own.
fn is_constant(query: &Query) -> bool {
    match query {
        Query::Object(reference) => reference.kind == &CUSTOM_RESOURCE_DEFINITION || pools::is_rendered(reference),
        Query::Optional(_) | Query::List(_) => false,
    }
}

/// Whether a query needs a watch. MachineConfigs of others have none, because their names are not known in advance and so no
/// right covers them; ClusterVersion changes rarely. Both are read again at the regular recheck.
pub(crate) fn is_watched(query: &Query) -> bool {
    match query {
        Query::Optional(reference) => ![&MACHINE_CONFIG, &CLUSTER_VERSION].contains(&reference.kind),
        // Only a plan that restores reads them, and each such plan reads them again.
        Query::List(kind) if **kind == PLAN_RECORD => false,
        query => !is_constant(query),
    }
}

/// Identifies one version of one object.
fn identity(object: &Value) -> [&Value; 2] {
    ["uid", "resourceVersion"].map(|field| &object["metadata"][field])
}

/// Whether an object is unchanged, apart from a status that nobody reads. Labels and some annotations matter although they do not
/// change the generation.
fn is_same(known: &Value, seen: &ObjectVersion, kind: &Kind) -> bool {
    let metadata = &known["metadata"];
    if metadata["uid"] != *seen.uid {
        return false;
    }
    if metadata["resourceVersion"] == *seen.version {
        return true;
    }
    if kind.has_relevant_status() {
        return false;
    }
    seen.generation > 0
        && metadata["generation"] == seen.generation
        && are_same(&metadata["labels"], &seen.labels, |_| true)
        && are_same(&metadata["annotations"], &seen.annotations, autopilot::is_relevant)
}

/// Whether a map of texts has the relevant members that were seen, and no others.
fn are_same(known: &Value, seen: &BTreeMap<String, String>, is_relevant: impl Fn(&str) -> bool) -> bool {
    let known = known.as_object().into_iter().flatten().filter(|(name, _)| is_relevant(name));
    let known: BTreeMap<&str, Option<&str>> = known.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    known.len() == seen.len()
        && seen.iter().all(|(name, value)| known.get(name.as_str()) == Some(&Some(value.as_str())))
}

#[cfg(test)]
mod tests {
    use advisor::{
        ObjectRef,
        kind::{HYPER_CONVERGED, MACHINE_CONFIG_POOL},
    };
    use serde_json::json;

    use super::*;

    fn query() -> Query {
        Query::Object(ObjectRef::namespaced(&HYPER_CONVERGED, "here", "it"))
    }

    fn known(metadata: Value) -> FactCache {
        let object = json!({"metadata": metadata});
        FactCache { facts: Facts::of([(query(), Answer::Object { version: "v1", object })]) }
    }

    fn observed(version: &str, generation: i64, labels: &[(&str, &str)]) -> Observation {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let annotations = BTreeMap::new();
        Observation::Object(ObjectVersion { uid: "u".into(), version: version.into(), generation, labels, annotations })
    }

    /// With the annotations that matter.
    fn annotated(version: &str, annotations: &[(&str, &str)]) -> Observation {
        let Observation::Object(seen) = observed(version, 2, &[("a", "b")]) else { panic!("an object") };
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Observation::Object(ObjectVersion { annotations: annotations.iter().map(pair).collect(), ..seen })
    }

    /// W38 (cluster in memory): what others report in their status is not looked at.
    #[test]
    fn only_what_matters_is_a_change() {
        let metadata = json!({"uid": "u", "resourceVersion": "5", "generation": 2, "labels": {"a": "b"}});
        let cases = [
            ("the same version", observed("5", 2, &[("a", "b")]), false),
            ("another status", observed("9", 2, &[("a", "b")]), false),
            ("another spec", observed("9", 3, &[("a", "b")]), true),
            ("another label", observed("9", 2, &[("a", "c")]), true),
            ("one label more", observed("9", 2, &[("a", "b"), ("c", "d")]), true),
            ("gone", Observation::Absent, true),
        ];
        for (case, observation, changed) in cases {
            let mut cache = known(metadata.clone());
            assert_eq!(cache.merge(&query(), &observation), changed, "{case}");
            assert_eq!(cache.facts().answer(&query()).is_none(), changed, "{case}: forgotten with the change");
        }
        let other = Observation::Object(ObjectVersion {
            uid: "x".into(),
            version: "5".into(),
            generation: 2,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        });
        assert!(known(metadata).merge(&query(), &other), "another object of the same name");
        let plain = json!({"uid": "u", "resourceVersion": "5"});
        assert!(known(plain).merge(&query(), &observed("6", 0, &[])), "without a generation the version tells");
        assert!(!FactCache::default().merge(&query(), &Observation::Absent), "nothing was known");
    }

    /// An annotation does not change the generation, and may switch the autopilot on.
    #[test]
    fn an_annotation_of_the_autopilot_is_a_change_and_another_one_is_not() {
        let (switch, mode) = ("platform.kubevirt.io/autopilot", "platform.kubevirt.io/mode");
        let with = |annotations: Value| json!({"uid": "u", "resourceVersion": "5", "generation": 2, "labels": {"a": "b"}, "annotations": annotations});
        let cases = [
            ("neither has any", with(Value::Null), annotated("9", &[]), false),
            ("one that does not matter", with(json!({"other": "1"})), annotated("9", &[]), false),
            ("switched on", with(json!({"other": "1"})), annotated("9", &[(switch, "true")]), true),
            ("switched off", with(json!({switch: "true"})), annotated("9", &[]), true),
            ("another scope", with(json!({switch: "true"})), annotated("9", &[(switch, "swap-enable")]), true),
            ("as it was", with(json!({switch: "true"})), annotated("9", &[(switch, "true")]), false),
            (
                "opted out",
                with(json!({switch: "true"})),
                annotated("9", &[(switch, "true"), (mode, "unmanaged")]),
                true,
            ),
        ];
        for (case, metadata, observation, changed) in cases {
            assert_eq!(known(metadata).merge(&query(), &observation), changed, "{case}");
        }
    }

    #[test]
    fn a_list_changes_with_every_version_of_a_member_and_is_known_at_once() {
        let query = Query::List(&MACHINE_CONFIG_POOL);
        let item = |name: &str, version: &str| json!({"metadata": {"uid": name, "resourceVersion": version}});
        let items = vec![item("master", "2"), item("worker", "1")];
        let cache =
            || FactCache { facts: Facts::of([(query.clone(), Answer::List { version: "v1", items: items.clone() })]) };
        let seen = |members: &[(&str, &str)]| Observation::List {
            version: "v1",
            items: members.iter().map(|(name, version)| item(name, version)).collect(),
        };
        assert!(!cache().merge(&query, &seen(&[("master", "2"), ("worker", "1")])));
        assert!(cache().merge(&query, &seen(&[("worker", "1")])));
        let mut cache = cache();
        assert!(cache.merge(&query, &seen(&[("master", "2"), ("worker", "3")])));
        assert_eq!(cache.facts().list(&MACHINE_CONFIG_POOL)[1], item("worker", "3"));
    }
}
