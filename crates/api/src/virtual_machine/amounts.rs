//! CPU, memory and ratios as the user wrote them, and what they mean as numbers.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    quantity::{NANOS_PER_UNIT, QUANTITY_PATTERN, parse_nanos, thousandths, units},
    value::{CPU_RULE, IntOrText, InvalidValue, MEMORY_RULE, RATIO_PATTERN, RATIO_RULE, parse_ratio},
};

/// Defines a scalar that may be written as an integer or as a text. It keeps what was written, so that
/// reading it can fail for one object without making the list it arrived in unreadable.
macro_rules! scalar {
    ($(#[$meta:meta])* $name:ident, $schema:ident($message:ident)) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(IntOrText);

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(IntOrText::Text(text.to_owned()))
            }
        }

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self(IntOrText::Int(number))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.text())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema($message)
            }
        }
    };
}

scalar! {
    /// An amount of CPU, such as `2`, `500m` or `1.5`.
    Cpu, positive_quantity(CPU_RULE)
}

scalar! {
    /// An amount of memory, such as `4Gi`, `512Mi` or plain bytes.
    Memory, positive_quantity(MEMORY_RULE)
}

scalar! {
    /// A share from 0 to 1, such as `0.5`.
    Ratio, ratio(RATIO_RULE)
}

impl Cpu {
    /// The amount in cores.
    pub fn cores(&self) -> Result<f64, InvalidValue> {
        Ok(self.positive(parse_nanos)? as f64 / NANOS_PER_UNIT as f64)
    }

    /// The amount in thousandths of a core, rounded up as Kubernetes does for requests.
    pub fn millicores(&self) -> Result<u64, InvalidValue> {
        self.positive(thousandths)
    }

    fn positive<N: From<u8> + PartialOrd>(&self, parse: fn(&str) -> Option<N>) -> Result<N, InvalidValue> {
        let text = self.0.text();
        parse(&text).filter(|amount| *amount > N::from(0_u8)).ok_or_else(|| InvalidValue::Cpu(text.into_owned()))
    }
}

impl Memory {
    /// The amount in bytes, rounded up as Kubernetes does for requests.
    pub fn bytes(&self) -> Result<u64, InvalidValue> {
        let text = self.0.text();
        units(&text).filter(|bytes| *bytes > 0).ok_or_else(|| InvalidValue::Memory(text.into_owned()))
    }
}

impl Ratio {
    /// The ratio as a number from 0 to 1.
    pub fn value(&self) -> Result<f64, InvalidValue> {
        let text = self.0.text();
        parse_ratio(&text).ok_or_else(|| InvalidValue::Ratio(text.into_owned()))
    }
}

/// The schema of a scalar that may be written as an integer or as a text. In CEL its type is only known
/// at run time, hence the conversion to a text in every rule.
fn int_or_string(rule: String, message: &str) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 32,
        "x-kubernetes-validations": [{ "rule": rule, "message": message }],
    })
}

fn positive_quantity(message: &str) -> Schema {
    let rule = format!(
        "string(self).matches(r'{QUANTITY_PATTERN}') && isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))"
    );
    int_or_string(rule, message)
}

fn ratio(message: &str) -> Schema {
    int_or_string(format!("string(self).matches(r'{RATIO_PATTERN}') && double(string(self)) <= 1.0"), message)
}
