//! The operator offers each profile by an object that does nothing until somebody changes its action.

use api::names::{
    ADVISOR_GROUP, AUTO_CREATED_ANNOTATION, CATEGORY_LABEL, DESCRIPTION_ANNOTATION, FIELD_MANAGER,
    IMPACT_SUMMARY_ANNOTATION, VERSION,
};
use serde_json::{Map, Value, json};

use crate::{
    ProfileInfo,
    fields::{self, Path},
};

/// The metadata of an object that describes its profile: section, key and text.
fn texts(about: &ProfileInfo) -> [(&'static str, &'static str, &'static str); 3] {
    [
        ("annotations", DESCRIPTION_ANNOTATION, about.description),
        ("annotations", IMPACT_SUMMARY_ANNOTATION, about.impact_summary),
        ("labels", CATEGORY_LABEL, about.category),
    ]
}

/// The object that offers a profile.
pub fn offer(about: &ProfileInfo) -> Value {
    let mut metadata = json!({"name": about.name, "annotations": {AUTO_CREATED_ANNOTATION: "true"}});
    for (part, name, text) in texts(about) {
        metadata[part][name] = text.into();
    }
    json!({
        "apiVersion": format!("{ADVISOR_GROUP}/{VERSION}"),
        "kind": "VirtPlatformConfig",
        "metadata": metadata,
        "spec": {"profile": about.name, "action": "Ignore"},
    })
}

/// A merge patch with the texts of this version, for objects that the operator has offered. Texts that somebody else has changed or
/// removed stay.
pub fn refresh(object: &Value, about: &ProfileInfo) -> Option<Value> {
    object.pointer("/metadata/annotations")?.get(AUTO_CREATED_ANNOTATION).filter(|made| *made == "true")?;
    let owners = fields::managers(object);
    let is_ours = |path: &Path| {
        let mut owners = owners.iter().filter(|owner| owner.leaves.contains(path)).peekable();
        owners.peek().is_some() && owners.all(|owner| owner.name == FIELD_MANAGER)
    };
    let mut metadata = Map::new();
    for (part, name, text) in texts(about) {
        let path = Path::member(&["metadata", part, name]);
        if path.find(object).is_some_and(|found| found != text) && is_ours(&path) {
            let slot = metadata.entry(part).or_insert_with(|| json!({}));
            slot[name] = text.into();
        }
    }
    if metadata.is_empty() {
        return None;
    }
    metadata.insert("resourceVersion".into(), object["metadata"]["resourceVersion"].clone());
    Some(json!({"metadata": metadata}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, profiles::load_aware::LoadAware};

    fn stored(changes: impl FnOnce(&mut Value)) -> Value {
        let mut object = offer(LoadAware.about());
        let owned = json!({"f:metadata": {
            "f:annotations": {format!("f:{DESCRIPTION_ANNOTATION}"): {}, format!("f:{IMPACT_SUMMARY_ANNOTATION}"): {}},
            "f:labels": {format!("f:{CATEGORY_LABEL}"): {}},
        }});
        object["metadata"]["resourceVersion"] = "7".into();
        object["metadata"]["managedFields"] =
            json!([{"manager": FIELD_MANAGER, "operation": "Update", "fieldsV1": owned}]);
        changes(&mut object);
        object
    }

    #[test]
    fn what_is_offered_reads_as_in_the_guide() {
        assert_eq!(
            offer(LoadAware.about()),
            json!({
                "apiVersion": "advisor.kubevirt.io/v1alpha1",
                "kind": "VirtPlatformConfig",
                "metadata": {
                    "name": "load-aware-rebalancing",
                    "annotations": {
                        "advisor.kubevirt.io/auto-created": "true",
                        "advisor.kubevirt.io/description": "Enables load-aware VM rebalancing and PSI metrics for intelligent scheduling",
                        "advisor.kubevirt.io/impact-summary": "Medium - May require node reboots if PSI metrics are enabled",
                    },
                    "labels": {"advisor.kubevirt.io/category": "scheduling"},
                },
                "spec": {"profile": "load-aware-rebalancing", "action": "Ignore"},
            })
        );
    }

    /// W41 (profile never offered): an upgrade brings its words along.
    #[test]
    fn an_older_text_of_ours_is_refreshed_and_nothing_else() {
        let refresh = |object: Value| refresh(&object, LoadAware.about());
        assert_eq!(refresh(stored(|_| {})), None, "up to date");
        let old = |object: &mut Value| object["metadata"]["annotations"][DESCRIPTION_ANNOTATION] = "older words".into();
        let text = LoadAware.about().description;
        let expected = json!({"metadata": {"annotations": {DESCRIPTION_ANNOTATION: text}, "resourceVersion": "7"}});
        assert_eq!(refresh(stored(old)), Some(expected));
        let edited = stored(|object| {
            old(object);
            object["metadata"]["managedFields"][0]["manager"] = "kubectl-edit".into();
        });
        assert_eq!(refresh(edited), None, "somebody else wrote it");
        let removed = stored(|object| object["metadata"]["annotations"] = json!({AUTO_CREATED_ANNOTATION: "true"}));
        assert_eq!(refresh(removed), None, "somebody took it out");
        let own = stored(|object| {
            old(object);
            object["metadata"]["annotations"][AUTO_CREATED_ANNOTATION].take();
        });
        assert_eq!(refresh(own), None, "not made by us");
    }
}
