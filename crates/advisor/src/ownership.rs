//! Who owns an object, according to `managedFields` and not to a label of the operator.

use api::virt_platform_config::TakeOver;
use serde_json::Value;

use crate::fields::{self, Manager, Path};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// Created by this manager, and nobody else has set a significant field: it may be deleted.
    Ours,
    /// This manager has set fields, and so have these: only the own fields may be given up.
    Shared { with: Vec<String> },
    /// This manager has set nothing: it stays as it is.
    Foreign { of: Vec<String> },
}

/// An object belongs to field manager `us` if no other manager owns anything but labels, annotations and status. Other profiles
/// are other managers.
pub fn ownership(object: &Value, us: &str) -> Ownership {
    let managers = fields::managers(object);
    let ours = managers.iter().any(|manager| manager.name == us && manager.operation == "Apply");
    let mut others: Vec<String> = Vec::new();
    for manager in managers.iter().filter(|manager| manager.name != us && manager.leaves.iter().any(is_significant)) {
        // A manager has one entry per operation and subresource.
        if !others.contains(&manager.name) {
            others.push(manager.name.clone());
        }
    }
    match (ours, others.is_empty()) {
        (true, true) => Ownership::Ours,
        (true, false) => Ownership::Shared { with: others },
        (false, _) => Ownership::Foreign { of: others },
    }
}

/// Whether nobody but field manager `us` has set anything significant. After a restore it owns nothing itself.
pub fn is_nobody_elses(object: &Value, us: &str) -> bool {
    match ownership(object, us) {
        Ownership::Ours => true,
        Ownership::Shared { .. } => false,
        Ownership::Foreign { of } => of.is_empty(),
    }
}

/// The names of owners, for people.
pub fn names(owners: &[String]) -> String {
    if owners.is_empty() { "somebody else".to_owned() } else { owners.join(", ") }
}

/// Whether `us` has set something within `field` that nobody else has set, so that giving it up removes it.
pub fn owns_alone(object: &Value, us: &str, field: &str) -> bool {
    let others: Vec<Manager> = fields::managers(object).into_iter().filter(|manager| manager.name != us).collect();
    let shared = |leaf: &Path| others.iter().any(|manager| manager.leaves.contains(leaf));
    let field = Path::dotted(field);
    fields::applied_by(object, us).iter().any(|leaf| leaf.is_within(&field) && !shared(leaf))
}

/// Adds the owners of removed fields to those whose fields are taken over.
pub fn with_removed_fields(mut taken: Vec<TakeOver>, object: &Value, us: &str, removed: &[Path]) -> Vec<TakeOver> {
    for manager in fields::managers(object).into_iter().filter(|manager| manager.name != us) {
        let lost = removed.iter().filter(|path| manager.leaves.iter().any(|leaf| leaf.overlaps(path)));
        let lost: Vec<String> = lost.map(Path::to_string).collect();
        if lost.is_empty() {
            continue;
        }
        let position = taken.iter().position(|known| known.manager == manager.name).unwrap_or_else(|| {
            taken.push(TakeOver { manager: manager.name.clone(), fields: Vec::new() });
            taken.len() - 1
        });
        let fields = &mut taken[position].fields;
        fields.extend(lost);
        fields.sort();
        fields.dedup();
    }
    taken.sort_by(|a, b| a.manager.cmp(&b.manager));
    taken
}

/// Whether a field is neither label, annotation nor status.
pub(crate) fn is_significant(leaf: &Path) -> bool {
    let trifles = ["metadata.labels", "metadata.annotations", "status"].map(Path::dotted);
    !trifles.iter().any(|trifle| leaf.is_within(trifle))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const US: &str = "virt-advisor-operator/example-profile";

    fn owned(managers: &[(&str, &str, Value)]) -> Ownership {
        let entry = |(name, operation, fields): &(&str, &str, Value)| json!({"manager": name, "operation": operation, "fieldsV1": fields});
        ownership(&json!({"metadata": {"managedFields": managers.iter().map(entry).collect::<Vec<_>>()}}), US)
    }

    #[test]
    fn an_object_is_ours_shared_or_foreign_by_who_set_what() {
        let spec = || json!({"f:spec": {"f:kernelArguments": {}}});
        let labels = || json!({"f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {"f:b": {}}}});
        let us = US;
        let cases = [
            ("we alone", vec![(us, "Apply", spec())], Ownership::Ours),
            ("somebody labeled it", vec![(us, "Apply", spec()), ("kubectl", "Update", labels())], Ownership::Ours),
            (
                "a controller wrote its status",
                vec![(us, "Apply", spec()), ("controller", "Update", json!({"f:status": {"f:phase": {}}}))],
                Ownership::Ours,
            ),
            (
                "somebody set a field",
                vec![(us, "Apply", spec()), ("kubectl-edit", "Update", spec())],
                Ownership::Shared { with: vec!["kubectl-edit".into()] },
            ),
            (
                "somebody is listed with nothing",
                vec![(us, "Apply", spec()), ("kubectl", "Update", json!({}))],
                Ownership::Ours,
            ),
            (
                "two set fields, one of them in two ways",
                vec![("a", "Apply", spec()), ("b", "Update", spec()), (us, "Apply", spec()), ("a", "Update", spec())],
                Ownership::Shared { with: vec!["a".into(), "b".into()] },
            ),
            ("somebody made it", vec![("argocd", "Apply", spec())], Ownership::Foreign { of: vec!["argocd".into()] }),
            ("nobody recorded anything", vec![], Ownership::Foreign { of: vec![] }),
            (
                "we only updated it, which is not how we write",
                vec![(us, "Update", spec())],
                Ownership::Foreign { of: vec![] },
            ),
        ];
        for (case, managers, expected) in cases {
            assert_eq!(owned(&managers), expected, "{case}");
        }
    }
}
