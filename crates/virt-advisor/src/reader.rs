//! What commands ask the API server. Every request is a read, or a question about rights, which stores nothing.

use std::{pin::pin, sync::Arc, time::Duration};

use advisor::blast_radius::Reading;
use futures::AsyncReadExt;
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};
use kube::{Config, client::Body};
use kube_io::{ApiServer, Class, Observer, RequestError, answer_within, within_deadline};
use serde_json::Value;

use crate::tail::Tail;

const DEADLINE: Duration = Duration::from_secs(10);

/// So much of a long text is read at once.
const PART: usize = 64 * 1024;

/// So many objects are asked for at a time, as kubectl does.
const PAGE: usize = 500;

/// A client for the person who runs the program.
#[derive(Debug)]
pub(crate) struct Reader {
    api_server: ApiServer,
    deadline: Duration,
    /// Where the API server is, for messages.
    pub(crate) url: String,
}

impl Reader {
    /// `component` is the name of the sender in the API server's audit log.
    pub(crate) fn connect(
        config: Config,
        component: &str,
        deadline: Option<Duration>,
        observer: Arc<dyn Observer>,
    ) -> anyhow::Result<Self> {
        let url = config.cluster_url.to_string();
        let api_server = ApiServer::observed(config, component, observer)?;
        // Without a deadline of its own, a change has more time than a read.
        let api_server = match deadline {
            Some(deadline) => api_server.with_deadline(deadline),
            None => api_server,
        };
        Ok(Reader { api_server, deadline: deadline.unwrap_or(DEADLINE), url })
    }

    pub(crate) fn api_server(&self) -> &ApiServer {
        &self.api_server
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, RequestError> {
        self.api_server.get(path.to_owned(), doing(path)).await
    }

    /// The objects of a list, each with its kind and version, which a list names only once.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, RequestError> {
        Ok(items(self.get(path).await?))
    }

    /// The end of a text that may be long, for example of a log. It may take any time, as long as more of it comes.
    pub(crate) async fn end_of_text(&self, path: &str, limit: usize) -> Result<String, RequestError> {
        let failed = |error: String| RequestError::other(doing(path), error, Class::Other);
        let request = http::Request::get(path).body(Vec::new()).map_err(|error| failed(error.to_string()))?;
        let answer = self.api_server.client().request_stream(request);
        let mut stream = pin!(answer_within(self.deadline, doing(path), answer).await?);
        let (mut tail, mut part) = (Tail::new(limit), vec![0; PART]);
        loop {
            let read = within_deadline(self.deadline, &doing(path), stream.read(&mut part)).await?;
            match read.map_err(|error| failed(error.to_string()))? {
                0 => return Ok(tail.into_text()),
                count => tail.push(&part[..count]),
            }
        }
    }

    /// All objects of a list page by page, each reduced by `of`, so that no more than one page is in memory. Also the number of
    /// requests and of objects. A part of a list is no answer: if a page fails, so does the list.
    pub(crate) async fn pages<T>(
        &self,
        path: &str,
        mut of: impl FnMut(&Value) -> Option<T>,
    ) -> (Result<Vec<T>, RequestError>, usize, usize) {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (mut found, mut requests, mut objects) = (Vec::new(), 0, 0);
        let mut next = String::new();
        loop {
            let page = self.get(&format!("{path}{separator}limit={PAGE}{next}")).await;
            requests += 1;
            let page = match page {
                Ok(page) => page,
                Err(error) => return (Err(error), requests, objects),
            };
            let items = page["items"].as_array().map_or(&[][..], Vec::as_slice);
            objects += items.len();
            found.extend(items.iter().filter_map(&mut of));
            match page.pointer("/metadata/continue").and_then(Value::as_str) {
                Some(token) if !token.is_empty() => next = format!("&continue={token}"),
                _ => return (Ok(found), requests, objects),
            }
        }
    }

