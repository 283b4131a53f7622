//! The audit log of the API server: every request, by whom, to what, with what outcome. A line may appear after the client has its
//! answer, so each query sends a request of its own, the fence, and waits for its line and for the answers to all writes that arrived
//! before.

mod line;
mod request;

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use kube::Client;

use line::{Line, parse};
pub use request::AuditedRequest;

use crate::error::{Context, Error, Result};

const LIMIT: Duration = Duration::from_secs(120);
const TRIES: usize = 3;
const FENCE: &str = "devcluster-audit-fence";

/// A position in the audit log, to ask which requests came after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// Requests that arrived later have their lines after this offset.
    offset: u64,
    time: Timestamp,
}

#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
    /// When the API server was last started. Requests to an earlier one are no longer answered.
    started: Arc<Mutex<Timestamp>>,
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        AuditLog { path, started: Arc::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Call this before an API server is started.
    pub(crate) fn begin(&self) {
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Timestamp::now();
    }

    /// The position after all requests that have arrived so far.
    pub async fn position(&self, client: &Client) -> Result<LogPosition> {
        let offset = std::fs::metadata(&self.path).context(|| format!("reading {}", self.path.display()))?.len();
        Ok(LogPosition { offset, time: self.fence(client, offset).await? })
    }

    /// All requests that arrived since `position` and were answered, in the order of the answers.
    pub async fn since(&self, position: LogPosition, client: &Client) -> Result<Vec<AuditedRequest>> {
        let now = self.fence(client, position.offset).await?;
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let from = position.time.max(started);
        let lines = self.read_until(position.offset, |lines| all_answered(&lines, from, now).then_some(lines)).await?;
        let counts =
            |line: &Line| line.answered && line.request.arrived >= position.time && !line.request.uri.contains(FENCE);
        Ok(lines.into_iter().filter(counts).map(|line| line.request).collect())
    }

    /// All writes since `position`, refused ones too, except those of the API server itself.
    pub async fn writes_since(&self, position: LogPosition, client: &Client) -> Result<Vec<AuditedRequest>> {
        let all = self.since(position, client).await?;
        let by_others = |request: &AuditedRequest| request.is_write() && request.user != "system:apiserver";
        Ok(all.into_iter().filter(by_others).collect())
    }

    /// The requests of a user since `position` that RBAC refused.
    pub async fn refusals_since(
        &self,
        position: LogPosition,
        client: &Client,
        user: &str,
    ) -> Result<Vec<AuditedRequest>> {
        let all = self.since(position, client).await?;
        Ok(all.into_iter().filter(|request| request.user == user && request.lacks_right).collect())
    }

    /// Makes a request, waits for its line, and returns when the request arrived.
    async fn fence(&self, client: &Client, from: u64) -> Result<Timestamp> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let token = format!("{FENCE}={}.", COUNT.fetch_add(1, Ordering::Relaxed));
        let doing = || "asking the API server for a line in its audit log".to_owned();
        let mut tries = 1;
        loop {
            let request = http::Request::get(format!("/livez/ping?{token}")).body(Vec::new());
            match client.request_text(request.map_err(kube::Error::HttpError).context(doing)?).await {
                // The connection was lost, for example to an API server that was restarted since.
                Err(kube::Error::Service(_) | kube::Error::HyperError(_)) if tries < TRIES => tries += 1,
                answer => {
                    answer.context(doing)?;
                    break;
                }
            }
        }
        let is_fence = |line: &Line| line.request.uri.contains(&token);
        self.read_until(from, |lines| lines.into_iter().find(is_fence).map(|line| line.request.arrived)).await
    }

    /// Reads the lines after `from` until `find` finds something in them.
    async fn read_until<T>(&self, from: u64, mut find: impl FnMut(Vec<Line>) -> Option<T>) -> Result<T> {
        let start = Instant::now();
        loop {
            if let Some(found) = find(self.read(from)?) {
                return Ok(found);
            }
            if start.elapsed() > LIMIT {
                return Err(Error::AuditLags { waited: LIMIT });
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The complete lines after `from`.
    fn read(&self, from: u64) -> Result<Vec<Line>> {
        let read = || -> io::Result<_> {
            let mut file = BufReader::new(File::open(&self.path)?);
            file.seek(SeekFrom::Start(from))?;
            let (mut lines, mut line) = (Vec::new(), String::new());
            while file.read_line(&mut line)? > 0 && line.ends_with('\n') {
                lines.extend(parse(&line));
                line.clear();
            }
            Ok(lines)
        };
        read().context(|| format!("reading the audit log {}", self.path.display()))
    }
}

/// Whether every write that arrived in this time has been answered; only writes have a line when they arrive.
fn all_answered(lines: &[Line], from: Timestamp, until: Timestamp) -> bool {
    let answered: BTreeSet<_> = lines.iter().filter(|line| line.answered).map(|line| &line.id).collect();
    let arrived = |line: &&Line| (from..until).contains(&line.request.arrived);
    lines.iter().filter(arrived).all(|line| answered.contains(&line.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: u8, stage: &str, second: u8) -> Line {
        let text = format!(
            r#"{{"auditID":"{id}","stage":"{stage}","requestReceivedTimestamp":"2026-01-01T00:00:0{second}.000001Z"}}"#
        );
        parse(&text).unwrap()
    }

    /// A watch tells of a write before whoever made it has the answer.
    #[test]
    fn a_write_that_had_arrived_is_waited_for_until_it_is_answered() {
        let at = |second| line(0, "", second).request.arrived;
        let (received, answered) = ("RequestReceived", "ResponseComplete");
        let mut lines = vec![line(1, received, 3), line(2, answered, 4), line(3, received, 7), line(4, received, 1)];
        assert!(!all_answered(&lines, at(2), at(6)), "the first has no answer");
        assert!(all_answered(&lines, at(4), at(6)), "it came before, and the third after");
        lines.push(line(1, answered, 3));
        assert!(all_answered(&lines, at(2), at(6)));
        assert!(!all_answered(&lines, at(1), at(6)));
    }
}
