//! Asks the API server what would come of an intent. Nothing is written.
//! A dry run names the version of the target that the plan was derived from, as the write will: otherwise what others change
//! in between would show as ours. A target that has moved is a conflict, and the plan has to be derived anew.

use advisor::{
    Change, Facts, Intent, Preview, PreviewOutcome, ProfileInfo,
    writing::{at_version, identity, removal, with_kept_fields},
};
use api::virt_platform_config::TakeOver;
use kube_io::{ApiServer, Class, RequestError};
use serde_json::Value;

use crate::{
    refusal,
    request::{self, TargetWrite, WriteMode},
};

pub(crate) async fn preview(
    api_server: &ApiServer,
    about: &ProfileInfo,
    intent: &Intent,
    facts: &Facts,
) -> Result<Preview, RequestError> {
    let live = facts.object(&intent.target).cloned();
    let manager = intent.field_manager(about, live.as_ref());
    match outcome(api_server, &manager, intent, live.as_ref()).await {
        Ok((outcome, takes_over)) => Ok(Preview { live, outcome, takes_over }),
        Err(error) => {
            let refusal = refusal::refusal(&error, intent.target.to_string()).ok_or(error)?;
            Ok(Preview { live, outcome: PreviewOutcome::Refused(refusal), takes_over: Vec::new() })
        }
    }
}

async fn outcome(
    api_server: &ApiServer,
    manager: &str,
    intent: &Intent,
    live: Option<&Value>,
) -> Result<(PreviewOutcome, Vec<TakeOver>), RequestError> {
    let ask = |change| request::change(api_server, &intent.target, intent.version, manager, change, WriteMode::DryRun);
    let (fields, remove) = match &intent.change {
        Change::Delete => {
            let Some(live) = live else { return Ok((PreviewOutcome::Gone, Vec::new())) };
            return match ask(TargetWrite::Delete { preconditions: identity(live) }).await {
                Err(error) if error.class != Class::NotFound => Err(error),
                _ => Ok((PreviewOutcome::Gone, Vec::new())),
            };
        }
        Change::Apply { fields, remove } => {
            (at_version(&with_kept_fields(fields, remove, live, manager), live), remove)
        }
    };
    let (mut object, takes_over) = match ask(TargetWrite::Apply { fields: &fields, force: false }).await {
        // Somebody owns what we would set. The plan says who, and what would come of setting it all the same.
        Err(RequestError { class: Class::FieldConflict(managers), .. }) => {
            (ask(TargetWrite::Apply { fields: &fields, force: true }).await?, managers)
        }
        answer => (answer?, Vec::new()),
    };
    // Server-side apply cannot remove what somebody else has set; a JSON patch can. The two cannot be tried in one dry run,
    // so the API server is asked about the removal alone and the result is put together here.
    let left: Vec<_> = remove.iter().filter(|path| path.find(&object).is_some()).cloned().collect();
    let without = match live.filter(|_| !left.is_empty()) {
        Some(live) => ask(TargetWrite::JsonPatch(&removal(live, &left, &[]))).await?,
        None => Value::Null,
    };
    for path in &left {
        // A default may take the place of a field.
        match path.find(&without) {
            Some(default) => path.set(&mut object, default.clone()),
            None => path.remove(&mut object),
        }
    }
    Ok((PreviewOutcome::Object(object), takes_over))
}
