//! Loads as they were measured: one sample for each length of time, packed into a text.

use std::{borrow::Cow, fmt, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::Span;

/// A sample is a whole number of these.
const PER_SHARE: f64 = 1000.0;
/// The highest sample: more than 32 times the whole VM is no load.
const HIGHEST: u16 = 32_000;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// A character has five bits of a number; this one says that more follow.
const MORE: u32 = 32;

/// A measured load. Between two samples it is on a straight line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Samples {
    /// The time between two samples. The first one is at the beginning.
    pub every: Span,
    /// Whether the samples begin again after the last one, which otherwise stays.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
    pub values: Packed,
}

impl Samples {
    /// The share at a time in seconds since the beginning.
    pub(crate) fn at(&self, time: u64) -> f64 {
        let values = &self.values.0;
        let (number, rest) = (time / self.every.0, time % self.every.0);
        let sample = |number: u64| {
            let count = values.len() as u64;
            let position = if self.repeat { number % count } else { number.min(count - 1) };
            f64::from(values[position as usize]) / PER_SHARE
        };
        let from = sample(number);
        if rest == 0 {
            return from;
        }
        from + (sample(number + 1) - from) * (rest as f64 / self.every.0 as f64)
    }
}

/// Samples in thousandths of a share. As a text: the difference of each to the one before, its sign in the lowest bit,
/// five bits per character, the lowest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed(pub(crate) Arc<[u16]>);

impl Packed {
    /// From shares, each rounded to a thousandth and limited to what a load can be.
    pub fn of(shares: impl IntoIterator<Item = f64>) -> Self {
        let sample = |share: f64| (share * PER_SHARE).round().clamp(0.0, f64::from(HIGHEST)) as u16;
        Self(shares.into_iter().map(sample).collect())
    }

    pub fn shares(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.0.iter().map(|value| f64::from(*value) / PER_SHARE)
    }

    /// The sample that all of them are, if they are all the same.
    pub fn constant(&self) -> Option<f64> {
        let first = *self.0.first()?;
        self.0.iter().all(|value| *value == first).then_some(f64::from(first) / PER_SHARE)
    }
}

impl fmt::Display for Packed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(self.0.len() * 2);
        let mut before = 0;
        for value in self.0.iter() {
            let difference = i32::from(*value) - before;
            before = i32::from(*value);
            let mut number = ((difference << 1) ^ (difference >> 31)).cast_unsigned();
            while number >= MORE {
                text.push(char::from(ALPHABET[(number % MORE + MORE) as usize]));
                number /= MORE;
            }
            text.push(char::from(ALPHABET[number as usize]));
        }
        formatter.write_str(&text)
    }
}

impl std::str::FromStr for Packed {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let mut values = Vec::with_capacity(text.len());
        let (mut number, mut bits, mut before) = (0_u32, 0, 0_i32);
        for (at, byte) in text.bytes().enumerate() {
            let wrong = |what: &str| format!("character {} of the samples {what}", at + 1);
            let digit = digit(byte).ok_or_else(|| wrong("is none of A-Z, a-z, 0-9, - and _"))?;
            if bits > 15 {
                return Err(wrong("belongs to a number that is too large"));
            }
            number |= (digit % MORE) << bits;
            bits += 5;
            if digit >= MORE {
                continue;
            }
            before += (number >> 1).cast_signed() ^ -(number & 1).cast_signed();
            let value = u16::try_from(before).ok().filter(|value| *value <= HIGHEST);
            values.push(value.ok_or_else(|| wrong("leads to a sample that is not from 0 to 32"))?);
            (number, bits) = (0, 0);
        }
        if bits > 0 {
            return Err("the samples end in the middle of a number".to_owned());
        }
        Ok(Self(values.into()))
    }
}

fn digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    }))
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Packed;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("samples as `rebalance-lab import` packs them")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Packed, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for Packed {
    fn schema_name() -> Cow<'static, str> {
        "Packed".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Samples in thousandths, as `rebalance-lab import` packs them: the difference of each to the one before, \
                            its sign in the lowest bit, five bits per character.",
            "type": "string",
            "pattern": "^[A-Za-z0-9_-]+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn samples_are_read_where_they_were_measured_and_joined_between() {
        let samples = |repeat| Samples { every: Span(300), repeat, values: Packed::of([0.1, 0.3, 0.2]) };
        for (time, held, repeated) in
            [(0, 0.1, 0.1), (150, 0.2, 0.2), (300, 0.3, 0.3), (750, 0.2, 0.15), (900, 0.2, 0.1)]
        {
            assert!((samples(false).at(time) - held).abs() < 1e-12, "{time}");
            assert!((samples(true).at(time) - repeated).abs() < 1e-12, "{time}");
        }
    }

    #[test]
    fn what_a_load_cannot_be_is_limited_and_told_when_it_is_read() {
        let shares: Vec<f64> = Packed::of([-1.0, 0.0004, 0.0006, 99.0, f64::NAN]).shares().collect();
        assert_eq!(shares, [0.0, 0.0, 0.001, 32.0, 0.0]);
        for (text, problem) in [
            ("A!", "character 2 of the samples is none of A-Z, a-z, 0-9, - and _"),
            ("B", "character 1 of the samples leads to a sample that is not from 0 to 32"),
            ("A_", "the samples end in the middle of a number"),
            ("_____A", "character 5 of the samples belongs to a number that is too large"),
            ("___AA", "character 4 of the samples leads to a sample that is not from 0 to 32"),
        ] {
            assert_eq!(text.parse::<Packed>(), Err(problem.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn samples_survive_packing(values in prop::collection::vec(0..=HIGHEST, 0..200)) {
            let packed = Packed(values.into());
            prop_assert_eq!(packed.to_string().parse::<Packed>(), Ok(packed));
        }

        #[test]
        fn any_text_is_samples_or_an_error(text in "[A-Za-z0-9_-]{0,40}") {
            if let Ok(packed) = text.parse::<Packed>() {
                prop_assert!(packed.0.iter().all(|value| *value <= HIGHEST));
            }
        }
    }
}
