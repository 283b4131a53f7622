//! The VirtPlatformPlanRecords: created before a plan is applied, closed at its end, and deleted when there are too many.

#[cfg(test)]
mod tests;

use advisor::{
    record::{KnownRecords, Summary, abandoned, is_abandoned},
    session::RecordInput,
};
use api::{
    VirtPlatformPlanRecord, VirtPlatformPlanRecordStatus,
    names::{ADVISOR_GROUP, FIELD_MANAGER, PROFILE_LABEL, VERSION},
    virt_platform_config::Profile,
    virt_platform_plan_record::number,
};
use http::Method;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt;
use kube_io::{ApiServer, Class, RequestError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::warn;

use crate::refusal;

/// How often a record is tried to be closed at once.
const MAX_ATTEMPTS: usize = 8;

fn path(rest: &str) -> String {
    format!("/apis/{ADVISOR_GROUP}/{VERSION}/virtplatformplanrecords{rest}")
}

/// Creates the record of a plan.
pub(crate) async fn create(
    api_server: &ApiServer,
    record: &VirtPlatformPlanRecord,
) -> Result<RecordInput, RequestError> {
    let name = record.name_any();
    let uri = path(&format!("?fieldManager={FIELD_MANAGER}&fieldValidation=Strict"));
    let doing = format!("creating VirtPlatformPlanRecord {name}");
    match api_server.send_body(Method::POST, uri, "application/json", &json!(record), doing).await {
        Ok(_) => Ok(RecordInput::Created),
        Err(error) if error.class == Class::Conflict => {
            Ok(RecordInput::Exists(Box::new(read(api_server, &name).await?)))
        }
        // Rights may be granted at any time, and the plan goes on then.
        Err(error) if error.class == Class::Forbidden => Err(error),
        Err(error) => refusal::lasting(error).map(RecordInput::Refused),
    }
}

async fn read(api_server: &ApiServer, name: &str) -> Result<VirtPlatformPlanRecord, RequestError> {
    let doing = format!("reading VirtPlatformPlanRecord {name}");
    parse(api_server.get(path(&format!("/{name}")), doing.clone()).await?, doing)
}

fn parse<T: DeserializeOwned>(object: Value, doing: String) -> Result<T, RequestError> {
    serde_json::from_value(object).map_err(|error| RequestError::other(doing, error.to_string(), Class::Other))
}

/// What retention and numbering need to know of all records of a profile.
pub(crate) async fn list(api_server: &ApiServer, profile: Profile) -> Result<Vec<Summary>, RequestError> {
    Ok(all(api_server, profile.as_str()).await?.iter().filter_map(Summary::of).collect())
}

async fn all(api_server: &ApiServer, profile: &str) -> Result<Vec<VirtPlatformPlanRecord>, RequestError> {
    let doing = format!("listing the VirtPlatformPlanRecords of {profile}");
    let uri = path(&format!("?labelSelector={PROFILE_LABEL}%3D{profile}"));
    let mut list = api_server.get(uri, doing.clone()).await?;
    parse(list["items"].take(), doing)
}

/// Closes what is open of other configurations of the profile than this one: they were deleted before their plans had ended. Only
/// what may pass by itself is an error.
pub(crate) async fn close_abandoned(
    api_server: &ApiServer,
    profile: &str,
    config: Option<&str>,
    now: Timestamp,
) -> Result<(), RequestError> {
    match try_close_abandoned(api_server, profile, config, now).await {
        // A kind that is not served has no records.
        Err(error) if matches!(error.class, Class::KindMissing | Class::NotFound) => Ok(()),
        Err(error) => refusal::lasting(error).map(|why| warn!(profile, why, "could not close abandoned records")),
        Ok(()) => Ok(()),
    }
}

async fn try_close_abandoned(
    api_server: &ApiServer,
    profile: &str,
    config: Option<&str>,
    now: Timestamp,
) -> Result<(), RequestError> {
    for record in all(api_server, profile).await?.iter().filter(|record| is_abandoned(record, config)) {
        try_close(api_server, &record.name_any(), &abandoned(Time(now))).await?;
    }
    Ok(())
}

/// Closes a record. What goes wrong does not hold up the plan: the next session tries again.
pub(crate) async fn close(api_server: &ApiServer, name: &str, status: &VirtPlatformPlanRecordStatus) -> RecordInput {
    match try_close(api_server, name, status).await {
        Ok(()) => RecordInput::Closed,
        Err(error) => {
            warn!(record = name, %error, "could not close the record");
            RecordInput::NotClosed
        }
    }
}

async fn try_close(
    api_server: &ApiServer,
    name: &str,
    status: &VirtPlatformPlanRecordStatus,
) -> Result<(), RequestError> {
    let uri = path(&format!("/{name}/status?fieldManager={FIELD_MANAGER}"));
    let doing = format!("closing VirtPlatformPlanRecord {name}");
    let patch = json!({"status": status});
    let mut attempt = 1;
    loop {
        let content = "application/merge-patch+json";
        match api_server.send_body(Method::PATCH, uri.clone(), content, &patch, doing.clone()).await {
            // The patch names no version, so another writer was just quicker.
            Err(error) if error.class == Class::Conflict && attempt < MAX_ATTEMPTS => attempt += 1,
            // The API server lets nobody change a finished record.
            Err(error) if error.class == Class::Invalid => {
                let is_finished =
                    read(api_server, name).await?.status.is_some_and(|status| status.finished_at.is_some());
                return if is_finished { Ok(()) } else { Err(error) };
            }
            Err(error) if error.class != Class::NotFound => return Err(error),
            _ => return Ok(()),
        }
    }
}

/// Deletes the records of a profile that are no longer kept, if there can be any. `newest` is the name of the last record. They are
/// listed only if `known_records` does not tell them.
pub(crate) async fn delete_expired(
    api_server: &ApiServer,
    profile: Profile,
    newest: &str,
    keep: usize,
    known_records: &mut KnownRecords,
) -> Result<(), RequestError> {
    if number(profile, newest).is_none_or(|number| number as usize <= keep) {
        return Ok(());
    }
    let expired = match known_records.expired(keep) {
        Some(expired) => expired,
        None => {
            *known_records = KnownRecords::listed(list(api_server, profile).await?);
            known_records.expired(keep).unwrap_or_default()
        }
    };
    for name in expired {
        let doing = format!("deleting VirtPlatformPlanRecord {name}, which is not kept any longer");
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        let uri = path(&format!("/{name}"));
        match api_server.send_body(Method::DELETE, uri, "application/json", &options, doing).await {
            Err(error) if error.class != Class::NotFound => return Err(error),
            _ => known_records.deleted(&name),
        }
    }
    Ok(())
}
