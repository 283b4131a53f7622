use std::sync::atomic::{AtomicUsize, Ordering};

use axum::routing::get;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    net::TcpStream,
    time::Instant,
};

use super::*;
use crate::{
    accept::{BUFFER, serve},
    authorize::tests::{Server as Reviewer, authorizer},
};

const LIMITS: Limits = Limits::STRANGERS;

const GET_METRICS: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

#[test]
fn a_token_is_what_follows_bearer() {
    for (value, expected) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("Basic abc", None),
        ("abc", None),
        ("Bearer", None),
        ("Bearer ", Some("")),
    ] {
        assert_eq!(bearer(&HeaderValue::from_static(value)), expected, "{value}");
    }
}

#[tokio::test]
async fn plain_http_is_for_loopback_only() {
    let routes = || Router::new().route("/metrics", get(|| async { "x 1\n" }));
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = Server::bind(address.parse().unwrap(), routes(), Protection::Loopback).await;
        assert!(matches!(refused, Err(ServeError::NotLoopback(_))), "{address}");
    }
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), routes(), Protection::Loopback).await.unwrap();
    let address = server.address().unwrap();
    let running = tokio::spawn(server.run());
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("x 1\n"), "{answer}");
    running.abort();
}

/// Reads one answer, whose body is a line.
async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    while !answer.split_once("\r\n\r\n").is_some_and(|(_, body)| body.ends_with('\n')) {
        let byte = stream.read_u8().await.unwrap();
        answer.push(char::from(byte));
    }
    answer
}

#[tokio::test]
async fn one_connection_too_many_waits_until_another_one_ends() {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = answered.clone();
    let answers = move || {
        count.fetch_add(1, Ordering::Relaxed);
        std::future::ready("x 1\n")
    };
    let routes = Router::new().route("/metrics", get(answers));
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), routes, Protection::Loopback).await.unwrap();
    let address = server.address().unwrap();
    let running = tokio::spawn(server.run());
    let mut served = Vec::new();
    for _ in 0..LIMITS.connections {
        served.push(TcpStream::connect(address).await.unwrap());
    }
    let ask_all = async |served: &mut Vec<TcpStream>| {
        for stream in served {
            stream.write_all(GET_METRICS).await.unwrap();
            answer(stream).await;
        }
    };
    ask_all(&mut served).await;
    let mut waiting = TcpStream::connect(address).await.unwrap();
    waiting.write_all(GET_METRICS).await.unwrap();
    ask_all(&mut served).await;
    assert_eq!(answered.load(Ordering::Relaxed), 2 * LIMITS.connections, "there is no room for one more");
    served.pop();
    assert!(answer(&mut waiting).await.starts_with("HTTP/1.1 200 OK"));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn whoever_says_nothing_goes_soon_and_whoever_has_asked_may_stay() {
    let (first, idle) = (LIMITS.first_request, LIMITS.idle.unwrap());
    for (said, seconds) in [(&b""[..], first), (b"GET /metr", first), (GET_METRICS, idle)] {
        let (mut client, stream) = duplex(4096);
        client.write_all(said).await.unwrap();
        let start = Instant::now();
        let routes = Router::new().route("/metrics", get(|| async { "x 1\n" }));
        serve(stream, Peer(None), with_fallback(routes), LIMITS).await;
        assert_eq!(start.elapsed().as_secs(), seconds.as_secs(), "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_api_server_closes_its_connections_itself() {
    let (mut client, stream) = duplex(4096);
    client.write_all(GET_METRICS).await.unwrap();
    let routes = Router::new().route("/metrics", get(|| async { "x 1\n" }));
    let connection = serve(stream, Peer(None), routes, Limits::API_SERVER);
    let silent = tokio::time::timeout(2 * LIMITS.longest, connection).await;
    assert!(silent.is_err(), "it is still open");
}

/// Neither a path that there is not nor a head without end keeps a place: nobody is asked who they are there.
#[tokio::test(start_paused = true)]
async fn strangers_do_not_keep_a_place() {
    let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(2 * BUFFER));
    for (said, code) in [("GET /secrets HTTP/1.1\r\nHost: x\r\n\r\n", 404), (endless.as_str(), 431)] {
        let (mut client, stream) = duplex(4 * BUFFER);
        client.write_all(said.as_bytes()).await.unwrap();
        let routes = Router::new().route("/metrics", get(|| async { "x 1\n" }));
        let start = Instant::now();
        serve(stream, Peer(None), with_fallback(routes), LIMITS).await;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
        assert!(start.elapsed() < LIMITS.first_request, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_is_refused_is_disconnected() {
    for (token, is_down, code) in [("", false, 401), ("token-of-eve", false, 403), ("token-of-eve", true, 500)] {
        let reviewer = Reviewer::default();
        reviewer.is_down.store(is_down, Ordering::Relaxed);
        let guard = from_fn_with_state(Arc::new(authorizer(&reviewer)), authorize::<Reviewer>);
        let routes = Router::new().route("/metrics", get(|| async { "x 1\n" })).route_layer(guard);
        let (mut client, stream) = duplex(4096);
        let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let start = Instant::now();
        serve(stream, Peer(None), routes, LIMITS).await;
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
        assert!(answer.contains("connection: close\r\n") && start.elapsed() < LIMITS.first_request, "{answer}");
    }
}
