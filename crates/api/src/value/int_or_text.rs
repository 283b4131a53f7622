//! A scalar that users may write with or without quotes. It keeps which of the two they did, so that
//! writing an object back does not count as a change of its spec.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The Rust side of `x-kubernetes-int-or-string`. Unlike the type of that name in Kubernetes, the
/// integer has 64 bits: memory in plain bytes does not fit in 32.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be an integer or a text")]
pub(crate) enum IntOrText {
    Int(i64),
    Text(String),
}

impl IntOrText {
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Int(number) => number.to_string().into(),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scalar_is_written_back_as_it_was_read() {
        for value in [json!(2), json!(0), json!(-1), json!(8_589_934_592_i64), json!("2"), json!(""), json!("4Gi")] {
            let read: IntOrText = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        }
    }

    #[test]
    fn anything_but_an_integer_or_a_text_is_refused() {
        for value in [json!(0.5), json!(true), json!(null), json!({}), json!([1]), json!(u64::MAX)] {
            assert!(serde_json::from_value::<IntOrText>(value.clone()).is_err(), "{value}");
        }
    }
}
