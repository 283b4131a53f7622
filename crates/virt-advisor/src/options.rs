//! Reads the options of a profile from a file, as they stand under `spec.options`, and tells of typing errors.

use std::{io::Read, path::Path};

use anyhow::{Context, bail};
use api::virt_platform_config::Options;
use serde_json::Value;

pub(crate) fn read(path: &Path) -> anyhow::Result<Options> {
    let text = match path.to_str() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("reading options from standard input")?;
            text
        }
        _ => std::fs::read_to_string(path).with_context(|| format!("reading options from {}", path.display()))?,
    };
    parse(&text).with_context(|| format!("reading options from {}", path.display()))
}

/// Without the API server nobody else would notice a field that does not exist.
fn parse(text: &str) -> anyhow::Result<Options> {
    let given: Value = serde_saphyr::from_str(text)?;
    if given.is_null() {
        return Ok(Options::default());
    }
    if !given.is_object() {
        bail!("{HINT}");
    }
    let mut unknown = None;
    let options = serde_ignored::deserialize(given, |path| {
        unknown.get_or_insert(path.to_string().replace(".?", ""));
    })?;
    match unknown {
        Some(field) => bail!("there is no field {field}; {HINT}"),
        None => Ok(options),
    }
}

const HINT: &str = "give the options as they stand under spec.options, for example loadAware: {mode: Predictive}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_stand_in_the_object() {
        let options = parse("loadAware:\n  mode: Predictive\n  evictionLimitTotal: 7\n").unwrap();
        assert_eq!(options.load_aware.unwrap().eviction_limit_total, Some(7));
        assert_eq!(parse("").unwrap(), Options::default());
        assert_eq!(parse("{}").unwrap(), Options::default());
        let selector = "virtHigherDensity: {ksmConfiguration: {nodeLabelSelector: {matchLabels: {a: b}}}}";
        assert!(parse(selector).unwrap().virt_higher_density.is_some());
        let empty = "virtHigherDensity: {ksmConfiguration: {nodeLabelSelector: {}}}";
        assert!(parse(empty).unwrap().virt_higher_density.is_some());
    }

    #[test]
    fn a_typing_error_is_told_and_not_passed_over() {
        for (text, part) in [
            ("loadAware: {intervall: 60}", "there is no field loadAware.intervall"),
            ("loadaware: {mode: Automatic}", "there is no field loadaware"),
            ("loadAwar: {}", "there is no field loadAwar"),
            ("bogus: null", "there is no field bogus"),
            ("[]", "give the options as they stand under spec.options"),
            (
                "virtHigherDensity: {ksmConfiguration: {nodeLabelSelector: {matchExpressions: [{key: a, operator: Exists, valuess: []}]}}}",
                "there is no field virtHigherDensity.ksmConfiguration.nodeLabelSelector.matchExpressions.0.valuess",
            ),
            ("loadAware: {mode: Sometimes}", "unknown variant `Sometimes`, expected `Automatic` or `Predictive`"),
            ("loadAware: {evictionLimitTotal: many}", "invalid type"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
