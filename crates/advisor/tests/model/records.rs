//! The records of plans in the cluster of the model.

use advisor::{record::Summary, session::RecordInput};
use api::{
    VirtPlatformPlanRecord, VirtPlatformPlanRecordStatus, virt_platform_config::Profile,
    virt_platform_plan_record::number,
};
use serde_json::{Value, json};

use crate::{cluster::ModelCluster, hashed::Hashed};

/// What matters of a record.
#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct ModelRecord {
    pub(crate) name: String,
    pub(crate) plan_digest: String,
    pub(crate) is_finished: bool,
    /// The whole record, if plans may be restored.
    pub(crate) content: Option<Hashed<Value>>,
}

impl ModelRecord {
    pub(crate) fn summary(&self) -> Summary {
        let number = number(Profile::Example, &self.name).unwrap();
        let (profile, finished) = (Profile::Example, self.is_finished);
        Summary { profile, number, first: false, original: false, applied: true, finished }
    }
}

impl ModelCluster {
    /// The record of this name.
    pub(crate) fn record(&self, name: &str) -> Option<&ModelRecord> {
        self.records.iter().find(|record| record.name == name)
    }

    /// Stores a record, or replaces the one of its name.
    pub(crate) fn put_record(&mut self, new: ModelRecord) {
        match self.records.iter_mut().find(|record| record.name == new.name) {
            Some(record) => *record = new,
            None => self.records.push(new),
        }
    }

    /// Creates a record, unless one of its name exists.
    pub(crate) fn create_record(&mut self, mut record: VirtPlatformPlanRecord) -> RecordInput {
        let name = record.metadata.name.clone().unwrap();
        if let Some(found) = self.record(&name) {
            record.spec.plan_digest.clone_from(&found.plan_digest);
            record.status = found.is_finished.then(|| VirtPlatformPlanRecordStatus {
                finished_at: Some(record.spec.started_at.clone()),
                ..VirtPlatformPlanRecordStatus::default()
            });
            return RecordInput::Exists(Box::new(record));
        }
        let content = self.keeps_records.then(|| Hashed::new(json!(record)));
        self.put_record(ModelRecord { name, plan_digest: record.spec.plan_digest, is_finished: false, content });
        RecordInput::Created
    }

    /// Closes the record of this name, if it exists.
    pub(crate) fn close_record(&mut self, name: &str) {
        let record = self.records.iter_mut().find(|record| record.name == name);
        record.into_iter().for_each(|record| record.is_finished = true);
    }
}
