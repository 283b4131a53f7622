//! The definitions of each release, kept in `config/released`, so that the next one can be compared with them.

use std::{collections::BTreeMap, fs};

use anyhow::Context;
use serde_json::Value;

use super::definitions::breaking_changes;
use crate::{generate, packages::VERSION, root};

const FOLDER: &str = "config/released";

/// The generated definitions of the advisor's kinds: name of the file, and content.
fn definitions() -> Vec<(String, String)> {
    let files = api::crd::files().into_iter();
    let ours = files.filter_map(|(path, text)| Some((path.strip_prefix("config/crd/advisor.")?.to_owned(), text)));
    ours.map(|(name, text)| (format!("advisor.{name}"), text)).collect()
}

/// Keeps the definitions as those of this version.
pub(crate) fn write() -> anyhow::Result<()> {
    definitions().iter().try_for_each(|(name, text)| generate::write(&format!("{FOLDER}/{VERSION}/{name}"), text))
}

/// What breaks users of the newest release, one line each.
pub(crate) fn problems() -> anyhow::Result<Vec<String>> {
    let Some(released) = newest()? else { return Ok(Vec::new()) };
    let mut problems = Vec::new();
    let now: BTreeMap<String, String> = definitions().into_iter().collect();
    for entry in fs::read_dir(root().join(FOLDER).join(&released))? {
        let name = entry?.file_name().display().to_string();
        let path = format!("{FOLDER}/{released}/{name}");
        let Some(text) = now.get(&name) else {
            problems.push(format!("{name}, since {released}: the definition was removed"));
            continue;
        };
        let before = fs::read_to_string(root().join(&path))?;
        let parse = |text: &str| serde_saphyr::from_str::<Value>(text).with_context(|| format!("reading {path}"));
        let found = breaking_changes(&parse(&before)?, &parse(text)?);
        problems.extend(found.into_iter().map(|problem| format!("{name}, since {released}: {problem}")));
    }
    Ok(problems)
}

/// The newest version that is kept.
fn newest() -> anyhow::Result<Option<String>> {
    let Ok(folder) = fs::read_dir(root().join(FOLDER)) else { return Ok(None) };
    let names: Vec<String> =
        folder.map(|entry| Ok(entry?.file_name().display().to_string())).collect::<anyhow::Result<_>>()?;
    Ok(names.into_iter().max_by_key(|name| numbers(name)))
}

fn numbers(version: &str) -> Vec<u32> {
    version.trim_start_matches('v').split(['.', '-']).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_only_grow_from_release_to_release() {
        let kept = newest().unwrap().expect("a release is kept in config/released");
        let problems = problems().unwrap();
        assert!(
            problems.is_empty(),
            "{}\nA stored object or an old client would break. If {kept} is not published yet, write its definitions anew: \
             `cargo xtask baseline`",
            problems.join("\n")
        );
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let mut versions = ["v0.10.0", "v0.2.0", "v1.0.0", "v0.9.9"];
        versions.sort_by_key(|version| numbers(version));
        assert_eq!(versions, ["v0.2.0", "v0.9.9", "v0.10.0", "v1.0.0"]);
    }
}
