//! Observes the requests of a client: verb, path, code and duration of each, for metrics and for the log.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Method, Request, Response, Uri};
use tokio::time::Instant;
use tower::{Layer, Service};
use tracing::debug;

use crate::Class;

/// Is told of requests and watches. It must not wait for anything.
pub trait Observer: Send + Sync {
    fn answered(&self, request: &ObservedRequest<'_>);
    /// A watch failed with an error of this class, so many times in a row, and is started again.
    fn watch_restarted(&self, resource: &str, class: &Class, failures: usize);
}

/// Observes nothing.
impl Observer for () {
    fn answered(&self, _: &ObservedRequest<'_>) {}

    fn watch_restarted(&self, _: &str, _: &Class, _: usize) {}
}

/// A request that was answered, or that ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedRequest<'a> {
    /// As RBAC names it.
    pub verb: &'static str,
    pub path: &'a str,
    /// None if there was no answer.
    pub code: Option<u16>,
    /// Until the answer began.
    pub took: Duration,
}

/// The layer of a client that observes its requests.
#[derive(Clone)]
pub(crate) struct ObserveLayer(pub(crate) Arc<dyn Observer>);

impl<S> Layer<S> for ObserveLayer {
    type Service = ObservedService<S>;

    fn layer(&self, service: S) -> ObservedService<S> {
        ObservedService { service, observer: self.0.clone() }
    }
}

#[derive(Clone)]
pub(crate) struct ObservedService<S> {
    service: S,
    observer: Arc<dyn Observer>,
}

impl<S, B, R> Service<Request<B>> for ObservedService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
        let verb = verb(request.method(), request.uri());
        let mut open = OpenRequest { observer: self.observer.clone(), verb, path, start: Instant::now(), code: None };
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await;
            open.ended(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
            answer
        })
    }
}

/// A request on its way. When it is dropped, it was answered or given up.
struct OpenRequest {
    observer: Arc<dyn Observer>,
    verb: &'static str,
    path: String,
    start: Instant,
    code: Option<u16>,
}

impl OpenRequest {
    fn ended(&mut self, code: Option<u16>) {
        self.code = code;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let request =
            ObservedRequest { verb: self.verb, path: &self.path, code: self.code, took: self.start.elapsed() };
        let ObservedRequest { verb, path, code, took } = &request;
        debug!(verb, path, code = code.unwrap_or_default(), ?took, "request");
        self.observer.answered(&request);
    }
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.path)
    }
}

/// What RBAC calls a request.
fn verb(method: &Method, uri: &Uri) -> &'static str {
    let is_watch = |query: &str| query.split('&').any(|part| matches!(part, "watch=true" | "watch=1" | "watch"));
    let of_many = is_collection(uri.path());
    match *method {
        Method::GET if uri.query().is_some_and(is_watch) => "watch",
        Method::GET if of_many => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if of_many => "deletecollection",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// Whether a path is that of all objects of a kind.
fn is_collection(path: &str) -> bool {
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let resource = match segments.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return false,
    };
    match resource {
        ["namespaces", _, "status" | "finalize"] => false,
        ["namespaces", _, _] | [_] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kube::{
        Client,
        client::{Body, ClientBuilder},
    };
    use tower::{BoxError, service_fn};

    use super::*;

    #[test]
    fn requests_are_named_as_rbac_names_them() {
        let named = [
            ("GET", "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/x", "get"),
            ("GET", "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs", "list"),
            ("GET", "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs?watch=true&timeoutSeconds=18", "watch"),
            ("GET", "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs?limit=500", "list"),
            ("PUT", "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/x/status", "update"),
            ("GET", "/api/v1/namespaces/openshift-cnv/configmaps", "list"),
            ("GET", "/api/v1/namespaces/openshift-cnv/configmaps/x", "get"),
            ("GET", "/api/v1/namespaces", "list"),
            ("GET", "/api/v1/namespaces/openshift-cnv", "get"),
            ("GET", "/api/v1/namespaces/openshift-cnv/status", "get"),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "create"),
            ("PATCH", "/api/v1/nodes/n?fieldManager=m", "patch"),
            ("DELETE", "/api/v1/nodes/n", "delete"),
            ("DELETE", "/api/v1/nodes", "deletecollection"),
            ("GET", "/version", "get"),
            ("OPTIONS", "/", "other"),
        ];
        for (method, uri, expected) in named {
            assert_eq!(verb(&method.parse().unwrap(), &uri.parse().unwrap()), expected, "{method} {uri}");
        }
    }

    #[derive(Default)]
    struct Seen(Mutex<Vec<(String, Option<u16>, Duration)>>);

    impl Observer for Seen {
        fn answered(&self, request: &ObservedRequest<'_>) {
            let what = format!("{} {}", request.verb, request.path);
            self.0.lock().unwrap().push((what, request.code, request.took));
        }

        fn watch_restarted(&self, _: &str, _: &Class, _: usize) {}
    }

    /// An API server that refuses after a second what is under `/api/v1/slow`, and breaks connections under `/api/v1/broken`.
    fn client(seen: &Arc<Seen>) -> Client {
        let service = service_fn(|request: Request<Body>| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            match request.uri().path() {
                "/api/v1/broken" => Err(BoxError::from("reset")),
                path => {
                    let answer = Response::builder().status(if path == "/api/v1/slow" { 429 } else { 200 });
                    Ok(answer.body(Body::from(b"{}".to_vec()))?)
                }
            }
        });
        ClientBuilder::new(service, "default").with_layer(&ObserveLayer(seen.clone())).build()
    }

    #[tokio::test(start_paused = true)]
    async fn every_request_is_told_once_whatever_becomes_of_it() {
        let seen = Arc::new(Seen::default());
        let client = client(&seen);
        let get = async |path: &str| {
            let request = Request::get(path).body(Vec::new()).unwrap();
            client.request::<serde_json::Value>(request).await.is_ok()
        };
        assert!(get("/api/v1/nodes/n").await);
        assert!(!get("/api/v1/slow").await);
        assert!(!get("/api/v1/broken").await);
        let given_up = tokio::time::timeout(Duration::from_millis(300), get("/api/v1/nodes"));
        assert!(given_up.await.is_err());
        let told = |what: &str, code, millis| (what.to_owned(), code, Duration::from_millis(millis));
        assert_eq!(
            *seen.0.lock().unwrap(),
            [
                told("get /api/v1/nodes/n", Some(200), 1000),
                told("list /api/v1/slow", Some(429), 1000),
                told("list /api/v1/broken", None, 1000),
                told("list /api/v1/nodes", None, 300),
            ]
        );
    }
}
