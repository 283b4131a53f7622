//! The field managers of profiles. Every profile has its own, so that an apply for one profile does not give up fields of another.
//! Earlier versions had one field manager for all profiles. Objects that were applied with it keep it: no other manager could give
//! their fields up.

use api::{
    names::{FIELD_MANAGER, field_manager},
    virt_platform_config::Item,
};
use serde_json::Value;

use crate::{
    ProfileInfo,
    fields::{self, Path},
};

/// The field manager of a profile on an object, given the fields that it manages there.
pub fn of_profile(about: &ProfileInfo, live: Option<&Value>, managed: &[impl AsRef<str>]) -> String {
    let own = field_manager(about.name);
    let Some((former, live)) = about.former_manager.zip(live) else { return own };
    let managed: Vec<Path> = managed.iter().map(|path| Path::parsed(path.as_ref())).collect();
    let is_managed = |leaf: &Path| managed.iter().any(|path| leaf.overlaps(path));
    let is_known = !fields::applied_by(live, &own).is_empty();
    let was_applied = fields::applied_by(live, former).iter().any(is_managed);
    if was_applied && !is_known { former.to_owned() } else { own }
}

/// The field manager under which an item is or was applied.
pub fn of_item(item: &Item) -> &str {
    item.field_manager.as_deref().unwrap_or(FIELD_MANAGER)
}

/// Whether a field manager belongs to a profile, or is the former one of all profiles.
pub fn is_of_a_profile(manager: &str) -> bool {
    manager == FIELD_MANAGER || profile(manager).is_some()
}

/// The profile that a field manager belongs to, if it belongs to a single one.
pub fn profile(manager: &str) -> Option<&str> {
    manager.strip_prefix(FIELD_MANAGER)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Profile, profiles};

    fn live(managers: &[(&str, &str, Value)]) -> Value {
        let entry = |(manager, operation, data): &(&str, &str, Value)| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:data": data}});
        json!({"metadata": {"managedFields": managers.iter().map(entry).collect::<Vec<_>>()}})
    }

    #[test]
    fn the_former_name_is_kept_as_long_as_it_holds_what_the_item_manages() {
        let own = "virt-advisor-operator/example-profile";
        let (a, b, whole) = (|| json!({"f:a": {}}), || json!({"f:b": {}}), || json!({}));
        let cases = [
            ("nobody set anything", live(&[]), own),
            ("somebody else did", live(&[("kubectl", "Apply", a())]), own),
            ("applied under the former name", live(&[(FIELD_MANAGER, "Apply", a())]), FIELD_MANAGER),
            ("as part of something atomic", live(&[(FIELD_MANAGER, "Apply", whole())]), FIELD_MANAGER),
            ("something else was", live(&[(FIELD_MANAGER, "Apply", b())]), own),
            ("not applied, which is not how we write", live(&[(FIELD_MANAGER, "Update", a())]), own),
            ("applied under both", live(&[(FIELD_MANAGER, "Apply", a()), (own, "Apply", b())]), own),
        ];
        let about = profiles::example::Example.about();
        for (case, live, expected) in cases {
            assert_eq!(of_profile(about, Some(&live), &["data.a"]), expected, "{case}");
        }
        assert_eq!(of_profile(about, None, &["data.a"]), own, "nothing there");
    }

    #[test]
    fn a_profile_that_never_shared_a_name_does_not_claim_it() {
        static NEW: ProfileInfo = ProfileInfo { name: "new", former_manager: None, ..EXAMPLE };
        let live = live(&[(FIELD_MANAGER, "Apply", json!({"f:a": {}}))]);
        assert_eq!(of_profile(&NEW, Some(&live), &["data.a"]), "virt-advisor-operator/new");
    }

    const EXAMPLE: ProfileInfo = ProfileInfo {
        name: "example-profile",
        description: "",
        category: "",
        impact_summary: "",
        impact: api::virt_platform_config::Severity::Low,
        advertised: false,
        options_member: None,
        former_manager: Some(FIELD_MANAGER),
        documentation: "",
    };

    #[test]
    fn an_item_of_an_earlier_version_was_applied_under_the_shared_name() {
        assert_eq!(of_item(&Item::default()), FIELD_MANAGER);
        let item = Item { field_manager: Some("virt-advisor-operator/a".into()), ..Item::default() };
        assert_eq!(of_item(&item), "virt-advisor-operator/a");
    }

    #[test]
    fn field_managers_are_told_apart() {
        for (manager, of_a_profile, name) in [
            ("virt-advisor-operator", true, None),
            ("virt-advisor-operator/example-profile", true, Some("example-profile")),
            ("virt-advisor-operator-bench", false, None),
            ("kubectl", false, None),
        ] {
            assert_eq!((is_of_a_profile(manager), profile(manager)), (of_a_profile, name), "{manager}");
        }
    }
}
