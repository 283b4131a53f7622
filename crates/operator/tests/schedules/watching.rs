//! Watches: what changed since a version, as it happens, until the watch ends one way or another.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    api::{Answer, Request, Target, metadata_of, nothing_here, store::Change},
    dice::Dice,
    fate::Trouble,
    world::{Server, Ticket},
};

type Line = Result<String, Box<dyn std::error::Error + Send + Sync>>;

/// How often a quiet watch says how far it is.
const BOOKMARKS: Duration = Duration::from_secs(100);

struct Watch {
    server: Server,
    target: Target,
    request: Request,
    lines: mpsc::UnboundedSender<Line>,
    /// The last version that was told.
    told: u64,
    dice: Dice,
    end: Instant,
    /// What the world is like when it starts.
    lags: bool,
    ends: bool,
    gone: bool,
}

pub(crate) fn open(
    server: &Server,
    ticket: &Ticket,
    request: &Request,
) -> Result<mpsc::UnboundedReceiver<Line>, Answer> {
    let mut world = server.world();
    let served = Target::of(&request.path).filter(|target| world.store.serves(target.resource));
    let Some(target) = served else { return Err(nothing_here()) };
    let who = ticket.process.to_string();
    let mut dice = Dice::of(world.seed, &format!("watch {}", ticket.label), world.store.now.as_millis() as u64);
    let climate = world.climate.clone();
    let told = request.query("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(world.store.version);
    if matches!(ticket.fate.trouble, Some(Trouble::ServerError | Trouble::TooMany)) {
        world.tell(&who, &format!("{} -> 500", ticket.label));
        return Err(Answer::failure(500, "InternalError", "trouble".into(), json!({})));
    }
    if climate.has(Trouble::WatchGone) && dice.permille(100) {
        world.tell(&who, &format!("{} from {told} -> 410", ticket.label));
        return Err(Answer::failure(410, "Expired", "too old resource version".into(), json!({})));
    }
    let asked = request.query("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(290);
    let ends = climate.has(Trouble::WatchCut) && dice.permille(700);
    let lasts = if ends { dice.millis(500, 90_000) } else { Duration::from_secs(asked) };
    let (lines, receiver) = mpsc::unbounded_channel();
    let watch = Watch {
        server: server.clone(),
        target,
        request: request.clone(),
        lines,
        told,
        end: Instant::now() + lasts,
        lags: climate.has(Trouble::WatchLag),
        gone: climate.has(Trouble::WatchGone),
        ends,
        dice,
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
            let news = server.changed(plural).notified();
            tokio::pin!(news);
            news.as_mut().enable();
            for (change, due) in self.news() {
                sleep_until(due).await;
                self.told = change.version;
                if self.tell(&change).is_err() {
                    return;
                }
            }
            if !server.world().store.serves(self.target.resource) {
                return;
            }
            tokio::select! {
                biased;
                () = self.lines.closed() => return,
                _ = timeout_at(self.end.min(bookmark), news) => {}
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

    /// What has not been told yet, and when it is due.
    fn news(&mut self) -> Vec<(Change, Instant)> {
        let world = self.server.world();
        let (now, elapsed) = (Instant::now(), world.store.now);
        let unheard = world.store.history.iter().rev().take_while(|change| change.version > self.told);
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
            let late = self.lags && self.dice.permille(200);
            let lag = if late { self.dice.millis(100, 15_000) } else { self.dice.millis(1, 20) };
            // In the order in which it happened.
            last = last.max(now + (change.at + lag).saturating_sub(elapsed));
            timed.push((change, last));
        }
        timed
    }

    fn tell(&mut self, change: &Change) -> Result<(), ()> {
        let (kind, object) = match (&change.before, &change.after) {
            (None, Ok(object)) => ("ADDED", object),
            (Some(_), Ok(object)) => ("MODIFIED", object),
            (_, Err(last)) => ("DELETED", last),
        };
        let object: Value = if self.request.metadata_only { metadata_of(object) } else { (**object).clone() };
        let line = json!({"type": kind, "object": object}).to_string();
        if self.lags && self.dice.permille(50) {
            let _ = self.lines.send(Ok(line.clone()));
        }
        self.lines.send(Ok(line)).map_err(drop)
    }

    fn bookmark(&mut self) {
        // Never beyond what is still on its way.
        if self.news().is_empty() {
            self.told = self.server.world().store.version;
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
        let ending = if self.ends { self.dice.below(3) } else { 0 };
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
