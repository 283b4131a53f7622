//! Damages a value at random: removes fields, changes their types, makes them huge.

use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use super::arbitrary;

#[derive(Debug, Clone)]
pub struct Damage {
    place: Index,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Remove,
    Replace(Value),
    /// A list of this many copies.
    Multiply(usize),
    /// A text of this many special characters.
    Lengthen(usize),
}

pub fn damage() -> impl Strategy<Value = Damage> {
    let kind = prop_oneof![
        3 => Just(Kind::Remove),
        6 => arbitrary::value().prop_map(Kind::Replace),
        1 => (100..3000usize).prop_map(Kind::Multiply),
        1 => (100..20_000usize).prop_map(Kind::Lengthen),
    ];
    (any::<Index>(), kind).prop_map(|(place, kind)| Damage { place, kind })
}

impl Damage {
    /// Damages a random place at or below one of these fields. Other fields, such as the name, stay.
    pub fn inflict(&self, object: &mut Value, below: &[&str]) {
        let mut places = Vec::new();
        for root in below {
            if let Some(value) = object.pointer(root) {
                collect(value, (*root).to_owned(), &mut places);
            }
        }
        let Some(place) = (!places.is_empty()).then(|| &places[self.place.index(places.len())]) else { return };
        let value = object.pointer(place).cloned().unwrap_or_default();
        let new = match &self.kind {
            Kind::Remove => return remove(object, place),
            Kind::Replace(value) => value.clone(),
            Kind::Multiply(times) => vec![value; *times].into(),
            Kind::Lengthen(times) => json!("ä\u{202e}🦀\u{0}\n ".chars().cycle().take(*times).collect::<String>()),
        };
        // Values that are huge already do not grow further.
        if let Some(found) = object.pointer_mut(place)
            && new.to_string().len() < 400_000
        {
            *found = new;
        }
    }
}

fn collect(value: &Value, path: String, places: &mut Vec<String>) {
    let escape = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| collect(value, format!("{path}/{}", escape(name)), places));
        }
        Value::Array(list) => {
            list.iter().take(8).enumerate().for_each(|(at, value)| collect(value, format!("{path}/{at}"), places));
        }
        _ => {}
    }
    places.push(path);
}

fn remove(object: &mut Value, place: &str) {
    let Some((parent, last)) = place.rsplit_once('/') else { return };
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => drop(fields.remove(&last.replace("~1", "/").replace("~0", "~"))),
        Some(Value::Array(list)) => {
            if let Some(at) = last.parse::<usize>().ok().filter(|at| *at < list.len()) {
                list.remove(at);
            }
        }
        _ => {}
    }
}
