//! Offers profiles: creates the object of a profile that nobody has, and keeps what it says about the profile current.

use advisor::{ProfileInfo, advertise};
use api::VirtPlatformConfig;
use http::Method;
use kube_io::{ApiServer, Class, RequestError};
use serde_json::json;
use tracing::info;

use crate::configs;

/// Creates the object of a profile, unless somebody was faster.
pub(crate) async fn offer(api_server: &ApiServer, about: &ProfileInfo) -> Result<(), RequestError> {
    let uri = configs::collection("?fieldManager=virt-advisor-operator&fieldValidation=Strict");
    let doing = format!("offering VirtPlatformConfig {}", about.name);
    match api_server.send_body(Method::POST, uri, "application/json", &advertise::offer(about), doing).await {
        Ok(_) => info!(config = about.name, "offered the profile"),
        Err(error) if error.class == Class::Conflict => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Brings the texts of an offered object up to date.
pub(crate) async fn refresh(
    api_server: &ApiServer,
    about: &ProfileInfo,
    config: &VirtPlatformConfig,
) -> Result<(), RequestError> {
    let Some(patch) = advertise::refresh(&json!(config), about) else { return Ok(()) };
    let uri = configs::object(about.name, "?fieldManager=virt-advisor-operator");
    let doing = format!("describing VirtPlatformConfig {}", about.name);
    match api_server.send_body(Method::PATCH, uri, "application/merge-patch+json", &patch, doing).await {
        // Somebody edits it right now; there will be another time.
        Err(error) if error.class != Class::Conflict => Err(error),
        _ => Ok(()),
    }
}
