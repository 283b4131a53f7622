//! The API server's audit log as an oracle: every request, by whom, to what, with what outcome.
//!
//! The server writes a request's line before the answer is complete, but not always before the client has read it.
//! Every question therefore sends a request of its own first and waits for its line: whatever was answered before is
//! then in the log. A watch tells of a write even before it is answered. What counts is therefore when a request
//! arrived, and the log is believed when every write that had arrived by the time of the question has been answered.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
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
use serde::Deserialize;

use crate::error::{Context, Error, Result};

const LIMIT: Duration = Duration::from_secs(30);
const FENCE: &str = "devcluster-audit-fence";

/// A moment, to ask what came after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// What arrived later is in the log after this.
    place: u64,
    arrived: Timestamp,
}

/// One answered request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Who made it. For an impersonated request, the one who was impersonated.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// API group, empty for the core one.
    pub group: String,
    /// Plural name; empty for requests that are not about a resource, such as `/readyz`.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub uri: String,
    pub user_agent: String,
    pub code: u16,
    /// Whether it was refused because whoever made it lacks the right. Webhooks that say no answer with the same code.
    pub lacks_right: bool,
    pub dry_run: bool,
    pub field_manager: Option<String>,
    pub arrived: Timestamp,
}

impl Request {
    /// Whether it changed what is stored, or would have if it had not been refused. Dry runs do not.
    pub fn is_write(&self) -> bool {
        !self.dry_run && matches!(&*self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// `patch virtplatformconfigs.advisor.kubevirt.io/status load-aware-rebalancing by jane: 200`
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb)?;
        if self.resource.is_empty() {
            f.write_str(&self.uri)?;
        } else {
            let part = |separator: &str, text: &str| match text {
                "" => String::new(),
                text => format!("{separator}{text}"),
            };
            let Request { resource, group, subresource, namespace, name, .. } = self;
            let (group, subresource) = (part(".", group), part("/", subresource));
            let (namespace, name) = (part(" ", namespace), part(if namespace.is_empty() { " " } else { "/" }, name));
            write!(f, "{resource}{group}{subresource}{namespace}{name}")?;
        }
        let dry_run = if self.dry_run { " (dry run)" } else { "" };
        write!(f, "{dry_run} by {}: {}", self.user, self.code)
    }
}

