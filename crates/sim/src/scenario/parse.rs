//! Parses scenarios in our format and in the reference's, from YAML or JSON. Errors name the line and the field.

use std::{fmt, io::Read};

use flate2::read::MultiGzDecoder;
use serde::{Deserialize, de};
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{Scenario, reference, tables};
use crate::{model::ClusterModel, settings::RunSettings};

/// The longest text of a scenario, in bytes. Those of imported clusters are in JSON.
const LONGEST: usize = 64 << 20;
const LONGEST_JSON: usize = 512 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What is wrong with a scenario, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// Line and column, if they are known.
    pub place: Option<(usize, usize)>,
    /// The field, such as `nodes[2].cores`; empty for the whole scenario.
    pub field: String,
    /// What was found and what was expected.
    pub message: String,
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(formatter, "line {line}, column {column}: ")?;
        }
        if !self.field.is_empty() {
            write!(formatter, "{}: ", self.field)?;
        }
        formatter.write_str(&self.message)
    }
}

impl ScenarioError {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: None, field: field.into(), message: message.into() }
    }
}

/// The scenarios of a file: one in our format, all of a file of the reference, or one of a table. A model can be built
/// from each.
pub fn parse(text: &str) -> Result<Vec<Scenario>, ScenarioError> {
    let longest = if text.starts_with('{') { LONGEST_JSON } else { LONGEST };
    if text.len() > longest {
        return Err(too_long(longest));
    }
    let json = serde_json::from_str::<de::IgnoredAny>(text).is_ok();
    let scenarios = if let Some(table) = tables::read(text, json) {
        table.map(|scenario| vec![scenario])
    } else if reference::is(text, json) {
        reference::scenarios(&read(text, json)?)
    } else {
        read::<Scenario>(text, json).map(|scenario| vec![scenario])
    };
    let scenarios = scenarios.map_err(|error| located(error, text))?;
    for scenario in &scenarios {
        let checked = ClusterModel::new(scenario).and_then(|_| RunSettings::new(scenario));
        checked.map_err(|error| located(error, text))?;
    }
    Ok(scenarios)
}

fn too_long(longest: usize) -> ScenarioError {
    ScenarioError::new("", format!("the text is longer than {} MiB", longest >> 20))
}

/// The text of a file, which may be compressed by gzip.
pub fn text_of(file: Vec<u8>) -> Result<String, ScenarioError> {
    let invalid = |problem: String| ScenarioError::new("", problem);
    if !file.starts_with(&GZIP) {
        return String::from_utf8(file)
            .map_err(|_| invalid("it is neither a text in UTF-8 nor compressed by gzip".into()));
    }
    let mut text = String::new();
    let limited = MultiGzDecoder::new(&file[..]).take(LONGEST_JSON as u64 + 1).read_to_string(&mut text);
    limited.map_err(|problem| invalid(format!("it cannot be decompressed: {problem}")))?;
    if text.len() > LONGEST_JSON { Err(too_long(LONGEST_JSON)) } else { Ok(text) }
}

pub(super) fn read<'de, T: Deserialize<'de>>(text: &'de str, json: bool) -> Result<T, ScenarioError> {
    if json {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        return serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let field = path(error.path().iter());
            let error = error.into_inner();
            let place = (error.line() > 0).then(|| (error.line(), error.column()));
            let message = error.to_string();
            let end = message.rfind(" at line ").unwrap_or(message.len());
            ScenarioError { place, field, message: message[..end].to_owned() }
        });
    }
    let mut failed = None;
    let result = serde_saphyr::with_deserializer_from_str(text, |deserializer| {
        serde_path_to_error::deserialize(deserializer).map_err(|error| {
            failed = Some(path(error.path().iter()));
            error.into_inner()
        })
    });
    result.map_err(|error: serde_saphyr::Error| {
        let place = error.location().map(|location| (location.line() as usize, location.column() as usize));
        let message = plain(&error);
        ScenarioError { place, field: failed.unwrap_or_default(), message }
    })
}

/// The first line of the message, without the source snippet and the place.
fn plain(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let end = line.rfind(" at line ").unwrap_or(line.len());
    line[..end].to_owned()
}

fn path<'a>(segments: impl Iterator<Item = &'a Segment>) -> String {
    let mut text = String::new();
    for segment in segments {
        match segment {
            Segment::Seq { index } => text += &format!("[{index}]"),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !text.is_empty() {
                    text.push('.');
                }
                text += key;
            }
            Segment::Unknown => {}
        }
    }
    text
}

/// Adds the place of the field to errors that are found after parsing.
fn located(mut error: ScenarioError, text: &str) -> ScenarioError {
    if error.place.is_none() && !error.field.is_empty() {
        let mut field = error.field.as_str();
        // A missing field has no place; its parent has one.
        while error.place.is_none() && !field.is_empty() {
            error.place = position(text, field);
            field = &field[..field.rfind(['.', '[']).unwrap_or(0)];
        }
    }
    error
}

/// Line and column of a field in YAML or JSON text.
fn position(text: &str, field: &str) -> Option<(usize, usize)> {
    let mut tree: serde_saphyr::Spanned<Tree> = serde_saphyr::from_str(text).ok()?;
    for part in field.replace('[', ".").replace(']', "").split('.').filter(|part| !part.is_empty()) {
        tree = match tree.value {
            Tree::Map(entries) => entries.into_iter().find(|(key, _)| key == part)?.1,
            Tree::List(entries) => entries.into_iter().nth(part.parse().ok()?)?,
            Tree::Leaf => return None,
        };
    }
    Some((tree.referenced.line() as usize, tree.referenced.column() as usize))
}

/// A document with the places of its fields.
enum Tree {
    Map(Vec<(String, serde_saphyr::Spanned<Tree>)>),
    List(Vec<serde_saphyr::Spanned<Tree>>),
    Leaf,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Tree;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("anything")
            }
            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Tree::Map(entries))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    entries.push(entry);
                }
                Ok(Tree::List(entries))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree::Leaf)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The text as plain values, to distinguish the two formats.
pub(super) fn values(text: &str, json: bool) -> Option<Value> {
    if json { serde_json::from_str(text).ok() } else { serde_saphyr::from_str(text).ok() }
}
