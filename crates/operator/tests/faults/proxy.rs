//! An HTTP proxy on loopback between the operator and the API server, which injects the faults.
//!
//! The operator talks plain HTTP to the proxy; the proxy uses TLS and the credentials of the operator. Watches are streamed.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::{StreamExt, TryStreamExt};
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use kube::{Client, client::Body};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::{JoinHandle, JoinSet},
};

use crate::{
    fault::{Fault, Key, label},
    record::{Answer, Hold, Record, gone},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("cut")]
struct Cut;

#[derive(Clone)]
pub(crate) struct Proxy {
    behind: Client,
    record: Arc<Mutex<Record>>,
    crash: Arc<Notify>,
    /// Counts how often all watches were cut.
    cuts: watch::Sender<usize>,
}

/// The address for one operator. Its connections end with the value, like those of a process that died.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A request that is being answered. If it is dropped before its end, the operator gave it up.
struct Waiting<'a> {
    proxy: &'a Proxy,
    key: Option<Key>,
}

impl Waiting<'_> {
    fn over(mut self) {
        self.key = None;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.proxy.record().abandoned.extend(self.key.take());
    }
}

impl Proxy {
    pub(crate) fn new(behind: Client) -> Proxy {
        Proxy { behind, record: Arc::default(), crash: Arc::default(), cuts: watch::channel(0).0 }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the operator has to end.
    pub(crate) async fn crash(&self) {
        self.crash.notified().await;
    }

    pub(crate) async fn listen(&self) -> Listener {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = self.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let proxy = proxy.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let proxy = proxy.clone();
                        async move { proxy.handle(request).await }
                    });
                    // A connection that was cut ends with an error.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Listener { address, task }
    }

    async fn handle(&self, request: Request<Incoming>) -> Result<Reply, Cut> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
        let mut uri = parts.uri.path_and_query().ok_or(Cut)?.to_string();
        // A deletion has `dryRun` in its body. The audit log has no bodies: put it in the query.
        let preview: &[u8] = br#""dryRun":["All"]"#;
        let is_preview = body.windows(preview.len()).any(|part| part == preview);
        if parts.method == Method::DELETE && is_preview && !uri.contains("dryRun=") {
            uri = format!("{}?dryRun=All", uri.trim_end_matches('?'));
        }
        let uri: Uri = uri.parse().map_err(|_| Cut)?;
        let mut forward = Request::builder().method(&parts.method).uri(uri.clone());
        for name in [header::CONTENT_TYPE, header::ACCEPT] {
            if let Some(value) = parts.headers.get(&name) {
                forward = forward.header(name, value);
            }
        }
        let forward = forward.body(Body::from(body.to_vec())).map_err(|_| Cut)?;
        let Some(label) = label(&parts.method, &uri) else { return self.stream(forward).await };
        let (held, (key, fault)) = {
            let mut record = self.record();
            (record.held(&label), record.note(label, &parts.method, &uri, &body))
        };
        let waiting = Waiting { proxy: self, key: Some(key) };
        let reply = self.answer(fault, held, forward).await;
        waiting.over();
        reply
    }

    async fn answer(&self, fault: Option<Fault>, held: Option<Hold>, forward: Request<Body>) -> Result<Reply, Cut> {
        let (method, uri) = (forward.method().clone(), forward.uri().clone());
        if let Some(hold) = held {
            let _ = hold.arrived.send(());
            let _ = hold.released.await;
        }
        match fault {
            None => Ok(reply(self.forward(forward).await?)),
            Some(Fault::CrashBefore) => self.die().await,
            Some(Fault::CrashAfter | Fault::TimeTravel) => {
                self.forward(forward).await?;
                self.die().await
            }
            Some(Fault::CutBefore) => Err(Cut),
            Some(Fault::CutAfter) => {
                self.forward(forward).await?;
                Err(Cut)
            }
            Some(Fault::Stale) => {
                let now = self.forward(forward).await?;
                let older = self.record().older(&uri, &now);
                Ok(reply(older.unwrap_or(now)))
            }
            Some(Fault::WatchesCut) => {
                let answer = self.forward(forward).await?;
                self.cuts.send_modify(|cuts| *cuts += 1);
                Ok(reply(answer))
            }
            Some(fault) => {
                if fault == Fault::Conflict && method == Method::POST {
                    self.forward(forward).await?;
                }
                let (code, body) = fault.answer().ok_or(Cut)?;
                Ok(reply(Answer { code, body: body.into() }))
            }
        }
    }

    /// Ends the operator, and never answers.
    async fn die(&self) -> Result<Reply, Cut> {
        self.crash.notify_one();
        std::future::pending().await
    }

    async fn forward(&self, request: Request<Body>) -> Result<Answer, Cut> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let answer = self.ask(request).await?;
        let (parts, body) = answer.into_parts();
        let answer = Answer { code: parts.status, body: body.collect().await.map_err(|_| Cut)?.to_bytes() };
        if method == Method::GET {
            self.record().remember(&uri, &answer);
        }
        Ok(answer)
    }

    async fn ask(&self, request: Request<Body>) -> Result<Response<Body>, Cut> {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = self.behind.send(request).await.map_err(|_| Cut)?;
        if answer.status() == StatusCode::FORBIDDEN {
            self.record().forbidden.push(what);
        }
        Ok(answer)
    }

    /// Streams an answer until all watches are cut.
    async fn stream(&self, request: Request<Body>) -> Result<Reply, Cut> {
        if self.record().is_expired(request.uri()) {
            return Ok(reply(gone()));
        }
        let mut cuts = self.cuts.subscribe();
        let answer = self.ask(request).await?;
        let (parts, body) = answer.into_parts();
        let end = async move {
            let _ = cuts.changed().await;
        };
        let chunks = body.into_data_stream().take_until(Box::pin(end));
        let body = StreamBody::new(chunks.map_ok(Frame::data).map_err(BoxError::from));
        Ok(finish(parts.status, body.boxed_unsync()))
    }

    /// Ends all watches. Resuming one is answered with 410 until a list.
    pub(crate) fn expire(&self) {
        self.record().expire();
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Reads the current state, for later stale answers.
    pub(crate) async fn preload(&self, uris: &[String]) {
        for uri in uris {
            let request = Request::get(uri).body(Body::empty()).unwrap();
            let _ = self.forward(request).await;
        }
    }
}

fn reply(answer: Answer) -> Reply {
    let body = Full::new(answer.body).map_err(|never| match never {}).boxed_unsync();
    finish(answer.code, body)
}

fn finish(code: StatusCode, body: UnsyncBoxBody<Bytes, BoxError>) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if code == StatusCode::TOO_MANY_REQUESTS {
        reply.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    reply
}
