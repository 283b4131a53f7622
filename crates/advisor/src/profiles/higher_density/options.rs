//! The options of the profile, checked and complete.

use api::virt_platform_config::{KsmConfiguration, NodeLabelSelector, SelectorOperator, VirtHigherDensityOptions};

use crate::InvalidOptions;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub swap: bool,
    /// The nodes on which pages are merged; an empty selector means all nodes. None turns it off.
    pub ksm: Option<NodeLabelSelector>,
    pub ratio: i32,
    /// Whether the user fixed the ratio; otherwise it depends on swap.
    pub ratio_is_fixed: bool,
    /// Whether the user configured page merging; otherwise the profile's default counts.
    pub ksm_is_fixed: bool,
}

impl Options {
    /// Without any options, pages are merged on all nodes. With options that do not mention page merging, they are not.
    pub(super) fn resolve(options: Option<&VirtHigherDensityOptions>) -> Result<Self, InvalidOptions> {
        let ksm_is_fixed = options.is_some_and(|options| options.ksm_configuration.is_some());
        let ksm = match options {
            None => Some(NodeLabelSelector::default()),
            Some(options) => options.ksm_configuration.as_ref().and_then(selector),
        };
        if let Some(selector) = &ksm {
            check(selector)?;
        }
        let options = options.cloned().unwrap_or_default();
        let ratio = options.effective_memory_to_request_ratio();
        let field = "virtHigherDensity.memoryToRequestRatio";
        InvalidOptions::unless_within(field, ratio, 100..=300)?;
        if ratio > 120 && !options.enable_swap {
            let rule = "memoryToRequestRatio > 120 requires enableSwap=true".to_owned();
            return Err(InvalidOptions { field, value: ratio.to_string(), rule });
        }
        let ratio_is_fixed = options.memory_to_request_ratio.is_some();
        Ok(Options { swap: options.enable_swap, ksm, ratio, ratio_is_fixed, ksm_is_fixed })
    }
}

/// Refuses selectors that can never match: they would turn page merging off without any message.
fn check(selector: &NodeLabelSelector) -> Result<(), InvalidOptions> {
    let invalid = |value: &str, rule: &str| {
        let field = "virtHigherDensity.ksmConfiguration.nodeLabelSelector";
        Err(InvalidOptions { field, value: format!("{value:?}"), rule: rule.to_owned() })
    };
    let (labels, expressions) = (&selector.match_labels, &selector.match_expressions);
    let keys = labels.keys().chain(expressions.iter().map(|expression| &expression.key));
    let values = labels.values().chain(expressions.iter().flat_map(|expression| &expression.values));
    if let Some(key) = keys.into_iter().find(|key| !is_label_key(key)) {
        return invalid(key, "must be a label key such as ksm-enabled or kubernetes.io/arch");
    }
    if let Some(value) = values.into_iter().find(|value| !value.is_empty() && !is_label_word(value)) {
        return invalid(value, "must be a label value such as worker or zone-1");
    }
    for expression in expressions {
        let needs_values = matches!(expression.operator, SelectorOperator::In | SelectorOperator::NotIn);
        if needs_values == expression.values.is_empty() {
            return invalid(&expression.key, "In and NotIn need values, Exists and DoesNotExist take none");
        }
    }
    Ok(())
}

/// A label key: an optional DNS name and a slash, then a name.
fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_dns =
        |prefix: &str| prefix.len() <= 253 && prefix.split('.').all(|part| is_label_word(part) && !part.contains('_'));
    is_label_word(name) && prefix.is_none_or(is_dns)
}

/// Letters, digits, `-`, `_` and `.`; the first and the last are a letter or digit.
fn is_label_word(word: &str) -> bool {
    let ends = |end: Option<char>| end.is_some_and(|c| c.is_ascii_alphanumeric());
    word.len() <= 63
        && ends(word.chars().next())
        && ends(word.chars().next_back())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn selector(ksm: &KsmConfiguration) -> Option<NodeLabelSelector> {
    ksm.enabled.then(|| ksm.node_label_selector.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn selectors_that_could_never_match_are_refused() {
        let check =
            |selector: Value| check(&serde_json::from_value(selector).unwrap()).map_err(|error| error.to_string());
        for selector in [
            json!({}),
            json!({"matchLabels": {"ksm-enabled": "true", "kubernetes.io/arch": "", "a_b.c": "1"}}),
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}, {"key": "c", "operator": "Exists"}]}),
        ] {
            assert_eq!(check(selector.clone()), Ok(()), "{selector}");
        }
        for (selector, part) in [
            (json!({"matchLabels": {"bad key!": "x"}}), "is \"bad key!\": must be a label key such as"),
            (json!({"matchLabels": {"": "x"}}), "must be a label key"),
            (json!({"matchLabels": {"a/b/c": "x"}}), "must be a label key"),
            (json!({"matchLabels": {"a": "x y"}}), "is \"x y\": must be a label value such as"),
            (json!({"matchLabels": {"a": "-x"}}), "must be a label value"),
            (json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), "is \"a\": In and NotIn need values"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
                "Exists and DoesNotExist take none",
            ),
        ] {
            let error = check(selector.clone()).expect_err(&selector.to_string());
            assert!(error.contains(part), "{selector}: {error}");
        }
    }
}
