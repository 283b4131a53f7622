//! The record of the plan that a session applies: created before the first write, closed when the plan has ended.

use std::time::Duration;

use api::{
    VirtPlatformConfig, VirtPlatformConfigStatus, VirtPlatformPlanRecord, virt_platform_config::RecordRef,
    virt_platform_plan_record::name,
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{Context, Outcome, RecordInput, Request, Session, Step};
use crate::{
    machine::NotWritten,
    record::{next_number, outcome, plan_record},
};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Recording {
    /// The record that this session has created or found.
    created: Option<String>,
    /// The record that is known to be finished.
    closed: Option<String>,
    /// The API server did not close it. Another session tries again.
    is_not_closed: bool,
    /// The item that is written when there is a record.
    item: String,
}

/// The name of the record that belongs to the plan in the status.
fn reference(config: &VirtPlatformConfig) -> Option<&RecordRef> {
    config.status.as_ref()?.record.as_ref()
}

/// The step that closes a record, if its plan has ended.
fn close(config: &VirtPlatformConfig, record: &RecordRef, now: Timestamp) -> Option<Step> {
    let status = Box::new(outcome(&record.plan_digest, config.status.as_ref()?, &Time(now))?);
    Some(Step::Send(Request::CloseRecord { name: record.name.clone(), status }))
}

impl Recording {
    pub(super) fn new(closed: Option<String>) -> Self {
        Recording { closed, ..Recording::default() }
    }

    pub(super) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Whether the plan in the status has a record.
    pub(super) fn is_created(&self, config: &VirtPlatformConfig) -> bool {
        reference(config).is_some_and(|record| record.created || self.created.as_ref() == Some(&record.name))
    }
}

impl Session {
    /// Creates the record of the plan before an item of it is written.
    pub(super) fn create_record(&mut self, context: &Context<'_>, now: Timestamp, item: String) -> Step {
        let (Some(plan), Some(config)) = (self.last_result.plan(), self.config.as_deref()) else {
            self.reset();
            return Step::Send(Request::ReadConfig);
        };
        match plan_record(config, plan, context.version, now) {
            Ok(record) => {
                self.recording.item = item;
                Step::Send(Request::CreateRecord(Box::new(record)))
            }
            Err(error) => self.finish_write(context, now, item, Err(NotWritten::Unrecorded(error.to_string()))),
        }
    }

    pub(super) fn next_of_record(&mut self, context: &Context<'_>, now: Timestamp, input: RecordInput) -> Step {
        let reference = self.config.as_deref().and_then(reference);
        match input {
            RecordInput::Exists(found) if !self.is_own(&found) => {
                return Step::Send(Request::ListRecords { profile: found.spec.profile });
            }
            RecordInput::Created | RecordInput::Exists(_) => {
                self.recording.created = reference.map(|record| record.name.clone());
            }
            RecordInput::Refused(why) => {
                let why = format!("nothing was applied, because the plan could not be recorded: {why}");
                let item = std::mem::take(&mut self.recording.item);
                return self.finish_write(context, now, item, Err(NotWritten::Unrecorded(why)));
            }
            RecordInput::Listed(records) => {
                let Some(mut config) = self.config.clone() else { return self.resume(context, now) };
                let number = next_number(config.spec.profile, &records);
                let name = name(config.spec.profile, number);
                config.metadata.managed_fields = None;
                if let Some(record) = config.status.as_mut().and_then(|status| status.record.as_mut()) {
                    record.name = name;
                }
                self.after_update = None;
                return Step::Send(Request::UpdateStatus(config));
            }
            RecordInput::Closed => {
                self.recording.closed = reference.map(|record| record.name.clone());
                return self.resume(context, now);
            }
            RecordInput::NotClosed => {
                self.recording.is_not_closed = true;
                return self.resume(context, now);
            }
        }
        // The window of the plan may have closed meanwhile.
        self.decide(context, now)
    }

    /// Whether a record is the one of this plan: an earlier session has created it and could not say so.
    fn is_own(&self, record: &VirtPlatformPlanRecord) -> bool {
        let Some(config) = self.config.as_deref() else { return false };
        let of_plan = reference(config).is_some_and(|own| own.plan_digest == record.spec.plan_digest);
        of_plan && config.metadata.uid.as_deref() == Some(&record.spec.config_uid)
    }

    /// Closes the record of a plan that has ended, unless it is known to be closed.
    pub(super) fn close_record(&mut self, now: Timestamp) -> Option<Step> {
        let config = self.config.as_deref()?;
        let record = reference(config)?;
        if self.recording.is_not_closed || self.recording.closed() == Some(&record.name) {
            return None;
        }
        close(config, record, now)
    }

    /// When to look again. A record that was not closed is tried again, whatever the phase waits for: nothing else would tell.
    pub(super) fn until_record_is_closed(&self, context: &Context<'_>, wait: Option<Duration>) -> Option<Duration> {
        let soon = self.recording.is_not_closed.then_some(context.intervals.prerequisites);
        wait.into_iter().chain(soon).min()
    }

    /// Closes the record that a new status would not name any more. If that fails, the status has to wait: nothing else tells which
    /// record is open.
    pub(super) fn close_forgotten_record(&self, new: &VirtPlatformConfigStatus, now: Timestamp) -> Option<Step> {
        let config = self.config.as_deref()?;
        let record = reference(config)?;
        let is_named = new.record.as_ref().is_some_and(|named| named.name == record.name);
        if is_named || self.recording.closed() == Some(&record.name) {
            return None;
        }
        if self.recording.is_not_closed {
            return Some(Step::Done(Outcome::Retry("the record of the last plan is not closed")));
        }
        close(config, record, now)
    }
}
