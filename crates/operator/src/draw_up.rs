//! From a profile and its options to a plan for this cluster.

use advisor::{Facts, InvalidOptions, Plan, Planner, Profile, profile, writing::ATTEMPTS};
use api::virt_platform_config::Options;
use futures::future::try_join_all;

use crate::{Class, Kubernetes, RequestError, fetch::fetch, preview::preview};

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
    let planner = profile.resolve(options)?;
    let mut attempt = 1;
    loop {
        match draw_up_once(kubernetes, profile, planner.as_ref()).await {
            // A target moved meanwhile. What is wanted of it may follow from what it was, so everything is looked at again.
            Err(DrawUpError::Request(error)) if error.class == Class::Conflict && attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

async fn draw_up_once(
    kubernetes: &Kubernetes,
    profile: &dyn Profile,
    planner: &dyn Planner,
) -> Result<Plan, DrawUpError> {
    let facts = fetch(kubernetes, planner, Facts::default()).await?;
    draw_up_from(kubernetes, profile, planner, facts).await
}

/// The plan that follows from what was found.
pub(crate) async fn draw_up_from(
    kubernetes: &Kubernetes,
    profile: &dyn Profile,
    planner: &dyn Planner,
    facts: Facts,
) -> Result<Plan, DrawUpError> {
    if let Some(missing) = profile::missing(&planner.requirements(&facts), &facts) {
        return Err(DrawUpError::MissingPrerequisites(missing));
    }
    let draft = planner.plan(&facts);
    let previews = try_join_all(draft.intents.iter().map(|intent| preview(kubernetes, intent, &facts))).await?;
    Ok(Plan::assemble(profile.about(), draft, previews, facts))
}
