//! From a profile and its options to a plan for this cluster.

#[cfg(test)]
mod tests;

use std::time::Duration;

use advisor::{
    Draft, Facts, InvalidOptions, Plan, Planner, Preview, Profile, ProfileInfo, profile, writing::MAX_ATTEMPTS,
};
use api::virt_platform_config::Options;
use futures::future::{join, try_join_all};
use kube_io::{ApiServer, Class, RequestError};
use tokio::time::{Instant, sleep};

use crate::{fetch::fetch, preview::preview};

/// How long to wait for a kind that was just defined, in all and between two attempts.
const INITIALIZING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    InvalidOptions(#[from] InvalidOptions),
    /// Something that the plan needs is not installed; the text names it and says what to do.
    #[error("{0}")]
    MissingPrerequisites(String),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl PlanError {
    pub fn reason(&self) -> &'static str {
        match self {
            PlanError::InvalidOptions(error) => error.reason(),
            PlanError::MissingPrerequisites(_) => "PrerequisiteFailed",
            PlanError::Request(_) => "RequestFailed",
        }
    }
}

/// Makes the plan and has the API server preview it. Writes nothing.
pub async fn make_plan(
    api_server: &ApiServer,
    profile: &dyn Profile,
    options: Option<&Options>,
) -> Result<Plan, PlanError> {
    make_plan_by(api_server, profile.about(), profile.resolve(options)?.as_ref()).await
}

/// The same for any planner, for example one that restores.
pub async fn make_plan_by(
    api_server: &ApiServer,
    about: &'static ProfileInfo,
    planner: &dyn Planner,
) -> Result<Plan, PlanError> {
    make_plan_from(api_server, about, planner, Facts::default(), None).await.plan
}

/// A plan or the reason for having none, and the facts that were read for it.
pub(crate) struct MadePlan {
    pub(crate) facts: Option<Facts>,
    pub(crate) plan: Result<Plan, PlanError>,
}

/// Makes a plan from `known` and from what is read besides. `guess` are the facts that this is expected to give: they are
/// previewed meanwhile, and the previews count if the guess was right.
pub(crate) async fn make_plan_from(
    api_server: &ApiServer,
    about: &'static ProfileInfo,
    planner: &dyn Planner,
    mut known: Facts,
    mut guess: Option<Facts>,
) -> MadePlan {
    let (mut attempt, start) = (1, Instant::now());
    loop {
        let made = make_plan_once(api_server, about, planner, known, guess).await;
        match &made.plan {
            // A target has changed meanwhile, and what the plan wants may depend on it. So everything is read again.
            Err(PlanError::Request(error)) if error.class == Class::Conflict && attempt < MAX_ATTEMPTS => attempt += 1,
            Err(PlanError::Request(error))
                if error.class == Class::Initializing && start.elapsed() + PAUSE <= INITIALIZING =>
            {
                sleep(PAUSE).await;
            }
            _ => return made,
        }
        (known, guess) = (Facts::default(), None);
    }
}

async fn make_plan_once(
    api_server: &ApiServer,
    about: &'static ProfileInfo,
    planner: &dyn Planner,
    known: Facts,
    guess: Option<Facts>,
) -> MadePlan {
    let ahead = preview_ahead(api_server, about, planner, guess.as_ref());
    let (facts, ahead) = join(fetch(api_server, planner, known), ahead).await;
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return MadePlan { facts: None, plan: Err(error.into()) },
    };
    if let Some(missing) = profile::missing(&planner.requirements(&facts), &facts) {
        return MadePlan { facts: Some(facts), plan: Err(PlanError::MissingPrerequisites(missing)) };
    }
    let draft = planner.plan(&facts);
    let previews = match ahead.filter(|_| guess.as_ref() == Some(&facts)) {
        Some(previews) => Ok(previews),
        None => preview_all(api_server, about, &draft, &facts).await,
    };
    let plan = previews.map(|previews| Plan::assemble(about, draft, previews, facts.clone()));
    MadePlan { facts: Some(facts), plan: plan.map_err(PlanError::from) }
}

/// Previews the plan that follows from the guessed facts, if they are complete.
async fn preview_ahead(
    api_server: &ApiServer,
    about: &ProfileInfo,
    planner: &dyn Planner,
    guess: Option<&Facts>,
) -> Option<Vec<Preview>> {
    let is_complete = |facts: &&Facts| {
        facts.unanswered(planner.wants(facts)).is_empty()
            && profile::missing(&planner.requirements(facts), facts).is_none()
    };
    let facts = guess.filter(is_complete)?;
    preview_all(api_server, about, &planner.plan(facts), facts).await.ok()
}

async fn preview_all(
    api_server: &ApiServer,
    about: &ProfileInfo,
    draft: &Draft,
    facts: &Facts,
) -> Result<Vec<Preview>, RequestError> {
    try_join_all(draft.intents.iter().map(|intent| preview(api_server, about, intent, facts))).await
}
