//! Others who set the same fields as an applied plan. Two that keep applying different values overwrite each other forever.

use std::collections::{BTreeMap, BTreeSet};

use advisor::{autopilot, field_manager, fields};
use api::virt_platform_config::{Item, ItemState};
use kube_io::RequestError;
use serde_json::Value;

use super::finding::Finding;

const CHECK: &str = "other managers";

/// So many fields are named.
const MOST_FIELDS: usize = 3;

/// An item of a plan, and its target as it is.
pub(super) struct Seen {
    pub(super) item: Item,
    pub(super) live: Result<Value, RequestError>,
}

/// Whether the item was applied. Before that, the plan itself says whose fields it takes over.
pub(super) fn is_applied(item: &Item) -> bool {
    matches!(item.state, ItemState::InProgress | ItemState::Completed)
}

pub(super) fn managers(seen: &[Seen]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Seen { item, live } in seen {
        let target = &item.target_ref;
        let namespace = target.namespace.as_ref().map_or_else(String::new, |namespace| format!("{namespace}/"));
        let object = format!("{} {namespace}{}", target.kind, target.name);
        match live {
            Ok(live) => findings.extend(others(item, live).into_iter().map(|(manager, fields)| {
                let message = format!("{manager} sets fields of {object}, too: {}", listed(&fields));
                Finding::warning(CHECK, message, remedy(&manager, item))
            })),
            Err(error) if error.class.is_absent() => {}
            Err(error) => findings.push(Finding::unknown(CHECK, &object, error)),
        }
    }
    if findings.is_empty() {
        let message = if seen.is_empty() { "no plan is applied" } else { "nobody else sets what plans have applied" };
        findings.push(Finding::ok(CHECK, message));
    }
    findings
}

/// The fields that the item sets or takes out, among those that it manages. A managed map may have members of others.
fn ours(item: &Item) -> Vec<fields::Path> {
    let parsed = |paths: &[String]| paths.iter().map(|path| fields::Path::parsed(path)).collect::<Vec<_>>();
    let managed = parsed(&item.managed_fields);
    let Some(desired) = &item.desired_state else { return managed };
    let mut ours = fields::set_by(&Value::Object(desired.clone()));
    ours.extend(parsed(&item.removes));
    ours.retain(|path| managed.iter().any(|managed| managed.overlaps(path)));
    ours
}

/// Who else owns fields that the item sets, and which.
fn others(item: &Item, live: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let managed = ours(item);
    let us = field_manager::of_item(item);
    let mut others: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for manager in fields::managers(live) {
        if manager.name == us || field_manager::is_of_a_profile(&manager.name) || !manager.subresource.is_empty() {
            continue;
        }
        let shared = managed.iter().filter(|path| manager.leaves.iter().any(|leaf| leaf.overlaps(path)));
        let shared: BTreeSet<String> = shared.map(fields::Path::to_string).collect();
        if !shared.is_empty() {
            others.entry(manager.name).or_default().extend(shared);
        }
    }
    others
}

fn listed(fields: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = fields.iter().take(MOST_FIELDS).map(String::as_str).collect();
    let more = fields.len() - shown.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", shown.join(", "))
}

fn remedy(manager: &str, item: &Item) -> String {
    match manager {
        autopilot::MANAGER => format!("decide who manages it; to have the autopilot leave it alone: {}", autopilot::opt_out(&item.target_ref)),
        manager if manager.starts_with("argocd") => {
            "take these fields out of the manifest in Git, or let Argo CD ignore them (ignoreDifferences): docs/gitops.md".into()
        }
        "kustomize-controller" | "helm-controller" | "flux" => {
            "take these fields out of the manifest in Git: docs/gitops.md".into()
        }
        _ => "take these fields out of what it applies, or set action: Ignore on the configuration".into(),
    }
}

#[cfg(test)]
mod tests {
    use api::{names::field_manager, virt_platform_config::TargetRef};
    use kube_io::Class;
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Level;

