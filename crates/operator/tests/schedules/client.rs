//! A kube client of the API model, with latency and faults on the way. What a process has sent is carried out even if the
//! process dies meanwhile.

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
    cluster::{Process, SentRequest, Server},
    fault_plan::Fault,
    watches,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Longer than the time limit of every request.
const FOREVER: Duration = Duration::from_secs(200);

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
    let sent = server.send(process, &request);
    if request.is_watch() {
        sleep(sent.delivery.before).await;
        return match watches::open(&server, &sent, &request) {
            Ok(lines) => Ok(stream(lines)),
            Err(answer) => Ok(reply(answer)),
        };
    }
    let (answer, answered) = oneshot::channel();
    tokio::spawn(carry_out(server, sent, request, answer));
    match answered.await {
        Ok(answer) => Ok(reply(answer)),
        Err(_) => Err("the connection was cut".into()),
    }
}

async fn carry_out(server: Server, sent: SentRequest, request: Request, sender: oneshot::Sender<Answer>) {
    sleep(sent.delivery.before).await;
    let fault = sent.delivery.fault;
    let failed = |what: &str| server.log(&sent.process.to_string(), &format!("{} -> {what}", sent.label));
    let refused = match fault {
        Some(Fault::CutBefore) => return failed("cut before it arrived"),
        Some(Fault::CrashBefore) => {
            failed("crash before it left");
            server.crash(sent.process.replica).notify_one();
            return;
        }
        Some(Fault::Conflict) => Some((409, "Conflict", json!({"name": "it"}))),
        Some(Fault::TooMany) => Some((429, "TooManyRequests", json!({"retryAfterSeconds": 7}))),
        Some(Fault::ServerError) => Some((500, "InternalError", json!({}))),
        Some(Fault::Late) => {
            sleep(Duration::from_secs(40)).await;
            None
        }
        _ => None,
    };
    let answer = match refused {
        Some((code, reason, details)) => {
            failed(&format!("{code} (injected)"));
            Answer::failure(code, reason, "injected".into(), details)
        }
        None => server.commit(&sent, &request),
    };
    match fault {
        Some(Fault::CutAfter) => return,
        Some(Fault::CrashAfter) => return server.crash(sent.process.replica).notify_one(),
        Some(Fault::Silent) => sleep(FOREVER).await,
        _ => {}
    }
    sleep(sent.delivery.after).await;
    if !sender.is_closed() {
        server.deliver(&sent, &request, &answer);
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

/// A client for the final checks, when there are no faults any more.
pub(crate) fn quiet(server: &Server) -> Client {
    client(server, Process { replica: "one", number: u64::MAX })
}

/// Content types.
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const JSON: &str = "application/json";

pub(crate) fn exists(server: &Server, uri: &str) -> bool {
    let request = Request::new(Method::GET, uri, "", "", b"");
    server.cluster().store.handle(&request, "").code == 200
}