    /// A short text.
    pub(crate) async fn text(&self, path: &str) -> Result<String, RequestError> {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| RequestError::other(doing(path), error.to_string(), Class::Other))?;
        answer_within(self.deadline, doing(path), self.api_server.client().request_text(request)).await
    }

    /// Asks for a review of rights.
    pub(crate) async fn review(&self, resource: &str, spec: &Value) -> Result<bool, RequestError> {
        let path = format!("/apis/authorization.k8s.io/v1/{resource}");
        let body =
            serde_json::json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind_of(resource), "spec": spec});
        let doing = "asking for rights";
        let sent = self.api_server.send_body(http::Method::POST, path, "application/json", &body, doing.to_owned());
        // A question changes nothing, and has the time of a read.
        let answer = within_deadline(self.deadline, doing, sent).await??;
        Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }

    /// How far the clock of the API server is ahead of the one here, and how inexact that is.
    pub(crate) async fn clock_offset(&self) -> Option<(SignedDuration, SignedDuration)> {
        let request = http::Request::get("/version").body(Body::empty()).ok()?;
        let sent = Timestamp::now();
        let answer = self.api_server.client().send(request);
        let answer = answer_within(self.deadline, doing("/version"), answer).await.ok()?;
        let answered = Timestamp::now();
        let header = answer.headers().get(http::header::DATE)?.to_str().ok()?;
        let date = DateTimeParser::new().parse_timestamp(header).ok()?;
        Some(offset(sent, answered, date))
    }
}

fn doing(path: &str) -> String {
    format!("reading {}", path.split('?').next().unwrap_or(path))
}

fn kind_of(resource: &str) -> &'static str {
    if resource == "selfsubjectaccessreviews" { "SelfSubjectAccessReview" } else { "SubjectAccessReview" }
}

fn items(list: Value) -> Vec<Value> {
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
    let version = list["apiVersion"].clone();
    let complete = |mut item: Value| {
        if let (Some(map), Some(kind)) = (item.as_object_mut(), &kind) {
            map.insert("apiVersion".into(), version.clone());
            map.insert("kind".into(), kind.clone().into());
        }
        item
    };
    list["items"].as_array().cloned().unwrap_or_default().into_iter().map(complete).collect()
}

/// A date has full seconds, and was taken at some time between request and answer.
fn offset(sent: Timestamp, answered: Timestamp, date: Timestamp) -> (SignedDuration, SignedDuration) {
    let way = answered.duration_since(sent) / 2;
    let half = SignedDuration::from_millis(500);
    (date.duration_since(sent) + half - way, way + half)
}

/// The answer to a question, as the core takes it: what is not installed is not there.
pub(crate) fn reading<T>(result: Result<T, RequestError>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Read(value),
        Err(error) if error.class.is_absent() => Reading::NotServed,
        Err(error) => Reading::Unreadable(why(&error.class).to_owned()),
    }
}

/// One word or two for why something could not be read.
pub(crate) fn why(class: &Class) -> &'static str {
    match class {
        Class::Forbidden => "forbidden (403)",
        Class::Unauthenticated => "not authenticated (401)",
        Class::NotFound | Class::NamespaceMissing(_) => "not found (404)",
        Class::KindMissing => "not served (404)",
        Class::Busy | Class::Initializing => "the server is busy",
        Class::Unknown => "no answer",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_change_has_more_time_than_a_read_unless_a_timeout_is_given() {
        let deadlines = |timeout| {
            let config = Config::new("http://127.0.0.1:9".parse().unwrap());
            Reader::connect(config, "test", timeout, Arc::new(())).unwrap().api_server.deadlines()
        };
        let seconds = Duration::from_secs;
        assert_eq!(deadlines(None), (seconds(10), seconds(30)), "as --help says");
        assert_eq!(deadlines(Some(seconds(5))), (seconds(5), seconds(5)));
    }

    #[test]
    fn objects_of_a_list_say_what_they_are() {
        let list = json!({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]});
        assert_eq!(items(list), [json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}})]);
        assert_eq!(items(json!({"kind": "PodList"})), [] as [Value; 0]);
    }

    #[test]
    fn the_offset_of_a_clock_is_known_up_to_the_way_and_the_full_second() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let seconds = |millis| SignedDuration::from_millis(millis);
        for (sent, answered, date, expected) in [
            (10_400, 10_600, 10_000, (seconds(0), seconds(600))),
            (10_400, 10_600, 40_000, (seconds(30_000), seconds(600))),
            (10_000, 14_000, 12_000, (seconds(500), seconds(2_500))),
        ] {
            assert_eq!(offset(at(sent), at(answered), at(date)), expected, "{sent} {answered} {date}");
        }
    }
}
