//! From a profile and its options to a plan for this cluster.

use std::time::Duration;

use advisor::{About, Draft, Facts, InvalidOptions, Plan, Planner, Preview, Profile, profile, writing::ATTEMPTS};
use api::virt_platform_config::Options;
use futures::future::{join, try_join_all};
use tokio::time::{Instant, sleep};

use crate::{Class, Kubernetes, RequestError, fetch::fetch, preview::preview};

/// How long a kind that was just defined is waited for, in all, and how long between two attempts.
const INITIALIZING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrawUpError {
    #[error(transparent)]
    InvalidOptions(#[from] InvalidOptions),
    /// Something that the plan needs is not installed; the text names it and says what to do.
    #[error("{0}")]
    MissingPrerequisites(String),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl DrawUpError {
    pub fn reason(&self) -> &'static str {
        match self {
            DrawUpError::InvalidOptions(error) => error.reason(),
            DrawUpError::MissingPrerequisites(_) => "PrerequisiteFailed",
            DrawUpError::Request(_) => "RequestFailed",
        }
    }
}

/// Draws up the plan and has the API server preview it. Writes nothing.
pub async fn draw_up(
    kubernetes: &Kubernetes,
    profile: &dyn Profile,
    options: Option<&Options>,
) -> Result<Plan, DrawUpError> {
    draw_up_from(kubernetes, profile, options, Facts::default(), None).await.plan
}

/// What came of it, and what was found out on the way, as far as it went.
pub(crate) struct Drawn {
    pub(crate) facts: Option<Facts>,
    pub(crate) plan: Result<Plan, DrawUpError>,
}

/// The plan that follows from what is known and what is asked for besides. If what is guessed to come of that does, it has
/// been previewed by then.
pub(crate) async fn draw_up_from(
    kubernetes: &Kubernetes,
    profile: &dyn Profile,
    options: Option<&Options>,
    mut known: Facts,
    mut guess: Option<Facts>,
) -> Drawn {
    let planner = match profile.resolve(options) {
        Ok(planner) => planner,
        Err(error) => return Drawn { facts: None, plan: Err(error.into()) },
    };
    let (mut attempt, start) = (1, Instant::now());
    loop {
        let drawn = draw_up_once(kubernetes, profile, planner.as_ref(), known, guess).await;
        match &drawn.plan {
            // A target moved meanwhile. What is wanted of it may follow from what it was, so everything is looked at again.
            Err(DrawUpError::Request(error)) if error.class == Class::Conflict && attempt < ATTEMPTS => attempt += 1,
            Err(DrawUpError::Request(error))
                if error.class == Class::Initializing && start.elapsed() + PAUSE <= INITIALIZING =>
            {
                sleep(PAUSE).await;
            }
            _ => return drawn,
        }
        (known, guess) = (Facts::default(), None);
    }
}

async fn draw_up_once(
    kubernetes: &Kubernetes,
    profile: &dyn Profile,
    planner: &dyn Planner,
    known: Facts,
    guess: Option<Facts>,
) -> Drawn {
    let ahead = preview_ahead(kubernetes, profile.about(), planner, guess.as_ref());
    let (facts, ahead) = join(fetch(kubernetes, planner, known), ahead).await;
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return Drawn { facts: None, plan: Err(error.into()) },
    };
    if let Some(missing) = profile::missing(&planner.requirements(&facts), &facts) {
        return Drawn { facts: Some(facts), plan: Err(DrawUpError::MissingPrerequisites(missing)) };
    }
    let draft = planner.plan(&facts);
    let previews = match ahead.filter(|_| guess.as_ref() == Some(&facts)) {
        Some(previews) => Ok(previews),
        None => preview_all(kubernetes, profile.about(), &draft, &facts).await,
    };
    let plan = previews.map(|previews| Plan::assemble(profile.about(), draft, previews, facts.clone()));
    Drawn { facts: Some(facts), plan: plan.map_err(DrawUpError::from) }
}

