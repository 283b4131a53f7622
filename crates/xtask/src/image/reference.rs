//! References to images, such as `registry/name:tag` or `name@sha256:0a1b`.

use std::{fmt, str::FromStr};

use serde_json::{Value, json};

const EXPECTED: &str = "an image looks like registry/name:tag";

/// What engines take if neither tag nor digest is given. It is written down, so that all files of a release name the same image.
const DEFAULT_TAG: &str = "latest";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageReference {
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<String>,
}

impl ImageReference {
    /// An entry of `images` in a kustomization that puts this image in the place of the one called `replaced`.
    pub(crate) fn kustomize_entry(&self, replaced: &str) -> Value {
        let mut entry = json!({"name": replaced, "newName": self.name});
        if let Some(tag) = &self.tag {
            entry["newTag"] = tag.as_str().into();
        }
        if let Some(digest) = &self.digest {
            entry["digest"] = digest.as_str().into();
        }
        entry
    }
}

impl FromStr for ImageReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !begins_well || !text.bytes().all(is_allowed) {
            return Err(EXPECTED.to_owned());
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before a slash is that of a port.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if [Some(name), tag, digest].contains(&Some("")) {
            return Err(EXPECTED.to_owned());
        }
        let tag = tag.or(digest.is_none().then_some(DEFAULT_TAG));
        Ok(ImageReference { name: name.to_owned(), tag: tag.map(str::to_owned), digest: digest.map(str::to_owned) })
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_is_refused() {
        for text in ["", "-x", "a b", "a\nb: c", "a#b", "'a'", "$(IMG)", "a:", "a@"] {
            assert!(text.parse::<ImageReference>().is_err(), "{text:?}");
        }
        for text in ["advisor:v1", "localhost:5000/advisor:v1.2.3-rc.1", "a/b/c@sha256:00", "a:v1@sha256:00"] {
            assert_eq!(text.parse::<ImageReference>().map(|image| image.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn an_image_without_a_tag_is_the_latest_everywhere() {
        let image: ImageReference = "localhost:5000/advisor".parse().unwrap();
        assert_eq!(image.to_string(), "localhost:5000/advisor:latest");
        assert_eq!(image.tag.as_deref(), Some("latest"));
    }

    #[test]
    fn kustomize_is_told_name_tag_and_digest() {
        for (text, expected) in [
            ("localhost:5000/advisor:v1", json!({"name": "old", "newName": "localhost:5000/advisor", "newTag": "v1"})),
            ("localhost:5000/advisor", json!({"name": "old", "newName": "localhost:5000/advisor", "newTag": "latest"})),
            ("me/it@sha256:0a1b", json!({"name": "old", "newName": "me/it", "digest": "sha256:0a1b"})),
        ] {
            assert_eq!(text.parse::<ImageReference>().unwrap().kustomize_entry("old"), expected);
        }
    }
}
