//! The part of a schema that field ownership depends on: what is merged by member, and what is set as a whole.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// Scalars, and lists and maps that are set as a whole.
    Whole,
    /// Nothing is declared: maps are merged, lists are set as a whole.
    Undeclared,
    Map {
        declared: BTreeMap<String, Shape>,
        /// Members that are not declared by name.
        others: Box<Shape>,
    },
    /// A list with these members as the key of its entries.
    Keyed { keys: Vec<String>, entry: Box<Shape> },
    /// A list that is a set of values.
    Set,
}

static UNDECLARED: Shape = Shape::Undeclared;

impl Shape {
    /// The shape of a member, and whether it is declared by name.
    pub(crate) fn member(&self, name: &str) -> (&Shape, bool) {
        match self {
            Shape::Map { declared, others } => match declared.get(name) {
                Some(shape) => (shape, true),
                None => (others, false),
            },
            _ => (&UNDECLARED, false),
        }
    }

    /// The shape of an object with this schema.
    pub(crate) fn of_kind(schema: &Value) -> Shape {
        let Shape::Map { mut declared, others } = Shape::of(schema) else { return Shape::object([]) };
        declared.insert("metadata".into(), metadata());
        Shape::Map { declared, others }
    }

    /// The shape of an object with maps of text at these places.
    pub(crate) fn object<const N: usize>(maps: [&str; N]) -> Shape {
        let mut declared: BTreeMap<String, Shape> =
            maps.into_iter().map(|name| (name.to_owned(), map_of_text())).collect();
        declared.insert("metadata".into(), metadata());
        Shape::Map { declared, others: Box::new(Shape::Undeclared) }
    }

    fn of(schema: &Value) -> Shape {
        let has = |name: &str, value: &str| schema[name] == value;
        match schema["type"].as_str() {
            Some("object") if has("x-kubernetes-map-type", "atomic") => Shape::Whole,
            Some("object") => {
                let members = schema["properties"].as_object().into_iter().flatten();
                let declared = members.map(|(name, below)| (name.clone(), Shape::of(below))).collect();
                let others = match &schema["additionalProperties"] {
                    below @ Value::Object(_) => Shape::of(below),
                    _ => Shape::Undeclared,
                };
                Shape::Map { declared, others: Box::new(others) }
            }
            Some("array") if has("x-kubernetes-list-type", "set") => Shape::Set,
            Some("array") if has("x-kubernetes-list-type", "map") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                let keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
                Shape::Keyed { keys, entry: Box::new(Shape::of(&schema["items"])) }
            }
            _ => Shape::Whole,
        }
    }
}

fn map_of_text() -> Shape {
    Shape::Map { declared: BTreeMap::new(), others: Box::new(Shape::Whole) }
}

fn metadata() -> Shape {
    let members = [("labels", map_of_text()), ("annotations", map_of_text()), ("finalizers", Shape::Set)];
    let declared = members.into_iter().map(|(name, shape)| (name.to_owned(), shape)).collect();
    Shape::Map { declared, others: Box::new(Shape::Whole) }
}
