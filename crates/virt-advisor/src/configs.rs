//! The configurations of the cluster, as the commands read them.

use api::VirtPlatformConfig;
use kube_io::Class;
use serde_json::Value;

use crate::{
    failure::{Failure, failed},
    gather::collect::CONFIG,
    program,
    reader::Reader,
    unreadable::{self, Unreadable},
};

/// The path of one configuration.
pub(crate) fn path(profile: &str) -> String {
    format!("{}/{profile}", list_path())
}

fn list_path() -> String {
    format!("/apis/{}/{}/{}", CONFIG.group, CONFIG.versions[0], CONFIG.plural)
}

/// Whether an object can have this name. Whatever else was typed could change the path of a request.
pub(crate) fn is_name(text: &str) -> bool {
    let is_inside = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter);
    !text.is_empty() && text.chars().all(is_inside) && !text.starts_with(['-', '.']) && !text.ends_with(['-', '.'])
}

/// The configuration of a profile.
pub(crate) async fn get(reader: &Reader, profile: &str) -> anyhow::Result<VirtPlatformConfig> {
    let missing = || {
        let text =
            format!("there is no VirtPlatformConfig {profile}; `{} list` shows those there are", program::name());
        failed(Failure::NotFound, text)
    };
    if !is_name(profile) {
        return Err(missing());
    }
    match reader.get(&path(profile)).await {
        Err(error) if error.class == Class::NotFound => Err(missing()),
        answer => Ok(parse(answer?)?),
    }
}

/// Configurations, and those that this version cannot read.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) configs: Vec<VirtPlatformConfig>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// All configurations.
pub(crate) async fn list(reader: &Reader) -> anyhow::Result<Listed> {
    let (configs, unreadable) = unreadable::parse_all(reader.list(&list_path()).await?);
    Ok(Listed { configs, unreadable })
}

/// The configuration of a profile, or all of them.
pub(crate) async fn chosen(reader: &Reader, profile: Option<&str>) -> anyhow::Result<Listed> {
    match profile {
        Some(profile) => Ok(Listed { configs: vec![get(reader, profile).await?], unreadable: Vec::new() }),
        None => list(reader).await,
    }
}

pub(crate) fn parse(object: Value) -> Result<VirtPlatformConfig, Unreadable> {
    unreadable::parse(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_name_is_asked_for() {
        for name in ["load-aware-rebalancing", "a", "a.b-3"] {
            assert!(is_name(name), "{name}");
        }
        for other in ["", "a/status", "a?watch=true", "..", "a b", "A", "%2e", "a#b", "é"] {
            assert!(!is_name(other), "{other}");
        }
    }
}
