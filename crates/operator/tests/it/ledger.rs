//! What the operator did, told by the API server's audit log and not by the operator.

use devcluster::{Mark, Request};

use crate::{platform::Platform, running::OPERATOR};

impl Platform {
    /// The place after everything that was answered so far.
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
