//! Writes a decision about a plan: one request, under the version of the configuration that was shown.

use anyhow::Context;
use api::VirtPlatformConfig;
use http::Method;
use kube_io::{Class, RequestError};
use serde_json::Value;

use crate::{
    configs,
    failure::{Failure, failed},
    program,
    reader::Reader,
};

/// So often a write is tried. The operator may write the status of the configuration while a person reads.
const ATTEMPTS: usize = 5;

/// Writes the patch that `edit` makes. If the configuration has changed meanwhile and its spec and plan are the same, it is tried
/// again; if they are not, nothing is written. An answer that got lost is looked for in the configuration.
pub(super) async fn write(
    reader: &Reader,
    shown: VirtPlatformConfig,
    edit: impl Fn(&VirtPlatformConfig) -> Value,
) -> anyhow::Result<()> {
    let profile = shown.spec.profile.as_str();
    let mut current = shown.clone();
    for _ in 0..ATTEMPTS {
        let patch = edit(&current);
        match send(reader, profile, &patch).await {
            Ok(()) => return Ok(()),
            Err(error) if error.class == Class::Conflict => {}
            Err(error) if error.class == Class::Unknown => {
                let unknown = || format!("whether the configuration {profile} was changed is not known: look at it");
                current = configs::get(reader, profile).await.with_context(unknown)?;
                if contains(&serde_json::to_value(&current.spec)?, &patch["spec"]) {
                    return Ok(());
                }
                is_same(&shown, &current)?;
                return Err(error).context("the configuration was not changed; try again");
            }
            Err(error) => return Err(error.into()),
        }
        current = configs::get(reader, profile).await?;
        is_same(&shown, &current)?;
    }
    Err(failed(
        Failure::Other,
        format!("the configuration {profile} changes all the time; nothing was written: try again"),
    ))
}

async fn send(reader: &Reader, profile: &str, patch: &Value) -> Result<(), RequestError> {
    let path = format!("{}?fieldManager=virt-advisor-cli", configs::path(profile));
    let doing = format!("changing the configuration {profile}");
    let content = "application/merge-patch+json";
    reader.api_server().send_body(Method::PATCH, path, content, patch, doing).await.map(drop)
}

/// Whether somebody who has read one configuration has read the other one as well.
fn is_same(shown: &VirtPlatformConfig, current: &VirtPlatformConfig) -> anyhow::Result<()> {
    let plan = |config: &VirtPlatformConfig| config.status.as_ref().and_then(|status| status.plan_digest.clone());
    if plan(shown) == plan(current) && shown.spec == current.spec && shown.metadata.uid == current.metadata.uid {
        return Ok(());
    }
    let what = if plan(shown) == plan(current) { "the configuration" } else { "the plan" };
    let profile = shown.spec.profile.as_str();
    Err(failed(
        Failure::StalePlan,
        format!(
            "{what} of {profile} has changed while you read it; nothing was written. Read it again: {} plan {profile}",
            program::name()
        ),
    ))
}

/// Whether a merge patch would change nothing.
fn contains(object: &Value, patch: &Value) -> bool {
    match (object, patch) {
        (_, Value::Null) => object.is_null(),
        (Value::Object(object), Value::Object(patch)) => {
            patch.iter().all(|(key, value)| contains(object.get(key).unwrap_or(&Value::Null), value))
        }
        (_, Value::Object(patch)) => patch.values().all(Value::is_null),
        _ => object == patch,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_that_has_arrived_would_change_nothing() {
        let stored = json!({"action": "Apply", "approval": {"planDigest": "d", "mode": "Reviewed"}});
        for (patch, expected) in [
            (json!({"action": "Apply", "approval": {"planDigest": "d", "rejected": null}}), true),
            (json!({"approval": {"planDigest": "e"}}), false),
            (json!({"approval": {"reason": "x"}}), false),
            (json!({"approval": {"rejected": {"reason": null}}}), true),
            (json!({"approval": {"mode": null}}), false),
        ] {
            assert_eq!(contains(&stored, &patch), expected, "{patch}");
        }
    }
}
