//! Does to a value what nobody should: fields vanish, get another type, grow without measure.

use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use super::arbitrary;

#[derive(Debug, Clone)]
pub struct Damage {
    place: Index,
    blow: Blow,
}

#[derive(Debug, Clone)]
enum Blow {
    Remove,
    Replace(Value),
    /// A list of so many.
    Multiply(usize),
    /// A text of so many letters, none of them plain.
    Lengthen(usize),
}

pub fn damage() -> impl Strategy<Value = Damage> {
    let blow = prop_oneof![
        3 => Just(Blow::Remove),
        6 => arbitrary::value().prop_map(Blow::Replace),
        1 => (100..3000usize).prop_map(Blow::Multiply),
        1 => (100..20_000usize).prop_map(Blow::Lengthen),
    ];
    (any::<Index>(), blow).prop_map(|(place, blow)| Damage { place, blow })
}

impl Damage {
    /// Hits some place at or below one of these fields. Other fields, such as those that say which object it is, stay.
    pub fn inflict(&self, object: &mut Value, below: &[&str]) {
        let mut places = Vec::new();
        for root in below {
            if let Some(value) = object.pointer(root) {
                collect(value, (*root).to_owned(), &mut places);
            }
        }
        let Some(place) = (!places.is_empty()).then(|| &places[self.place.index(places.len())]) else { return };
        let value = object.pointer(place).cloned().unwrap_or_default();
        let new = match &self.blow {
            Blow::Remove => return remove(object, place),
            Blow::Replace(value) => value.clone(),
            Blow::Multiply(times) => vec![value; *times].into(),
            Blow::Lengthen(times) => json!("ä\u{202e}🦀\u{0}\n ".chars().cycle().take(*times).collect::<String>()),
        };
        // Below a place that is huge already there is no end.
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
