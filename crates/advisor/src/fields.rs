//! Field ownership as Kubernetes records it (`metadata.managedFields`), and the values that fields have in an object.

use std::fmt;

use serde_json::{Map, Value};

/// One element of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum PathElement {
    /// A member of a map.
    Field(String),
    /// The entry of a list whose key fields have these values.
    Key(Map<String, Value>),
    /// The entry of a set that has this value.
    Value(Value),
    /// An entry of a list by its index.
    Index(usize),
}

/// The path from the root of an object to a field.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Path(Vec<PathElement>);

impl Path {
    /// A path of plain members, as `spec.kernelArguments`.
    pub fn dotted(text: &str) -> Self {
        Path(text.split('.').map(|name| PathElement::Field(name.to_owned())).collect())
    }

    /// A path of plain members as it is displayed: `metadata.labels["a.b/c"]`. What cannot be read is one member.
    pub fn parsed(text: &str) -> Self {
        let mut elements = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let quoted = rest.strip_prefix('[').and_then(|quoted| {
                let mut names = serde_json::Deserializer::from_str(quoted).into_iter::<String>();
                let name = names.next()?.ok()?;
                let end = names.byte_offset();
                Some((name, quoted[end..].strip_prefix(']')?))
            });
            let (name, left) = quoted.unwrap_or_else(|| {
                let end = rest.char_indices().skip(1).find(|(_, letter)| ['.', '['].contains(letter));
                let end = end.map_or(rest.len(), |(end, _)| end);
                (rest[..end].to_owned(), &rest[end..])
            });
            elements.push(PathElement::Field(name));
            rest = left.strip_prefix('.').unwrap_or(left);
        }
        Path(elements)
    }

    /// A path of plain members, whose names may contain any characters.
    pub fn member(names: &[&str]) -> Self {
        Path(names.iter().map(|&name| PathElement::Field(name.to_owned())).collect())
    }

    /// The path as the keys of a `fieldsV1` tree, which keep every character of a name.
    pub fn keys(&self) -> Vec<String> {
        self.0.iter().map(key).collect()
    }

    /// The path that has these keys.
    pub fn from_keys(keys: &[String]) -> Option<Self> {
        keys.iter().map(|key| element(key)).collect::<Option<Vec<_>>>().map(Path)
    }

    /// The path to a member of this field.
    pub fn with_member(&self, name: &str) -> Self {
        self.child(PathElement::Field(name.to_owned()))
    }

    /// The path up to the list that it enters, if it enters one.
    pub fn without_entries(&self) -> Self {
        Path(self.0.iter().take_while(|element| matches!(element, PathElement::Field(_))).cloned().collect())
    }

    /// The first elements of the path.
    pub fn outermost(&self, count: usize) -> Self {
        Path(self.0.iter().take(count).cloned().collect())
    }

    fn child(&self, element: PathElement) -> Self {
        Path(self.0.iter().cloned().chain([element]).collect())
    }

    /// Whether the field lies at or below another one.
    pub fn is_within(&self, other: &Path) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether one of the two lies at or below the other.
    pub fn overlaps(&self, other: &Path) -> bool {
        self.is_within(other) || other.is_within(self)
    }

    pub fn find<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |value, element| match element {
            PathElement::Field(name) => value.get(name),
            PathElement::Key(key) => {
                let entry = |entry: &&Value| key.iter().all(|(name, value)| entry.get(name) == Some(value));
                value.as_array()?.iter().find(entry)
            }
            PathElement::Value(wanted) => value.as_array()?.iter().find(|entry| *entry == wanted),
            PathElement::Index(index) => value.get(index),
        })
    }

    /// Sets the field, and creates the maps on the way. Only for paths of plain members.
    pub fn set(&self, object: &mut Value, value: Value) {
        let mut slot = object;
        for element in &self.0 {
            let PathElement::Field(name) = element else { return };
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            slot = &mut slot[name.as_str()];
        }
        *slot = value;
    }

    /// Removes the field from an object; maps that become empty stay.
    pub fn remove(&self, object: &mut Value) {
        let Some((PathElement::Field(name), parents)) = self.0.split_last() else { return };
        let pointer: String = parents.iter().map(|element| format!("/{}", pointer_part(element))).collect();
        if let Some(parent) = object.pointer_mut(&pointer).and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }

    /// The field as a JSON pointer. Only for paths of plain members.
    pub fn pointer(&self) -> String {
        self.0.iter().map(|element| format!("/{}", pointer_part(element))).collect()
    }
}

fn pointer_part(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => name.replace('~', "~0").replace('/', "~1"),
        PathElement::Index(index) => index.to_string(),
        PathElement::Key(_) | PathElement::Value(_) => "-".to_owned(),
    }
}