#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
    /// When the API server was last started. What an earlier one left unanswered stays so.
    started: Arc<Mutex<Timestamp>>,
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        AuditLog { path, started: Arc::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another API server will write to the log from now on.
    pub(crate) fn begin(&self) {
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Timestamp::now();
    }

    /// After everything that has arrived so far.
    pub async fn mark(&self, client: &Client) -> Result<Mark> {
        let place = std::fs::metadata(&self.path).context(|| format!("reading {}", self.path.display()))?.len();
        Ok(Mark { place, arrived: self.fence(client, place).await? })
    }

    /// Everything that has arrived since `mark` and was answered, in the order in which it was answered.
    pub async fn since(&self, mark: Mark, client: &Client) -> Result<Vec<Request>> {
        let now = self.fence(client, mark.place).await?;
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let from = mark.arrived.max(started);
        let lines = self.read_until(mark.place, |lines| all_answered(&lines, from, now).then_some(lines)).await?;
        let counts =
            |line: &Line| line.answered && line.request.arrived >= mark.arrived && !line.request.uri.contains(FENCE);
        Ok(lines.into_iter().filter(counts).map(|line| line.request).collect())
    }

    /// What was written since `mark`, or tried to be, by anybody but the API server itself.
    pub async fn writes_since(&self, mark: Mark, client: &Client) -> Result<Vec<Request>> {
        let all = self.since(mark, client).await?;
        let by_others = |request: &Request| request.is_write() && request.user != "system:apiserver";
        Ok(all.into_iter().filter(by_others).collect())
    }

    /// What somebody was refused since `mark` for lack of a right.
    pub async fn refusals_since(&self, mark: Mark, client: &Client, user: &str) -> Result<Vec<Request>> {
        let all = self.since(mark, client).await?;
        Ok(all.into_iter().filter(|request| request.user == user && request.lacks_right).collect())
    }

    /// Makes a request, and returns when it arrived.
    async fn fence(&self, client: &Client, from: u64) -> Result<Timestamp> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let token = format!("{FENCE}={}.", COUNT.fetch_add(1, Ordering::Relaxed));
        let request =
            http::Request::get(format!("/livez/ping?{token}")).body(Vec::new()).map_err(kube::Error::HttpError);
        let doing = || "asking the API server for a line in its audit log".to_owned();
        client.request_text(request.context(doing)?).await.context(doing)?;
        let is_fence = |line: &Line| line.request.uri.contains(&token);
        self.read_until(from, |lines| lines.into_iter().find(is_fence).map(|line| line.request.arrived)).await
    }

    /// Reads the lines after `from` again and again, until `told` finds something in them.
    async fn read_until<T>(&self, from: u64, mut told: impl FnMut(Vec<Line>) -> Option<T>) -> Result<T> {
        let start = Instant::now();
        loop {
            if let Some(told) = told(self.read(from)?) {
                return Ok(told);
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

struct Line {
    /// The same in all lines of a request.
    id: String,
    /// Whether it tells of an answer, and not only of the request.
    answered: bool,
    request: Request,
}

/// Whether every write that arrived in this time has been answered; only writes have a line when they arrive.
fn all_answered(lines: &[Line], from: Timestamp, until: Timestamp) -> bool {
    let answered: BTreeSet<_> = lines.iter().filter(|line| line.answered).map(|line| &line.id).collect();
    let arrived = |line: &&Line| (from..until).contains(&line.request.arrived);
    lines.iter().filter(arrived).all(|line| answered.contains(&line.id))
}

/// The fields of an audit.k8s.io/v1 Event that we use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    stage: String,
    verb: String,
    user: User,
    impersonated_user: Option<User>,
    user_agent: String,
    object_ref: ObjectRef,
    response_status: ResponseStatus,
    request_received_timestamp: Timestamp,
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
    message: String,
}

fn parse(line: &str) -> Option<Line> {
    let event: Event = serde_json::from_str(line).ok()?;
    // A watch has two lines, one when it starts and one when it ends.
    if event.verb == "watch" && event.stage == "ResponseComplete" && event.response_status.code == 200 {
        return None;
    }
    let query = event.request_uri.split_once('?').map_or("", |(_, query)| query);
    let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let request = Request {
        lacks_right: lacks_right(&event),
        user: event.impersonated_user.unwrap_or(event.user).username,
        verb: event.verb,
        group: event.object_ref.api_group,
        resource: event.object_ref.resource,
        subresource: event.object_ref.subresource,
        namespace: event.object_ref.namespace,
        name: event.object_ref.name,
        user_agent: event.user_agent,
        code: event.response_status.code,
        dry_run: parameter("dryRun").is_some(),
        field_manager: parameter("fieldManager").map(str::to_owned),
        arrived: event.request_received_timestamp,
        uri: event.request_uri,
    };
    Some(Line { id: event.audit_id, answered: event.stage != "RequestReceived", request })
}

/// An apply that would create is judged again when it is known that it would: `... User "jane" cannot create resource "x" ...`
fn lacks_right(event: &Event) -> bool {
    let ResponseStatus { code, message } = &event.response_status;
    let decision = event.annotations.get("authorization.k8s.io/decision");
    let is_about_rights = message.split_once("\" cannot ").is_some_and(|(_, rest)| rest.contains(" resource \""));
    *code == 403 && (is_about_rights || decision.is_some_and(|decision| decision == "forbid"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","verb":"patch","requestURI":"/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/x/status?fieldManager=me&dryRun=All","user":{"username":"admin"},"impersonatedUser":{"username":"jane"},"objectRef":{"resource":"virtplatformconfigs","apiGroup":"advisor.kubevirt.io","name":"x","subresource":"status"},"responseStatus":{"code":200}}"#;

    #[test]
    fn a_line_tells_who_did_what_to_which_object() {
        let request = parse(LINE).unwrap().request;
        assert_eq!(
            request.to_string(),
            "patch virtplatformconfigs.advisor.kubevirt.io/status x (dry run) by jane: 200"
        );
        assert_eq!(request.field_manager.as_deref(), Some("me"));
        assert!(!request.is_write(), "a dry run writes nothing");
    }

    #[test]
    fn a_lack_of_rights_is_told_from_a_webhook_that_says_no() {
        let refused = |message: &str| {
            let answer = serde_json::json!({"code": 403, "message": message});
            parse(&LINE.replace(r#"{"code":200}"#, &answer.to_string())).unwrap().request.lacks_right
        };
        assert!(refused(
            r#"x is forbidden: User "jane" cannot patch resource "x" in API group "g" at the cluster scope"#
        ));
        assert!(!refused(r#"admission webhook "w" denied the request: no"#));
        assert!(!parse(LINE).unwrap().request.lacks_right);
        let judged = r#"{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}"#;
        assert!(
            parse(&LINE.replace(r#"{"code":200}"#, judged)).unwrap().request.lacks_right,
            "the answer may have no words"
        );
    }

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

    #[test]
    fn an_unreadable_line_is_passed_over() {
        assert!(parse("{\"kind\":").is_none());
    }
}
