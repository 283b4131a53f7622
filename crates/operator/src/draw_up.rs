//! From a profile and its options to a plan for this cluster.

#[cfg(test)]
mod tests;

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
