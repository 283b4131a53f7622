//! The RBAC rules of the operator: exactly the rights that profiles declare. `config/rbac` is generated from here.
//! Objects are named one by one, also for `create`: the API server authorizes a creating apply with the name of the object, and
//! refuses a plain POST, which has no name.

mod metrics;
mod roles;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use crate::{Kind, ObjectRef};

pub use metrics::{CLIENT_CA_READER, PATH_ROLES, PathRole, request_reviewer};
pub use roles::{LEASE, NAMESPACE, Role, SERVICE_ACCOUNT, operator, people, policy_manager};
pub use yaml::files;
pub(crate) use yaml::{MARK, policy_manager_file};

/// What a profile does with an object, or with the objects of a kind. A changed object is also read and watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Reads and watches this object.
    Read(ObjectRef),
    /// Reads this object from time to time. Does not watch it.
    Get(ObjectRef),
    /// Reads objects whose names are known from other objects. Neither lists nor watches them.
    ReadAny(&'static Kind),
    /// Lists and watches all objects of the kind.
    List(&'static Kind),
    /// Changes this object, which others create.
    Change(ObjectRef),
    /// Creates this object, or changes it.
    Create(ObjectRef),
    /// Deletes this object.
    Delete(ObjectRef),
}

impl Access {
    pub fn kind(&self) -> &'static Kind {
        match self {
            Access::ReadAny(kind) | Access::List(kind) => kind,
            Access::Get(object)
            | Access::Read(object)
            | Access::Change(object)
            | Access::Create(object)
            | Access::Delete(object) => object.kind,
        }
    }

    /// The one object that it is about. None if it is about a kind.
    pub fn object(&self) -> Option<&ObjectRef> {
        match self {
            Access::ReadAny(_) | Access::List(_) => None,
            Access::Get(object)
            | Access::Read(object)
            | Access::Change(object)
            | Access::Create(object)
            | Access::Delete(object) => Some(object),
        }
    }

    fn verbs(&self) -> &'static [&'static str] {
        match self {
            Access::Get(_) | Access::ReadAny(_) => &["get"],
            Access::List(_) => &["list", "watch"],
            Access::Read(_) => &["get", "list", "watch"],
            Access::Change(_) => &["get", "list", "patch", "watch"],
            Access::Create(_) => &["create", "get", "list", "patch", "watch"],
            Access::Delete(_) => &["delete", "get", "list", "watch"],
        }
    }
}

/// Grants some verbs on some objects of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Who needs it, and for what.
    pub why: String,
    pub group: &'static str,
    /// Its plural, and for a subresource a slash and its name.
    pub resource: &'static str,
    /// The objects; empty means all objects.
    pub names: Vec<String>,
    pub verbs: Vec<&'static str>,
}

impl Rule {
    /// Whether it allows a request, as Kubernetes decides it. A list or watch has a name if it selects one; a POST has none.
    pub fn allows(&self, verb: &str, group: &str, resource: &str, name: Option<&str>) -> bool {
        let named = self.names.is_empty() || name.is_some_and(|name| self.names.iter().any(|known| known == name));
        named && self.group == group && self.resource == resource && self.verbs.contains(&verb)
    }
}

/// The rules that follow from declarations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// For the whole cluster.
    pub cluster: Vec<Rule>,
    /// For the operator's own namespace.
    pub own: Vec<Rule>,
}

/// The verbs on the objects of a name, and the profiles that need them.
#[derive(Debug, Clone, Default)]
struct Permission<'a> {
    verbs: BTreeSet<&'static str>,
    profiles: BTreeSet<&'a str>,
}

/// By kind and name; no name means all objects of the kind.
type Permissions<'a> = BTreeMap<(&'static Kind, Option<&'a str>), Permission<'a>>;

/// The rules that grant what profiles, each with its name, declare. Objects in other namespaces are granted by name in all of them: a
/// role in a namespace that does not exist yet could not be installed.
pub fn grants<'a>(declared: &'a [(&'a str, Vec<Access>)]) -> Grants {
    let (mut cluster, mut own) = (Permissions::new(), Permissions::new());
    for (profile, access) in
        declared.iter().flat_map(|(profile, list)| list.iter().map(move |access| (*profile, access)))
    {
        let object = access.object();
        let is_own = object.is_some_and(|object| object.namespace == Some(NAMESPACE));
        let permissions = if is_own { &mut own } else { &mut cluster };
        let permission = permissions.entry((access.kind(), object.map(|object| object.name.as_str()))).or_default();
        permission.verbs.extend(access.verbs());
        permission.profiles.insert(profile);
    }
    // Drop what a rule for all objects of the kind, or for all namespaces, grants already.
    let of_all: Permissions<'_> = cluster.clone().into_iter().filter(|((_, name), _)| name.is_none()).collect();
    for (&(kind, name), permission) in &mut own {
        remove(permission, cluster.get(&(kind, name)));
        remove(permission, of_all.get(&(kind, None)));
    }
    for (&(kind, _), permission) in cluster.iter_mut().filter(|((_, name), _)| name.is_some()) {
        remove(permission, of_all.get(&(kind, None)));
    }
    Grants { cluster: rules(&cluster), own: rules(&own) }
}

fn remove(permission: &mut Permission<'_>, granted: Option<&Permission<'_>>) {
    permission.verbs.retain(|verb| !granted.is_some_and(|granted| granted.verbs.contains(verb)));
}

/// One rule for all names of a kind with the same verbs. A rule for all objects of the kind stays separate.
fn rules(permissions: &Permissions<'_>) -> Vec<Rule> {
    let mut rules: Vec<(Rule, BTreeSet<&str>)> = Vec::new();
    for ((kind, name), permission) in permissions.iter().filter(|(_, permission)| !permission.verbs.is_empty()) {
        let verbs: Vec<_> = permission.verbs.iter().copied().collect();
        let (group, resource) = (kind.group, kind.plural);
        let same = |rule: &Rule| {
            (rule.group, rule.resource) == (group, resource) && rule.verbs == verbs && !rule.names.is_empty()
        };
        match rules.iter_mut().find(|(rule, _)| name.is_some() && same(rule)) {
            Some((rule, profiles)) => {
                rule.names.extend(name.map(str::to_owned));
                profiles.extend(&permission.profiles);
            }
            None => {
                let names = name.iter().map(|&name| name.to_owned()).collect();
                rules.push((Rule { why: String::new(), group, resource, names, verbs }, permission.profiles.clone()));
            }
        }
    }
    let explained = |(rule, profiles): (Rule, BTreeSet<&str>)| {
        let profiles: Vec<_> = profiles.into_iter().collect();
        Rule { why: format!("For {}.", profiles.join(" and ")), ..rule }
    };
    rules.into_iter().map(explained).collect()
}

#[cfg(test)]
mod tests;
