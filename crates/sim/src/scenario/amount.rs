//! Numbers in a scenario: constant, random, or changing over time.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, value::MapAccessDeserializer},
};

use super::Samples;
use crate::{
    rng::Rng,
    units::{ClockTime, Span},
};

/// A load over time as a share of the VM's size: a number, or one of the shapes.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    Constant(f64),
    /// Constant, drawn for each VM.
    Between([f64; 2]),
    Ramp(Ramp),
    Daily(Daily),
    /// Straight lines between these points of time and load.
    Points(Vec<(Span, f64)>),
    Periodic(Periodic),
    /// As it was measured.
    Samples(Samples),
}

/// From one load to another, in a straight line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ramp {
    pub from: f64,
    pub to: f64,
    #[serde(default)]
    pub start: Span,
    pub end: Span,
}

/// A curve that is lowest twelve hours from its peak, every day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Daily {
    pub low: f64,
    pub high: f64,
    /// The time of day with the highest load.
    pub peak: ClockTime,
    /// How much of the difference between low and high is left on Saturdays and Sundays.
    #[serde(default = "whole")]
    pub weekend: f64,
}

/// The same points again and again, joined by straight lines: the last one of a period to the first one of the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Periodic {
    /// The length of a period.
    pub every: Span,
    /// Points of time in the period and load.
    pub points: Vec<(Span, f64)>,
}

fn whole() -> f64 {
    1.0
}

/// A number, or how to draw one.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    Fixed(f64),
    Between([f64; 2]),
    Normal(Normal),
    Exponential(Exponential),
}

/// A normal distribution, cut off at both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Normal {
    pub mean: f64,
    pub deviation: f64,
    pub min: f64,
    pub max: f64,
}

/// An exponential distribution, cut off at both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Exponential {
    pub mean: f64,
    #[serde(default)]
    pub min: f64,
    pub max: f64,
}

impl Load {
    /// The highest value that it has at any time.
    pub(crate) fn highest(&self) -> f64 {
        let most = |values: &mut dyn Iterator<Item = f64>| {
            // Of values that are no numbers the first one, so that a check finds it.
            values.fold(f64::NEG_INFINITY, |most, value| if value <= most || most.is_nan() { most } else { value })
        };
        match self {
            Self::Constant(value) => *value,
            Self::Between([low, high]) => most(&mut [*low, *high].into_iter()),
            Self::Ramp(ramp) => most(&mut [ramp.from, ramp.to].into_iter()),
            Self::Daily(daily) => most(&mut [daily.low, daily.high].into_iter()),
            Self::Points(points) | Self::Periodic(Periodic { points, .. }) => {
                most(&mut points.iter().map(|(_, value)| *value))
            }
            Self::Samples(samples) => most(&mut samples.values.shares()),
        }
    }
}

impl Amount {
    pub(crate) fn draw(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Between([low, high]) => rng.between(*low, *high),
            Self::Normal(Normal { mean, deviation, min, max }) => clamp(rng.normal(*mean, *deviation), *min, *max),
            Self::Exponential(Exponential { mean, min, max }) => clamp(rng.exponential(*mean), *min, *max),
        }
    }
}

/// Like `f64::clamp`, but without a panic when `low` is above `high`.
pub(crate) fn clamp(value: f64, low: f64, high: f64) -> f64 {
    if value < low {
        low
    } else if value > high {
        high
    } else {
        value
    }
}

/// The forms other than a plain number, as serde reads and schemars describes them.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum LoadForm {
    /// A constant for each VM, drawn between the two.
    Between([f64; 2]),
    Ramp(Ramp),
    Daily(Daily),
    /// Points of time and load, joined by straight lines.
    Points(Vec<(Span, f64)>),
    Periodic(Periodic),
    Samples(Samples),
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum AmountForm {
    /// Drawn between the two.
    Between([f64; 2]),
    Normal(Normal),
    Exponential(Exponential),
}

impl From<LoadForm> for Load {
    fn from(form: LoadForm) -> Self {
        match form {
            LoadForm::Between(ends) => Self::Between(ends),
            LoadForm::Ramp(ramp) => Self::Ramp(ramp),
            LoadForm::Daily(daily) => Self::Daily(daily),
            LoadForm::Points(points) => Self::Points(points),
            LoadForm::Periodic(periodic) => Self::Periodic(periodic),
            LoadForm::Samples(samples) => Self::Samples(samples),
        }
    }
}

impl From<AmountForm> for Amount {
    fn from(form: AmountForm) -> Self {
        match form {
            AmountForm::Between(ends) => Self::Between(ends),
            AmountForm::Normal(normal) => Self::Normal(normal),
            AmountForm::Exponential(exponential) => Self::Exponential(exponential),
        }
    }
}

macro_rules! number_or {
    ($name:ident, $form:ident, $number:ident, $expected:literal) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> de::Visitor<'de> for Visitor {
                    type Value = $name;
                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str($expected)
                    }
                    fn visit_f64<E: de::Error>(self, value: f64) -> Result<$name, E> {
                        Ok($name::$number(value))
                    }
                    fn visit_u64<E: de::Error>(self, value: u64) -> Result<$name, E> {
                        Ok($name::$number(value as f64))
                    }
                    fn visit_i64<E: de::Error>(self, value: i64) -> Result<$name, E> {
                        Ok($name::$number(value as f64))
                    }
                    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        $form::deserialize(MapAccessDeserializer::new(map)).map(Into::into)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $expected,
                    "anyOf": [{"type": "number"}, $form::json_schema(generator)],
                })
            }
        }
    };
}

number_or!(Load, LoadForm, Constant, "a number, or one of between, ramp, daily, points, periodic and samples");
number_or!(Amount, AmountForm, Fixed, "a number, or one of between, normal and exponential");

impl Serialize for Load {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.clone() {
            Self::Constant(value) => return serializer.serialize_f64(value),
            Self::Between(ends) => LoadForm::Between(ends),
            Self::Ramp(ramp) => LoadForm::Ramp(ramp),
            Self::Daily(daily) => LoadForm::Daily(daily),
            Self::Points(points) => LoadForm::Points(points),
            Self::Periodic(periodic) => LoadForm::Periodic(periodic),
            Self::Samples(samples) => LoadForm::Samples(samples),
        }
        .serialize(serializer)
    }
}

impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.clone() {
            Self::Fixed(value) => return serializer.serialize_f64(value),
            Self::Between(ends) => AmountForm::Between(ends),
            Self::Normal(normal) => AmountForm::Normal(normal),
            Self::Exponential(exponential) => AmountForm::Exponential(exponential),
        }
        .serialize(serializer)
    }
}
