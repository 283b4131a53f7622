use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::*;

/// An API server that knows the tokens `token-of-<user>`. Users whose names begin with `reader` may read the metrics, and `admin` may
/// do everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    pub(crate) is_down: Arc<AtomicBool>,
    token_reviews: Arc<AtomicUsize>,
    access_reviews: Arc<AtomicUsize>,
}

impl Server {
    fn answer<T>(&self, count: &AtomicUsize, answer: T) -> Result<T, String> {
        count.fetch_add(1, Ordering::Relaxed);
        if self.is_down.load(Ordering::Relaxed) { Err("no answer".into()) } else { Ok(answer) }
    }

    fn counts(&self) -> [usize; 2] {
        [&self.token_reviews, &self.access_reviews].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Reviews for Server {
    async fn token(&self, token: &str) -> Result<Option<User>, String> {
        let name = token.strip_prefix("token-of-");
        let user = name.map(|name| User { name: name.into(), review: json!({"user": name}) });
        // Others get their turn.
        tokio::task::yield_now().await;
        self.answer(&self.token_reviews, user)
    }

    async fn access(&self, user: &User, path: &str, verb: &str) -> Result<bool, String> {
        let reads = user.name.starts_with("reader") && (path, verb) == ("/metrics", "get");
        self.answer(&self.access_reviews, user.name == "admin" || reads)
    }
}

pub(crate) fn authorizer(server: &Server) -> Authorizer<Server> {
    Authorizer::new(server.clone(), vec![PROMETHEUS.into()])
}

fn asked<'a>(peer: Option<&'a str>, token: Option<&'a str>, verb: &'a str, path: &'a str) -> Asked<'a> {
    Asked { peer, token, path, verb }
}

#[tokio::test]
async fn a_known_certificate_reads_metrics_and_everything_else_needs_a_token_with_the_right() {
    let denied = |user: &str| Authorization::Denied(user.into());
    let long = "x".repeat(LONGEST_TOKEN + 1);
    let cases = [
        ("prometheus", Some(PROMETHEUS), None, "get", "/metrics", Authorization::Allowed),
        ("prometheus changes the log", Some(PROMETHEUS), None, "put", "/loglevel", Authorization::Unauthenticated),
        ("prometheus writes", Some(PROMETHEUS), None, "post", "/metrics", Authorization::Unauthenticated),
        ("another certificate", Some("system:node:n"), None, "get", "/metrics", Authorization::Unauthenticated),
        (
            "almost the name",
            Some("system:serviceaccount:openshift-monitoring"),
            None,
            "get",
            "/metrics",
            Authorization::Unauthenticated,
        ),
        ("nobody", None, None, "get", "/metrics", Authorization::Unauthenticated),
        ("an empty token", None, Some(""), "get", "/metrics", Authorization::Unauthenticated),
        ("a wrong token", None, Some("garbage"), "get", "/metrics", Authorization::Unauthenticated),
        ("no token at all", None, Some(long.as_str()), "get", "/metrics", Authorization::Unauthenticated),
        ("a reader", None, Some("token-of-reader"), "get", "/metrics", Authorization::Allowed),
        (
            "another certificate and a token",
            Some("x"),
            Some("token-of-reader"),
            "get",
            "/metrics",
            Authorization::Allowed,
        ),
        ("a reader changes the log", None, Some("token-of-reader"), "put", "/loglevel", denied("reader")),
        ("without the right", None, Some("token-of-eve"), "get", "/metrics", denied("eve")),
        ("an admin", None, Some("token-of-admin"), "put", "/loglevel", Authorization::Allowed),
    ];
    for (case, peer, token, verb, path, expected) in cases {
        let authorization = authorizer(&Server::default()).decide(asked(peer, token, verb, path)).await;
        assert_eq!(authorization, expected, "{case}");
    }
}

#[tokio::test]
async fn a_certificate_costs_no_request_and_counts_while_the_api_server_is_away() {
    let server = Server::default();
    server.is_down.store(true, Ordering::Relaxed);
    let authorizer = authorizer(&server);
    let authorization = authorizer.decide(asked(Some(PROMETHEUS), None, "get", "/metrics")).await;
    assert_eq!((authorization, server.counts()), (Authorization::Allowed, [0, 0]));
}

/// Seconds, and how many reviews of tokens and of rights were made by then.
#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_their_time_and_failures_are_not() {
    type Row = (u64, [usize; 2]);
    let cases: [(&str, &[Row]); 3] = [
        ("token-of-reader", &[(0, [1, 1]), (59, [1, 1]), (61, [2, 1]), (299, [3, 1]), (302, [3, 2])]),
        ("token-of-eve", &[(0, [1, 1]), (29, [1, 1]), (31, [1, 2]), (62, [2, 3])]),
        ("garbage", &[(0, [1, 0]), (59, [1, 0]), (61, [2, 0])]),
    ];
    for (token, times) in cases {
        let server = Server::default();
        let authorizer = authorizer(&server);
        let mut now = 0;
        for (second, expected) in times {
            tokio::time::advance(Duration::from_secs(second - now)).await;
            now = *second;
            authorizer.decide(asked(None, Some(token), "get", "/metrics")).await;
            assert_eq!(server.counts(), *expected, "{token} after {second} s");
        }
    }
    let server = Server::default();
    let authorizer = authorizer(&server);
    let decide = async || authorizer.decide(asked(None, Some("token-of-reader"), "get", "/metrics")).await;
    server.is_down.store(true, Ordering::Relaxed);
    assert_eq!(decide().await, Authorization::Failed("no answer".into()));
    server.is_down.store(false, Ordering::Relaxed);
    assert_eq!(decide().await, Authorization::Allowed, "at once");
    server.is_down.store(true, Ordering::Relaxed);
    assert_eq!(decide().await, Authorization::Allowed, "what is known still counts");
}

#[tokio::test]
async fn strangers_push_nobody_out_of_the_cache() {
    let server = Server::default();
    let authorizer = authorizer(&server);
    let reader = asked(None, Some("token-of-reader"), "get", "/metrics");
    let (a, b, c) = tokio::join!(authorizer.decide(reader), authorizer.decide(reader), authorizer.decide(reader));
    assert_eq!([a, b, c], [Authorization::Allowed, Authorization::Allowed, Authorization::Allowed]);
    let [tokens, _] = server.counts();
    assert!(tokens <= AT_ONCE, "{tokens}");
    let before = server.counts();
    for number in 0..2 * ENTRIES {
        let token = format!("guess-{number}");
        let authorization = authorizer.decide(asked(None, Some(&token), "get", "/metrics")).await;
        assert_eq!(authorization, Authorization::Unauthenticated);
    }
    assert_eq!(authorizer.decide(reader).await, Authorization::Allowed);
    assert_eq!(server.counts(), [before[0] + 2 * ENTRIES, before[1]], "the reader was not reviewed again");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_once_in_a_while() {
    let authorizer = authorizer(&Server::default());
    let told = |failure: &str| authorizer.is_new(failure);
    assert_eq!(
        [told("no answer"), told("no answer"), told("forbidden"), told("no answer")],
        [true, false, true, false]
    );
    tokio::time::advance(TOLD).await;
    assert!(told("no answer"));
}

#[test]
fn the_page_about_metrics_tells_how_long_answers_are_kept() {
    let words = |duration: Duration| match duration.as_secs() {
        30 => "30 seconds",
        60 => "a minute",
        300 => "five minutes",
        other => panic!("{other} s: write them on the page, and here"),
    };
    let [token, allowed, denied] = [TOKEN, ALLOWED, DENIED].map(words);
    let expected = format!("who has it for {token}, that they may for {allowed}, that they may not for {denied}.");
    let page = include_str!("../../../../docs/metrics.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&expected), "{expected}");
}
