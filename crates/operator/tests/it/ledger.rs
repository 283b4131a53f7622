//! What the operator did, told by the API server's audit log and not by the operator.

use devcluster::{AuditLog, Mark, Request};
use kube::Client;

use crate::{platform::Platform, running::OPERATOR};

/// Sees what the operator is refused for lack of a right, from some moment on.
pub(crate) struct Watchdog {
    audit: AuditLog,
    client: Client,
    since: Mark,
}

impl Watchdog {
    pub(crate) async fn refused(&self) -> Vec<Request> {
        self.audit.refusals_since(self.since, &self.client, OPERATOR).await.unwrap()
    }

    pub(crate) async fn check(&self) {
        let refused: Vec<String> = self.refused().await.iter().map(ToString::to_string).collect();
        assert!(refused.is_empty(), "the rights that it is shipped with do not suffice:\n{}", refused.join("\n"));
    }
}

impl Platform {
    pub(crate) async fn watchdog(&self) -> Watchdog {
        Watchdog { audit: self.cluster.audit().clone(), client: self.client.clone(), since: self.mark().await }
    }

    /// After everything that has arrived so far.
    pub(crate) async fn mark(&self) -> Mark {
        self.cluster.audit().mark(&self.client).await.unwrap()
    }

    /// What the operator asked since then, but for its watches and events.
    pub(crate) async fn requests_since(&self, mark: Mark) -> Vec<Request> {
        let all = self.cluster.audit().since(mark, &self.client).await.unwrap();
        all.into_iter().filter(|request| request.user == OPERATOR && !is_free(request)).collect()
    }

    /// What the operator wrote to other people's objects since then, or tried to: `patch kubedeschedulers cluster`.
    pub(crate) async fn changes_since(&self, mark: Mark) -> Vec<String> {
        let requests = self.requests_since(mark).await;
        let foreign = requests.iter().filter(|request| request.is_write() && request.group != "advisor.kubevirt.io");
        foreign.map(|request| format!("{} {} {}", request.verb, request.resource, request.name)).collect()
    }
}

/// Watches, with the list that each of them begins with, and events do not count.
fn is_free(request: &Request) -> bool {
    let begins_watch = request.verb == "list" && request.uri.contains("limit=");
    request.verb == "watch" || begins_watch || request.resource == "events"
}
