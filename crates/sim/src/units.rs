//! Quantities as users write them in scenarios: `128Gi`, `1h30m`, `800Mbps`, `14:00`.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A text that is not the expected quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not {expected}")]
pub struct BadQuantity {
    found: String,
    expected: &'static str,
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $pattern:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
        pub struct $name(pub u64);

        impl $name {
            const EXPECTED: &'static str = $expected;

            fn bad(found: &str) -> BadQuantity {
                BadQuantity { found: found.to_owned(), expected: Self::EXPECTED }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str($expected)
                    }
                    fn visit_u64<E: de::Error>(self, value: u64) -> Result<$name, E> {
                        Ok($name(value))
                    }
                    fn visit_i64<E: de::Error>(self, value: i64) -> Result<$name, E> {
                        u64::try_from(value).map($name).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
                    }
                    fn visit_str<E: de::Error>(self, value: &str) -> Result<$name, E> {
                        value.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": $expected,
                    "anyOf": [{"type": "string", "pattern": $pattern}, {"type": "integer", "minimum": 0}],
                })
            }
        }
    };
}

quantity!(
    /// An amount of memory in bytes.
    Bytes,
    "an amount of memory such as 8Gi, 512Mi or a number of bytes",
    "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti)?$"
);
quantity!(
    /// A length of time in whole seconds.
    Span,
    "a length of time such as 90s, 5m, 1h30m, 7d or a number of seconds",
    "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
);
quantity!(
    /// A data rate in bits per second.
    Rate,
    "a data rate such as 800Mbps, 10Gbps or a number of bits per second",
    "^[0-9]+(\\.[0-9]+)?(bps|kbps|Mbps|Gbps)$"
);
quantity!(
    /// A time of day in minutes after midnight.
    ClockTime,
    "a time of day such as 14:00",
    "^([01][0-9]|2[0-3]):[0-5][0-9]$"
);

impl Rate {
    pub fn bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }
}

/// A number with a unit as a whole number of base units.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let split = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let value = digits.parse::<f64>().ok()? * factor;
    (value.is_finite() && value < 9e15).then_some(value as u64)
}

const MEMORY: [(&str, f64); 5] =
    [("", 1.0), ("Ki", 1024.0), ("Mi", 1_048_576.0), ("Gi", 1_073_741_824.0), ("Ti", 1_099_511_627_776.0)];

impl FromStr for Bytes {
    type Err = BadQuantity;
    fn from_str(text: &str) -> Result<Self, BadQuantity> {
        scaled(text, &MEMORY).map(Self).ok_or_else(|| Self::bad(text))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = MEMORY.iter().rev().find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor as u64));
        let (unit, factor) = exact.unwrap_or(&MEMORY[0]);
        write!(formatter, "{}{unit}", self.0 / *factor as u64)
    }
}

const RATES: [(&str, f64); 4] = [("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];

impl FromStr for Rate {
    type Err = BadQuantity;
    fn from_str(text: &str) -> Result<Self, BadQuantity> {
        scaled(text, &RATES).map(Self).ok_or_else(|| Self::bad(text))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = RATES.iter().rev().find(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor as u64));
        let (unit, factor) = exact.unwrap_or(&RATES[0]);
        write!(formatter, "{}{unit}", self.0 / *factor as u64)
    }
}

const TIMES: [(char, u64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

impl FromStr for Span {
    type Err = BadQuantity;
    /// Units from large to small, each at most once: `1h30m`, not `30m1h`.
    fn from_str(text: &str) -> Result<Self, BadQuantity> {
        let parse = || {
            let mut rest = text;
            let mut units = TIMES.iter();
            let mut total = 0_u64;
            while !rest.is_empty() {
                let end = rest.find(|character: char| !character.is_ascii_digit())?;
                let unit = rest[end..].chars().next()?;
                let (_, seconds) = units.by_ref().find(|(name, _)| *name == unit)?;
                total = total.checked_add(rest[..end].parse::<u64>().ok()?.checked_mul(*seconds)?)?;
                rest = &rest[end + unit.len_utf8()..];
            }
            (!text.is_empty() && total < 1 << 40).then_some(Self(total))
        };
        parse().ok_or_else(|| Self::bad(text))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return formatter.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, seconds) in TIMES {
            if rest >= seconds {
                write!(formatter, "{}{unit}", rest / seconds)?;
                rest %= seconds;
            }
        }
        Ok(())
    }
}

impl FromStr for ClockTime {
    type Err = BadQuantity;
    fn from_str(text: &str) -> Result<Self, BadQuantity> {
        let parse = || {
            let (hours, minutes) = text.split_once(':')?;
            if hours.len() != 2
                || minutes.len() != 2
                || !(hours.to_owned() + minutes).bytes().all(|b| b.is_ascii_digit())
            {
                return None;
            }
            let (hours, minutes): (u64, u64) = (hours.parse().ok()?, minutes.parse().ok()?);
            (hours < 24 && minutes < 60).then_some(Self(hours * 60 + minutes))
        };
        parse().ok_or_else(|| Self::bad(text))
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02}:{:02}", self.0 / 60 % 24, self.0 % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds L43 (misread duration).
    #[test]
    fn quantities_are_read_and_written_alike() {
        for text in ["128Gi", "1Ti", "1536Mi", "7"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        for text in ["1h30m", "7d", "90s", "1m30s"] {
            let span = text.parse::<Span>().unwrap();
            assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
        assert_eq!("1h30m".parse::<Span>().unwrap(), Span(5400));
        assert_eq!("800Mbps".parse::<Rate>().unwrap().bytes_per_second(), 1e8);
        assert_eq!("14:05".parse::<ClockTime>().unwrap(), ClockTime(845));
        assert_eq!(ClockTime(845).to_string(), "14:05");
        assert_eq!("1.5Gi".parse::<Bytes>().unwrap(), Bytes(1536 << 20));
    }

    #[test]
    fn an_invalid_quantity_is_an_error_that_says_what_was_expected() {
        for text in ["", "8G", "-1", "1e3", "Gi", "1.2.3Gi", "99999999Ti"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["", "30m1h", "5", "1w", "1hh", "h", "99999999999999999999s", "5µ"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        for text in ["24:00", "7:00", "07:60", "0700", "+1:00"] {
            assert!(text.parse::<ClockTime>().is_err(), "{text}");
        }
        let error = "8G".parse::<Bytes>().unwrap_err();
        assert_eq!(error.to_string(), "`8G` is not an amount of memory such as 8Gi, 512Mi or a number of bytes");
    }
}
