//! Whether a definition can replace the one of the last release: stored objects and old clients must go on working.
//!
//! The rules are those by which OLM refuses an upgrade: a definition only grows, and nothing that was accepted is refused.

use serde_json::Value;

/// A smaller one refuses what was accepted.
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// A larger one refuses what was accepted.
const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];

/// What must stay as it is.
const FIXED: [&str; 17] = [
    "type",
    "format",
    "pattern",
    "nullable",
    "multipleOf",
    "uniqueItems",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// What in `new` breaks users of `old`, one line each.
pub(crate) fn breaking_changes(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for field in ["group", "scope"] {
        if old["spec"][field] != new["spec"][field] {
            found.push(format!("spec.{field} was changed"));
        }
    }
    for name in ["kind", "plural", "singular"] {
        if old["spec"]["names"][name] != new["spec"]["names"][name] {
            found.push(format!("spec.names.{name} was changed"));
        }
    }
    let short_names = |definition: &Value| list(&definition["spec"]["names"]["shortNames"]);
    for name in short_names(old).iter().filter(|name| !short_names(new).contains(name)) {
        found.push(format!("the short name {name} was removed"));
    }
    for version in list(&old["spec"]["versions"]) {
        let name = text(&version["name"]);
        let Some(now) = list(&new["spec"]["versions"]).into_iter().find(|it| it["name"] == version["name"]) else {
            found.push(format!("version {name} was removed"));
            continue;
        };
        if version["served"] == true && now["served"] != true {
            found.push(format!("version {name} is not served any more"));
        }
        if version["subresources"] != now["subresources"] {
            found.push(format!("{name}: subresources were changed"));
        }
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        compare(&name, &schema(&version), &schema(&now), &mut found);
    }
    found
}

fn compare(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    let mut tell = |what: String| found.push(format!("{path}: {what}"));
    for field in FIXED.iter().filter(|field| old[**field] != new[**field]) {
        tell(format!("{field} was changed"));
    }
    if old["default"] != new["default"] {
        tell(format!("the default was {} and is {}", old["default"], new["default"]));
    }
    let refused = |missing: &Value| new["enum"].is_array() && !list(&new["enum"]).contains(missing);
    match old["enum"].is_array() {
        true => list(&old["enum"])
            .iter()
            .filter(|value| refused(value))
            .for_each(|value| tell(format!("{value} was removed"))),
        false if new["enum"].is_array() => tell("values were limited".to_owned()),
        false => {}
    }
    for (bounds, is_tighter) in [(UPPER, (|old, new| new < old) as fn(f64, f64) -> bool), (LOWER, |old, new| new > old)]
    {
        for bound in bounds {
            match (old[bound].as_f64(), new[bound].as_f64()) {
                (None, Some(now)) => tell(format!("{bound} {now} was added")),
                (Some(was), Some(now)) if is_tighter(was, now) => tell(format!("{bound} was {was} and is {now}")),
                _ => {}
            }
        }
    }
    let required = list(&new["required"]);
    for name in required.iter().filter(|name| !list(&old["required"]).contains(name)) {
        tell(format!("{} is required now", text(name)));
    }
    let rules = |schema: &Value| {
        list(&schema["x-kubernetes-validations"]).iter().map(|it| text(&it["rule"])).collect::<Vec<_>>()
    };
    for rule in rules(new).iter().filter(|rule| !rules(old).contains(rule)) {
        tell(format!("the rule {rule:?} was added"));
    }
    for (name, field) in old["properties"].as_object().into_iter().flatten() {
        match new["properties"].get(name) {
            Some(now) => compare(&format!("{path}.{name}"), field, now, found),
            None => found.push(format!("{path}.{name}: the field was removed")),
        }
    }
    for (part, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        match (old.get(part), new.get(part)) {
            (Some(was), Some(now)) => compare(&format!("{path}{mark}"), was, now, found),
            (None, None) => {}
            _ => found.push(format!("{path}: {part} was added or removed")),
        }
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition() -> Value {
        let spec = json!({
            "type": "object",
            "required": ["profile"],
            "properties": {
                "profile": {"type": "string", "maxLength": 10, "enum": ["a", "b"]},
                "seconds": {"type": "integer", "minimum": 60, "maximum": 90, "default": 60},
                "hosts": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 5}},
            },
            "x-kubernetes-validations": [{"rule": "self.seconds > 1", "message": "too short"}],
        });
        json!({"spec": {
            "group": "g", "scope": "Cluster", "names": {"kind": "K", "plural": "ks", "singular": "k", "shortNames": ["kk"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        }})
    }

    /// The definition with another value, or without one, at a pointer into its `spec`.
    fn with(pointer: &str, value: Option<Value>) -> Value {
        let mut definition = definition();
        let whole = match pointer.strip_prefix("/spec") {
            Some(rest) => format!("/spec/versions/0/schema/openAPIV3Schema/properties/spec{rest}"),
            None => format!("/spec{pointer}"),
        };
        let (parent, name) = whole.rsplit_once('/').unwrap();
        let parent = definition.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => parent.insert(name.to_owned(), value),
            None => parent.remove(name),
        };
        definition
    }

    #[test]
    fn what_breaks_users_is_told() {
        let cases = [
            ("/scope", Some(json!("Namespaced")), "spec.scope was changed"),
            ("/names/shortNames", Some(json!([])), "the short name \"kk\" was removed"),
            ("/versions", Some(json!([])), "version v1 was removed"),
            ("/versions/0/served", Some(json!(false)), "version v1 is not served any more"),
            ("/versions/0/subresources", None, "v1: subresources were changed"),
            ("/spec/properties/hosts", None, "v1.spec.hosts: the field was removed"),
            ("/spec/properties/seconds/type", Some(json!("string")), "v1.spec.seconds: type was changed"),
            ("/spec/properties/seconds/default", Some(json!(70)), "v1.spec.seconds: the default was 60 and is 70"),
            ("/spec/properties/seconds/default", None, "v1.spec.seconds: the default was 60 and is null"),
            ("/spec/properties/hosts/default", Some(json!([])), "v1.spec.hosts: the default was null and is []"),
            ("/spec/properties/seconds/minimum", Some(json!(61)), "v1.spec.seconds: minimum was 60 and is 61"),
            ("/spec/properties/seconds/maximum", Some(json!(89)), "v1.spec.seconds: maximum was 90 and is 89"),
            ("/spec/properties/hosts/minItems", Some(json!(1)), "v1.spec.hosts: minItems 1 was added"),
            ("/spec/properties/hosts/items/maxLength", Some(json!(4)), "v1.spec.hosts[]: maxLength was 5 and is 4"),
            ("/spec/properties/hosts/items/pattern", Some(json!("a")), "v1.spec.hosts[]: pattern was changed"),
            ("/spec/properties/profile/enum", Some(json!(["a"])), "v1.spec.profile: \"b\" was removed"),
            ("/spec/properties/hosts/items/enum", Some(json!(["a"])), "v1.spec.hosts[]: values were limited"),
            ("/spec/required", Some(json!(["profile", "seconds"])), "v1.spec: seconds is required now"),
            (
                "/spec/x-kubernetes-validations",
                Some(json!([{"rule": "self.seconds > 1"}, {"rule": "false"}])),
                "v1.spec: the rule \"false\" was added",
            ),
        ];
        for (pointer, value, expected) in cases {
            assert_eq!(breaking_changes(&definition(), &with(pointer, value)), [expected], "{pointer}");
        }
    }

    #[test]
    fn a_definition_may_grow_and_accept_more() {
        let cases = [
            (
                "/spec/properties/new",
                Some(json!({"type": "object", "required": ["x"], "properties": {"x": {"default": 1}}})),
            ),
            ("/spec/properties/seconds/minimum", Some(json!(1))),
            ("/spec/properties/seconds/maximum", None),
            ("/spec/properties/profile/enum", Some(json!(["c", "b", "a"]))),
            ("/spec/properties/profile/enum", None),
            ("/spec/properties/profile/description", Some(json!("Other words."))),
            ("/spec/required", None),
            ("/spec/x-kubernetes-validations", Some(json!([{"rule": "self.seconds > 1", "message": "other words"}]))),
            ("/spec/x-kubernetes-validations", None),
            ("/versions/0/additionalPrinterColumns", Some(json!([]))),
        ];
        for (pointer, value) in cases {
            assert_eq!(breaking_changes(&definition(), &with(pointer, value)), [""; 0], "{pointer}");
        }
    }
}
