//! How an operator comes to the API model: as a client of kube-rs, with latency and trouble on the way. What a process has
//! sent is carried out even if it dies meanwhile.

use std::time::Duration;

use futures::StreamExt;
use http::{Method, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use crate::{
    api::{Answer, Request},
    fate::Trouble,
    watching,
    world::{Process, Server, Ticket},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Longer than anybody waits for an answer.
const FOREVER: Duration = Duration::from_secs(60);

pub(crate) fn client(server: &Server, process: Process) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| serve(server.clone(), process, request));
    Client::new(service, "default")
}

async fn serve(server: Server, process: Process, request: http::Request<Body>) -> Result<Reply, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect_bytes().await?;
    let text = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let uri = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let request = Request::new(parts.method, &uri, text(header::CONTENT_TYPE), text(header::ACCEPT), &body);
    let ticket = server.arrive(process, &request);
    if request.is_watch() {
        sleep(ticket.fate.before).await;
        return match watching::open(&server, &ticket, &request) {
            Ok(lines) => Ok(stream(lines)),
            Err(answer) => Ok(reply(answer)),
        };
    }
    let (answer, answered) = oneshot::channel();
    tokio::spawn(carry_out(server, ticket, request, answer));
    match answered.await {
        Ok(answer) => Ok(reply(answer)),
        Err(_) => Err("the connection was cut".into()),
    }
}

async fn carry_out(server: Server, ticket: Ticket, request: Request, sender: oneshot::Sender<Answer>) {
    sleep(ticket.fate.before).await;
    let trouble = ticket.fate.trouble;
    let failed = |what: &str| server.tell(&ticket.process.to_string(), &format!("{} -> {what}", ticket.label));
    let refused = match trouble {
        Some(Trouble::CutBefore) => return failed("cut before it arrived"),
        Some(Trouble::CrashBefore) => {
            failed("crash before it left");
            server.crash(ticket.process.replica).notify_one();
            return;
        }
        Some(Trouble::Conflict) => Some((409, "Conflict", json!({"name": "it"}))),
        Some(Trouble::TooMany) => Some((429, "TooManyRequests", json!({"retryAfterSeconds": 7}))),
        Some(Trouble::ServerError) => Some((500, "InternalError", json!({}))),
        Some(Trouble::Late) => {
            sleep(Duration::from_secs(40)).await;
            None
        }
        _ => None,
    };
    let answer = match refused {
        Some((code, reason, details)) => {
            failed(&format!("{code} (trouble)"));
            Answer::failure(code, reason, "trouble".into(), details)
        }
        None => server.commit(&ticket, &request),
    };
    match trouble {
        Some(Trouble::CutAfter) => return,
        Some(Trouble::CrashAfter) => return server.crash(ticket.process.replica).notify_one(),
        Some(Trouble::Silent) => sleep(FOREVER).await,
        _ => {}
    }
    sleep(ticket.fate.after).await;
    if !sender.is_closed() {
        server.deliver(&ticket, &request, &answer);
        let _ = sender.send(answer);
    }
}

fn reply(answer: Answer) -> Reply {
    let (content, text) = match &*answer.body {
        Value::String(text) => ("text/plain", text.clone()),
        body => ("application/json", body.to_string()),
    };
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = http::StatusCode::from_u16(answer.code).unwrap_or_default();
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content));
    reply
}

fn stream(lines: mpsc::UnboundedReceiver<Result<String, BoxError>>) -> Reply {
    let lines = futures::stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
    let frames = lines.map(|line| line.map(|line| Frame::data(Bytes::from(line + "\n"))));
    Response::new(StreamBody::new(frames).boxed_unsync())
}

/// A client for asking questions at the end, when there is no trouble any more.
pub(crate) fn quiet(server: &Server) -> Client {
    client(server, Process { replica: "one", number: u64::MAX })
}

/// For administrators, who have no trouble.
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const JSON: &str = "application/json";

pub(crate) fn exists(server: &Server, uri: &str) -> bool {
    let request = Request::new(Method::GET, uri, "", "", b"");
    server.world().store.handle(&request, "").code == 200
}
