//! HyperConverged: its location, and the paths of its settings in the served version.

use api::virt_platform_config::PlanInput;
use serde_json::Value;

use crate::{Facts, ObjectRef, Query, fields::Path, kind};

const NAME: &str = "kubevirt-hyperconverged";

/// OpenShift Virtualization's namespace, then the one that the upstream project uses.
const NAMESPACES: [&str; 2] = ["openshift-cnv", "kubevirt-hyperconverged"];

/// Where the object may be.
pub fn locations() -> [ObjectRef; 2] {
    NAMESPACES.map(|namespace| ObjectRef::namespaced(&kind::HYPER_CONVERGED, namespace, NAME))
}

/// The object to query next: the second location only if the first has none.
pub fn wants(facts: &Facts) -> Query {
    Query::Object(reference(facts))
}

/// The object that exists, or else the one of the first location.
pub fn reference(facts: &Facts) -> ObjectRef {
    let [first, second] = locations();
    let look_further = facts.is_absent(&first) && !facts.is_missing(&kind::HYPER_CONVERGED);
    if look_further && !facts.is_absent(&second) { second } else { first }
}

/// The path of a v1beta1 setting in the version that is served; v1 moved them all below `spec.virtualization`.
pub fn path(version: &str, setting: &str) -> String {
    match version {
        "v1beta1" => format!("spec.{setting}"),
        _ => format!("spec.virtualization.{setting}"),
    }
}

/// A setting of HyperConverged that a plan depends on. No value if it is not set, or if there is no HyperConverged. An empty map sets
/// nothing.
pub fn input(facts: &Facts, setting: &str) -> (Option<Value>, PlanInput) {
    let version = facts.version(&kind::HYPER_CONVERGED).unwrap_or("v1beta1");
    let path = path(version, setting);
    let value = facts.object(&reference(facts)).and_then(|object| Path::dotted(&path).find(object));
    let value = value.filter(|value| !sets_nothing(value)).cloned();
    let input = PlanInput {
        source: format!("{}/{NAME}", kind::HYPER_CONVERGED.kind),
        path,
        value: value.as_ref().map(Value::to_string),
    };
    (value, input)
}

/// Whether a value is as good as none.
pub(crate) fn sets_nothing(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Answer;

    const VERSION: &str = "v1beta1";

    fn place(namespace: &'static str) -> Query {
        Query::Object(ObjectRef::namespaced(&kind::HYPER_CONVERGED, namespace, NAME))
    }

    fn found(spec: Value) -> Answer {
        Answer::Object { version: VERSION, object: json!({"spec": spec}) }
    }

    #[test]
    fn it_is_looked_for_in_the_second_place_only_when_it_is_not_in_the_first() {
        let (first, second) = (place("openshift-cnv"), place("kubevirt-hyperconverged"));
        let absent = || Answer::Absent { version: VERSION };
        let cases = [
            ("nothing known", vec![], &first),
            ("found in the first", vec![(first.clone(), found(json!({})))], &first),
            ("not in the first", vec![(first.clone(), absent())], &second),
            ("found in the second", vec![(first.clone(), absent()), (second.clone(), found(json!({})))], &second),
            ("in neither: named after the first", vec![(first.clone(), absent()), (second.clone(), absent())], &first),
            ("no such kind", vec![(first.clone(), Answer::KindMissing)], &first),
        ];
        for (case, answers, expected) in cases {
            let facts = Facts::of(answers);
            assert_eq!(&wants(&facts), expected, "{case}");
            assert_eq!(&Query::Object(reference(&facts)), expected, "{case}");
        }
    }

    #[test]
    fn settings_are_where_the_version_keeps_them() {
        assert_eq!(path("v1beta1", "ksmConfiguration"), "spec.ksmConfiguration");
        assert_eq!(path("v1", "ksmConfiguration"), "spec.virtualization.ksmConfiguration");
    }

    #[test]
    fn an_input_names_its_source_and_has_a_value_if_there_is_one() {
        let spec = json!({"a": {"number": 5, "text": "x", "map": {"b": [true]}, "null": null}});
        let facts = Facts::of([(place("openshift-cnv"), found(spec))]);
        let cases = [
            ("a.number", Some("5")),
            ("a.text", Some("\"x\"")),
            ("a.map", Some("{\"b\":[true]}")),
            ("a.null", Some("null")),
            ("a.absent", None),
            ("b", None),
        ];
        for (setting, expected) in cases {
            let (value, input) = input(&facts, setting);
            assert_eq!(input.source, "HyperConverged/kubevirt-hyperconverged");
            assert_eq!(input.path, format!("spec.{setting}"));
            assert_eq!(input.value.as_deref(), expected, "{setting}");
            assert_eq!(value.map(|value| value.to_string()).as_deref(), expected, "{setting}");
        }
        assert_eq!(input(&Facts::default(), "a").1.path, "spec.a", "without any, as the oldest version has it");
    }
}
