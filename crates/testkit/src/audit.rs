//! What the operator asked the API server for, by the audit log.

use devcluster::{AuditLog, AuditedRequest, LogPosition};
use kube::Client;

use crate::{platform::Platform, running_operator::OPERATOR};

/// The requests of the operator that its permissions did not allow, since a mark.
pub struct ForbiddenRequests {
    audit: AuditLog,
    client: Client,
    since: LogPosition,
}

impl ForbiddenRequests {
    pub async fn list(&self) -> Vec<AuditedRequest> {
        self.audit.refusals_since(self.since, &self.client, OPERATOR).await.unwrap()
    }

    pub async fn assert_none(&self) {
        let refused: Vec<String> = self.list().await.iter().map(ToString::to_string).collect();
        assert!(refused.is_empty(), "the rights that it is shipped with do not suffice:\n{}", refused.join("\n"));
    }
}

impl Platform {
    /// The forbidden requests from now on.
    pub async fn forbidden_requests(&self) -> ForbiddenRequests {
        ForbiddenRequests { audit: self.cluster.audit().clone(), client: self.client.clone(), since: self.mark().await }
    }

    /// A mark after all requests that have arrived so far.
    pub async fn mark(&self) -> LogPosition {
        self.cluster.audit().position(&self.client).await.unwrap()
    }

    /// The requests of the operator since a mark, without watches and events.
    pub async fn requests_since(&self, mark: LogPosition) -> Vec<AuditedRequest> {
        let all = self.cluster.audit().since(mark, &self.client).await.unwrap();
        all.into_iter().filter(|request| request.user == OPERATOR && !is_watch_or_event(request)).collect()
    }

    /// The writes of the operator to objects that are not configurations, since a mark: `patch kubedeschedulers cluster`.
    pub async fn changes_since(&self, mark: LogPosition) -> Vec<String> {
        let requests = self.requests_since(mark).await;
        let foreign = requests.iter().filter(|request| request.is_write() && request.group != "advisor.kubevirt.io");
        foreign.map(|request| format!("{} {} {}", request.verb, request.resource, request.name)).collect()
    }
}

/// The list that begins a watch counts as a part of the watch.
fn is_watch_or_event(request: &AuditedRequest) -> bool {
    let begins_watch = request.verb == "list" && request.uri.contains("limit=");
    request.verb == "watch" || begins_watch || request.resource == "events"
}