/// Previews what would be planned if nothing has changed since it was last looked at. Whether it has is for others to find out.
async fn preview_ahead(
    kubernetes: &Kubernetes,
    about: &About,
    planner: &dyn Planner,
    guess: Option<&Facts>,
) -> Option<Vec<Preview>> {
    let is_complete = |facts: &&Facts| {
        facts.unanswered(planner.wants(facts)).is_empty()
            && profile::missing(&planner.requirements(facts), facts).is_none()
    };
    let facts = guess.filter(is_complete)?;
    preview_all(kubernetes, about, &planner.plan(facts), facts).await.ok()
}

async fn preview_all(
    kubernetes: &Kubernetes,
    about: &About,
    draft: &Draft,
    facts: &Facts,
) -> Result<Vec<Preview>, RequestError> {
    try_join_all(draft.intents.iter().map(|intent| preview(kubernetes, about, intent, facts))).await
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use advisor::profiles;
    use http::{Method, Request, Response};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;

    const INITIALIZES: &str = "storage is (re)initializing";

    /// An API server without objects whose first answers to requests of one kind are unhappy; and how many it gave.
    fn server(unhappy: usize, method: Method, code: u16, message: &'static str) -> (Kubernetes, Arc<AtomicUsize>) {
        let given = Arc::new(AtomicUsize::new(0));
        let count = given.clone();
        let answer = move |request: Request<Body>| {
            let is_unhappy = request.method() == method && count.load(Ordering::SeqCst) < unhappy;
            let (code, body) = match (is_unhappy, request.method()) {
                (true, _) => {
                    count.fetch_add(1, Ordering::SeqCst);
                    (code, failure(code, message))
                }
                (false, &Method::GET) => (404, failure(404, "not found")),
                (false, _) => (200, json!({"kind": "ConfigMap", "metadata": {"name": "example-config"}})),
            };
            let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
            async move { response }
        };
        (Kubernetes::over(Client::new(service_fn(answer), "default")), given)
    }

    fn failure(code: u16, message: &str) -> Value {
        json!({"kind": "Status", "status": "Failure", "code": code, "message": message, "details": {"name": "it"}})
    }

    async fn draw(kubernetes: &Kubernetes) -> Result<Plan, DrawUpError> {
        draw_up(kubernetes, profiles::find("example-profile").unwrap(), None).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_was_just_defined_is_waited_for_a_moment() {
        for (method, code) in [(Method::GET, 429), (Method::GET, 503), (Method::PATCH, 429)] {
            let (kubernetes, given) = server(4, method.clone(), code, INITIALIZES);
            let start = Instant::now();
            let plan = draw(&kubernetes).await;
            assert_eq!(plan.map(|plan| plan.items.len()), Ok(1), "{method} {code}");
            assert_eq!((given.load(Ordering::SeqCst), start.elapsed()), (4, 4 * PAUSE), "{method} {code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_is_never_served_is_given_up_on_with_the_words_of_the_server() {
        let (kubernetes, given) = server(usize::MAX, Method::GET, 429, INITIALIZES);
        let start = Instant::now();
        let Err(DrawUpError::Request(error)) = draw(&kubernetes).await else { panic!("there is no plan") };
        assert_eq!((error.class, error.message.as_str()), (Class::Initializing, INITIALIZES));
        assert!(start.elapsed() <= INITIALIZING, "{:?}", start.elapsed());
        assert_eq!(given.load(Ordering::SeqCst), 21);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_else_is_waited_for() {
        for (code, message) in [(429, "too many requests"), (503, "unavailable"), (500, INITIALIZES), (403, "no")] {
            let (kubernetes, given) = server(usize::MAX, Method::GET, code, message);
            assert!(matches!(draw(&kubernetes).await, Err(DrawUpError::Request(_))), "{code} {message}");
            assert_eq!(given.load(Ordering::SeqCst), 1, "{code} {message}");
        }
    }
}