    const US: &str = "load-aware-rebalancing";

    fn item() -> Item {
        Item {
            target_ref: TargetRef {
                kind: "KubeDescheduler".into(),
                name: "cluster".into(),
                namespace: Some("ns".into()),
                ..TargetRef::default()
            },
            field_manager: Some(field_manager(US)),
            managed_fields: vec!["spec.mode".into(), "spec.profiles".into()],
            ..Item::default()
        }
    }

    fn live(managers: &[(&str, Value)]) -> Value {
        let entry = |(name, fields): &(&str, Value)| json!({"manager": name, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}});
        json!({"metadata": {"managedFields": managers.iter().map(entry).collect::<Vec<_>>()}})
    }

    #[test]
    fn whoever_sets_the_same_fields_is_told_with_the_way_out() {
        let us = (field_manager(US), json!({"f:mode": {}, "f:profiles": {}}));
        let us = (us.0.as_str(), us.1);
        let profile = field_manager("virt-higher-density");
        for (case, other, remedy) in [
            ("the autopilot", ("virt-platform-autopilot", json!({"f:mode": {}})), Some("kubectl annotate")),
            ("Argo CD", ("argocd-controller", json!({"f:profiles": {}})), Some("ignoreDifferences")),
            ("a person", ("kubectl", json!({"f:mode": {}})), Some("action: Ignore")),
            ("of other fields", ("argocd-controller", json!({"f:logLevel": {}})), None),
            ("another profile, which has its own check", (profile.as_str(), json!({"f:mode": {}})), None),
        ] {
            let findings = managers(&[Seen { item: item(), live: Ok(live(&[us.clone(), other])) }]);
            match remedy {
                Some(remedy) => {
                    assert_eq!(findings[0].level, Level::Warning, "{case}");
                    assert!(findings[0].remedy.as_ref().unwrap().contains(remedy), "{case}: {findings:?}");
                }
                None => assert_eq!(findings[0].level, Level::Ok, "{case}: {findings:?}"),
            }
        }
    }

    /// The descheduler has settings in the same map that no profile is about.
    #[test]
    fn another_member_of_a_managed_map_is_nobodys_business() {
        let state = json!({"apiVersion": "v1", "spec": {"profileCustomizations": {"devEnableSoftTainter": true}}});
        let item = Item {
            managed_fields: vec!["spec.profileCustomizations".into()],
            desired_state: state.as_object().cloned(),
            removes: vec!["spec.profileCustomizations.thresholds".into()],
            ..item()
        };
        for (fields, expected) in [
            (json!({"f:profileCustomizations": {"f:namespaces": {}}}), None),
            (json!({"f:profileCustomizations": {"f:devEnableSoftTainter": {}}}), Some("devEnableSoftTainter")),
            (json!({"f:profileCustomizations": {"f:thresholds": {}}}), Some("thresholds")),
            (json!({"f:profileCustomizations": {}}), Some("profileCustomizations")),
            (json!({"f:mode": {}}), None),
        ] {
            let live = live(&[("kubectl", fields.clone())]);
            let findings = managers(&[Seen { item: item.clone(), live: Ok(live) }]);
            match expected {
                Some(field) => assert!(findings[0].message.contains(field), "{fields}: {findings:?}"),
                None => assert_eq!(findings[0].level, Level::Ok, "{fields}: {findings:?}"),
            }
        }
    }

    #[test]
    fn an_object_that_may_not_be_read_is_not_called_fine() {
        let seen = |class| Seen { item: item(), live: Err(RequestError::other("reading".into(), "no".into(), class)) };
        assert_eq!(managers(&[seen(Class::Forbidden)])[0].level, Level::Unknown);
        assert_eq!(
            managers(&[seen(Class::NotFound)])[0].level,
            Level::Ok,
            "that it is gone is drift, and told as such"
        );
        assert_eq!(managers(&[])[0].message, "no plan is applied");
    }
}