/// Whether a name can be told from its neighbors in a path without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['.', '/', '[', ']', '"'])
}

/// `spec.template.containers[name="web"].image`
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, element) in self.0.iter().enumerate() {
            match element {
                PathElement::Field(name) if !is_plain(name) => write!(f, "[{}]", Value::from(name.as_str()))?,
                PathElement::Field(name) => write!(f, "{}{name}", if position > 0 { "." } else { "" })?,
                PathElement::Key(key) => {
                    let pairs: Vec<_> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    write!(f, "[{}]", pairs.join(","))?;
                }
                PathElement::Value(value) => write!(f, "[={value}]")?,
                PathElement::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The fields that an object sets, down to scalars, lists and empty maps.
pub fn set_by(object: &Value) -> Vec<Path> {
    fn walk(value: &Value, path: &Path, found: &mut Vec<Path>) {
        match value.as_object().filter(|map| !map.is_empty()) {
            Some(map) => {
                map.iter().for_each(|(name, below)| walk(below, &path.child(PathElement::Field(name.clone())), found))
            }
            None => found.push(path.clone()),
        }
    }
    let mut found = Vec::new();
    walk(object, &Path::default(), &mut found);
    found
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub struct Manager {
    pub name: String,
    /// `Apply` for server-side apply, `Update` for everything else.
    pub operation: String,
    pub subresource: String,
    pub time: Option<String>,
    /// The outermost fields that the manager owns as a whole.
    pub leaves: Vec<Path>,
}

/// Who owns which fields of an object.
pub fn managers(object: &Value) -> Vec<Manager> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let manager = |entry: &Value| Manager {
        name: text(entry, "manager"),
        operation: text(entry, "operation"),
        subresource: text(entry, "subresource"),
        time: entry["time"].as_str().map(str::to_owned),
        leaves: leaves(&entry["fieldsV1"]),
    };
    entries.into_iter().flatten().map(manager).collect()
}

/// The leaves that a field manager owns by server-side apply.
pub fn applied_by(object: &Value, manager: &str) -> Vec<Path> {
    let ours = |entry: &Manager| entry.name == manager && entry.operation == "Apply" && entry.subresource.is_empty();
    managers(object).into_iter().filter(ours).flat_map(|entry| entry.leaves).collect()
}

/// Whether a field manager owns anything of an object.
pub fn owns_anything(object: &Value, manager: &str) -> bool {
    !entries_of(object, manager).is_empty()
}

/// The positions of a field manager's entries in `metadata.managedFields`. Whoever removes a field by a patch owns the default that
/// takes its place, by an update.
pub fn entries_of(object: &Value, manager: &str) -> Vec<usize> {
    let is_its = |entry: &Manager| entry.name == manager && entry.subresource.is_empty();
    managers(object).iter().enumerate().filter(|(_, entry)| is_its(entry)).map(|(at, _)| at).collect()
}

/// Flattens a `fieldsV1` tree. Atomic lists and maps, and empty ones, are leaves: nothing is below them.
fn leaves(tree: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    collect(tree, &Path::default(), &mut found);
    found
}

fn collect(tree: &Value, path: &Path, found: &mut Vec<Path>) {
    let children: Vec<_> =
        tree.as_object().into_iter().flatten().filter_map(|(key, below)| Some((element(key)?, below))).collect();
    if children.is_empty() && !path.0.is_empty() {
        found.push(path.clone());
    }
    for (element, below) in children {
        collect(below, &path.child(element), found);
    }
}

/// Parses one key of a `fieldsV1` tree; `.` stands for the entry itself and is no element.
fn element(key: &str) -> Option<PathElement> {
    let (kind, rest) = key.split_once(':')?;
    match kind {
        "f" => Some(PathElement::Field(rest.to_owned())),
        "k" => serde_json::from_str(rest).ok().map(PathElement::Key),
        "v" => serde_json::from_str(rest).ok().map(PathElement::Value),
        "i" => rest.parse().ok().map(PathElement::Index),
        _ => None,
    }
}

/// Writes one key of a `fieldsV1` tree.
fn key(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(key) => format!("k:{}", Value::Object(key.clone())),
        PathElement::Value(value) => format!("v:{value}"),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {
                "labels": {"machineconfiguration.openshift.io/role": "worker"},
                "managedFields": [
                    {"manager": "us", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:machineconfiguration.openshift.io/role": {}}},
                        "f:spec": {
                            "f:empty": {},
                            "f:list": {},
                            "f:ports": {r#"k:{"port":80}"#: {".": {}, "f:name": {}, "f:port": {}}},
                            "f:set": {r#"v:"a""#: {}},
                        },
                    }},
                    {"manager": "us", "operation": "Update", "fieldsV1": {"f:spec": {"f:other": {}}}},
                    {"manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}},
                ],
            },
            "spec": {
                "empty": {}, "list": [1, 2], "other": 1, "set": ["a", "b"],
                "ports": [{"port": 443, "name": "https"}, {"port": 80, "name": "http"}],
            },
        })
    }

    #[test]
    fn leaves_are_what_the_manager_applied_and_are_found_in_the_object() {
        let object = object();
        let found: Vec<_> = applied_by(&object, "us")
            .iter()
            .map(|path| (path.to_string(), path.find(&object).cloned().unwrap_or_default()))
            .collect();
        assert_eq!(
            found,
            [
                (r#"metadata.labels["machineconfiguration.openshift.io/role"]"#.to_owned(), json!("worker")),
                ("spec.empty".to_owned(), json!({})),
                ("spec.list".to_owned(), json!([1, 2])),
                ("spec.ports[port=80].name".to_owned(), json!("http")),
                ("spec.ports[port=80].port".to_owned(), json!(80)),
                ("spec.set[=\"a\"]".to_owned(), json!("a")),
            ]
        );
    }

    #[test]
    fn a_path_is_read_back_from_its_keys() {
        for path in applied_by(&object(), "us") {
            assert_eq!(Path::from_keys(&path.keys()), Some(path));
        }
        for names in [vec!["a.b/c", "f:x", "", "k:{}", "\"", "[0]"], vec![]] {
            let path = Path::member(&names);
            assert_eq!(Path::from_keys(&path.keys()), Some(path));
        }
        let all = ["f:spec", r#"k:{"name":"a.b","port":80}"#, r#"v:"x:y""#, "v:1", "i:3"].map(str::to_owned);
        assert_eq!(Path::from_keys(&all).unwrap().keys(), all);
        for unreadable in ["spec", ".", "x:spec", "i:-1", "k:name", "v:"] {
            assert_eq!(Path::from_keys(&[unreadable.to_owned()]), None, "{unreadable}");
        }
    }

    proptest::proptest! {
        /// Items of a plan have their paths as text.
        #[test]
        fn a_path_of_members_is_read_back_from_its_text(names in proptest::collection::vec("[a./~\\[\\]\"= \\\\:é\n]{0,4}", 0..5)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let path = Path::member(&names);
            proptest::prop_assert_eq!(Path::parsed(&path.to_string()), path);
        }
    }

    #[test]
    fn a_path_without_entries_ends_at_the_list() {
        let path =
            |keys: &[&str]| Path::from_keys(&keys.iter().map(|&key| key.to_owned()).collect::<Vec<_>>()).unwrap();
        assert_eq!(
            path(&["f:spec", "f:ports", r#"k:{"port":80}"#, "f:name"]).without_entries(),
            Path::dotted("spec.ports")
        );
        assert_eq!(Path::dotted("spec.a").without_entries(), Path::dotted("spec.a"));
    }

    #[test]
    fn a_field_is_set_where_it_was_found_or_not() {
        let mut object = json!({"spec": {"a": 1, "scalar": 2}});
        Path::member(&["spec", "b.c", "d"]).set(&mut object, json!(3));
        Path::dotted("spec.scalar.e").set(&mut object, json!(4));
        Path::dotted("spec.a").set(&mut object, json!({}));
        assert_eq!(object, json!({"spec": {"a": {}, "scalar": {"e": 4}, "b.c": {"d": 3}}}));
    }

    #[test]
    fn a_path_lies_within_its_parents_and_itself_only() {
        let path = Path::dotted("spec.evictionLimits.node");
        for (parent, within) in [
            ("spec", true),
            ("spec.evictionLimits", true),
            ("spec.evictionLimits.node", true),
            ("spec.evictionLimits.nodes", false),
            ("spec.eviction", false),
            ("metadata", false),
        ] {
            assert_eq!(path.is_within(&Path::dotted(parent)), within, "{parent}");
        }
    }

    #[test]
    fn a_removed_field_is_gone_and_its_neighbors_stay() {
        let mut object = json!({"spec": {"ksmConfiguration": {"nodeLabelSelector": {}}, "infra": {}}});
        Path::dotted("spec.ksmConfiguration").remove(&mut object);
        assert_eq!(object, json!({"spec": {"infra": {}}}));
        Path::dotted("spec.absent.deeper").remove(&mut object);
        assert_eq!(object, json!({"spec": {"infra": {}}}));
    }
}
