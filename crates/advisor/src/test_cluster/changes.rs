//! Changes to the objects of the cluster, under any field manager.

use api::virt_platform_config::TakeOver;
use serde_json::Value;

use super::{TestCluster, server_side_apply};
use crate::{
    Change, Kind, ObjectRef, fields,
    kind::{HYPER_CONVERGED, KUBE_DESCHEDULER},
};

impl TestCluster {
    /// The same objects with the defaults of their schemas, as the API server returns them.
    pub fn with_defaults(mut self) -> Self {
        let kinds: [&'static Kind; 2] = [&KUBE_DESCHEDULER, &HYPER_CONVERGED];
        for object in std::mem::take(&mut self.objects) {
            let kind = kinds.into_iter().find(|kind| object["kind"] == kind.kind);
            // Definitions come first in a cluster.
            let schema = kind.and_then(|kind| self.schema(kind, self.version(kind)).cloned());
            let object = schema.map_or(object.clone(), |schema| server_side_apply::defaulted(object, &schema));
            self.objects.push(object);
        }
        self
    }

    /// The object after an apply under a field manager, and whose fields were taken over.
    pub(super) fn applied(
        &self,
        target: &ObjectRef,
        version: &str,
        fields: &Value,
        remove: &[fields::Path],
        manager: &str,
    ) -> (Value, Vec<TakeOver>) {
        let live = self.find(target.kind, target.namespace, &target.name);
        let schema = self.schema(target.kind, version);
        let (mut object, takes_over) = server_side_apply::apply(live, fields, schema, manager);
        for path in remove {
            path.remove(&mut object);
            server_side_apply::disown(&mut object, &path.pointer());
        }
        match schema {
            Some(schema) => (server_side_apply::defaulted(object, schema), takes_over),
            None => (object, takes_over),
        }
    }

    /// Makes a change under a field manager.
    pub fn change(&mut self, target: &ObjectRef, version: &str, change: &Change, manager: &str) {
        match change {
            Change::Delete => self.delete(target.kind, &target.name),
            Change::Apply { fields, remove } => {
                let (object, _) = self.applied(target, version, fields, remove, manager);
                self.put(object);
            }
        }
    }
}
