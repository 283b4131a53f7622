//! Offers profiles: creates the object of a profile that nobody has, and keeps what it says about the profile current.

use advisor::{About, advertise};
use api::VirtPlatformConfig;
use http::Method;
use serde_json::json;
use tracing::info;

use crate::{Class, Kubernetes, RequestError, root};

/// Creates the object of a profile, unless somebody was faster.
pub(crate) async fn offer(kubernetes: &Kubernetes, about: &About) -> Result<(), RequestError> {
    let uri = root::collection("?fieldManager=virt-advisor-operator&fieldValidation=Strict");
    let doing = format!("offering VirtPlatformConfig {}", about.name);
    match kubernetes.call(Method::POST, uri, Some("application/json"), &advertise::offer(about), doing).await {
        Ok(_) => info!(config = about.name, "offered the profile"),
        Err(error) if error.class == Class::Conflict => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Brings the texts of an offered object up to date.
pub(crate) async fn refresh(
    kubernetes: &Kubernetes,
    about: &About,
    config: &VirtPlatformConfig,
) -> Result<(), RequestError> {
    let Some(patch) = advertise::refresh(&json!(config), about) else { return Ok(()) };
    let uri = root::object(about.name, "?fieldManager=virt-advisor-operator");
    let doing = format!("describing VirtPlatformConfig {}", about.name);
    match kubernetes.call(Method::PATCH, uri, Some("application/merge-patch+json"), &patch, doing).await {
        // Somebody edits it right now; there will be another time.
        Err(error) if error.class != Class::Conflict => Err(error),
        _ => Ok(()),
    }
}
