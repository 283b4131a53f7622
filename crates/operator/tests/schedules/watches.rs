//! Watches of the API model: the changes since a version, with delays, until the watch ends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    api::{Answer, Request, Target, metadata_of, nothing_here, store::Change},
    cluster::{SentRequest, Server},
    fault_plan::Fault,
    random::Random,
};

type Line = Result<String, Box<dyn std::error::Error + Send + Sync>>;

/// The interval of bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(100);

struct Watch {
    server: Server,
    target: Target,
    request: Request,
    lines: mpsc::UnboundedSender<Line>,
    /// The last version that was sent.
    told: u64,
    random: Random,
    end: Instant,
    /// The faults of this watch.
    lags: bool,
    ends: bool,
    gone: bool,
}

pub(crate) fn open(
    server: &Server,
    sent: &SentRequest,
    request: &Request,
) -> Result<mpsc::UnboundedReceiver<Line>, Answer> {
    let mut cluster = server.cluster();
    let served = Target::of(&request.path).filter(|target| cluster.store.serves(target.resource));
    let Some(target) = served else { return Err(nothing_here()) };
    let who = sent.process.to_string();
    let mut random = Random::of(cluster.seed, &format!("watch {}", sent.label), cluster.store.now.as_millis() as u64);
    let fault_plan = cluster.fault_plan.clone();
    let told =
        request.query("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(cluster.store.version);
    if matches!(sent.delivery.fault, Some(Fault::ServerError | Fault::TooMany)) {
        cluster.log(&who, &format!("{} -> 500", sent.label));
        return Err(Answer::failure(500, "InternalError", "injected".into(), json!({})));
    }
    if fault_plan.has(Fault::WatchGone) && random.permille(100) {
        cluster.log(&who, &format!("{} from {told} -> 410", sent.label));
        return Err(Answer::failure(410, "Expired", "too old resource version".into(), json!({})));
    }
    let asked = request.query("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(290);
    let ends = fault_plan.has(Fault::WatchCut) && random.permille(700);
    let lasts = if ends { random.millis(500, 90_000) } else { Duration::from_secs(asked) };
    let (lines, receiver) = mpsc::unbounded_channel();
    let watch = Watch {
        server: server.clone(),
        target,
        request: request.clone(),
        lines,
        told,
        end: Instant::now() + lasts,
        lags: fault_plan.has(Fault::WatchLag),
        gone: fault_plan.has(Fault::WatchGone),
        ends,
        random,
    };
    tokio::spawn(watch.run());
    Ok(receiver)
}

impl Watch {
    async fn run(mut self) {
        let plural = self.target.resource.plural.as_str();
        let server = self.server.clone();
        let mut bookmark = Instant::now() + BOOKMARKS;
        loop {
            let changes = server.changed(plural).notified();
            tokio::pin!(changes);
            changes.as_mut().enable();
            for (change, due) in self.unsent() {
                sleep_until(due).await;
                self.told = change.version;
                if self.send_event(&change).is_err() {
                    return;
                }
            }
            if !server.cluster().store.serves(self.target.resource) {
                return;
            }
            tokio::select! {
                biased;
                () = self.lines.closed() => return,
                _ = timeout_at(self.end.min(bookmark), changes) => {}
            }
            if Instant::now() >= self.end {
                return self.finish();
            }
            if Instant::now() >= bookmark {
                bookmark += BOOKMARKS;
                self.bookmark();
            }
        }
    }

    /// The changes that were not sent yet, and when each is due.
    fn unsent(&mut self) -> Vec<(Change, Instant)> {
        let cluster = self.server.cluster();
        let (now, elapsed) = (Instant::now(), cluster.store.now);
        let unheard = cluster.store.history.iter().rev().take_while(|change| change.version > self.told);
        let of_interest = |change: &&Change| {
            change.key.plural == self.target.resource.plural
                && (self.target.namespace.is_empty() || change.key.namespace == self.target.namespace)
                && self.request.selected().is_none_or(|name| change.key.name == name)
        };
        let mut changes: Vec<Change> = unheard.filter(of_interest).cloned().collect();
        changes.reverse();
        let mut last = now;
        let mut timed = Vec::new();
        for change in changes {
            let late = self.lags && self.random.permille(200);
            let lag = if late { self.random.millis(100, 15_000) } else { self.random.millis(1, 20) };
            // Events keep their order.
            last = last.max(now + (change.at + lag).saturating_sub(elapsed));
            timed.push((change, last));
        }
        timed
    }

    fn send_event(&mut self, change: &Change) -> Result<(), ()> {
        let (kind, object) = match (&change.before, &change.after) {
            (None, Ok(object)) => ("ADDED", object),
            (Some(_), Ok(object)) => ("MODIFIED", object),
            (_, Err(last)) => ("DELETED", last),
        };
        let object: Value = if self.request.metadata_only { metadata_of(object) } else { (**object).clone() };
        let line = json!({"type": kind, "object": object}).to_string();
        if self.lags && self.random.permille(50) {
            let _ = self.lines.send(Ok(line.clone()));
        }
        self.lines.send(Ok(line)).map_err(drop)
    }

    fn bookmark(&mut self) {
        // A bookmark never passes a change that was not sent.
        if self.unsent().is_empty() {
            self.told = self.server.cluster().store.version;
        }
        let version = self.told;
        let (kind, api_version) = match self.request.metadata_only {
            true => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            false => (self.target.resource.kind.clone(), self.target.resource.api_version()),
        };
        let metadata = json!({"resourceVersion": version.to_string()});
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        let _ = self.lines.send(Ok(json!({"type": "BOOKMARK", "object": object}).to_string()));
    }

    fn finish(mut self) {
        let ending = if self.ends { self.random.below(3) } else { 0 };
        match ending {
            1 => drop(self.lines.send(Err("the watch was cut".into()))),
            2 if self.gone => {
                let gone = Answer::failure(410, "Expired", "too old resource version".into(), json!({})).body;
                let _ = self.lines.send(Ok(json!({"type": "ERROR", "object": gone}).to_string()));
            }
            _ => {}
        }
    }
}
