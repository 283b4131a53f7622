//! The plan of a configuration, made from what its reconciler knows, or a lasting reason for having none.

use advisor::{Facts, Plan, Refusal, machine::PlanFailure, restore};
use api::{VirtPlatformConfig, virt_platform_config::Phase};
use futures::{FutureExt, future::BoxFuture};
use kube_io::{Class, RequestError};

use crate::{
    PlanError,
    make_plan::{MadePlan, make_plan_from},
    reconciler::{REPORTED_FAILURES, Reconciler},
    refusal,
};

impl Reconciler {
    /// Makes a plan from `facts`, or else from what the cluster says now. Only lists that a watch keeps are not read again.
    pub(crate) fn make_plan(
        &self,
        config: Option<&VirtPlatformConfig>,
        facts: Option<Facts>,
    ) -> BoxFuture<'static, MadePlan> {
        let (api_server, profile) = (self.api_server.clone(), self.profile);
        let planner =
            config.map(|config| restore::planner(profile, &config.spec)).unwrap_or_else(|| profile.resolve(None));
        let guess = facts.is_none().then(|| self.known.facts.facts().clone());
        let known = facts.unwrap_or_else(|| self.known.current_facts(&self.queue));
        async move {
            match planner {
                Ok(planner) => make_plan_from(&api_server, profile.about(), planner.as_ref(), known, guess).await,
                Err(error) => MadePlan { facts: None, plan: Err(error.into()) },
            }
        }
        .boxed()
    }

    /// Tells a plan, or a lasting reason for having none, from errors that may pass.
    pub(crate) fn made_plan(&mut self, made: MadePlan) -> Result<Result<Plan, PlanFailure>, RequestError> {
        if let Some(facts) = made.facts {
            self.known.facts.replace(facts);
        }
        match made.plan {
            Ok(plan) => match forbidden(&plan).filter(|_| self.doubts_refusals()) {
                Some(refusal) => Err(self.error(refusal)),
                None => Ok(Ok(plan)),
            },
            Err(PlanError::MissingPrerequisites(missing)) => Ok(Err(PlanFailure::Missing(missing))),
            Err(PlanError::InvalidOptions(error)) => Ok(Err(error.into())),
            Err(PlanError::Request(error)) => self.plan_failure(error).map(Err),
        }
    }

    /// An API server that is just starting does not know any roles yet, and refuses everything for a moment.
    fn doubts_refusals(&self) -> bool {
        let status = self.known.config.as_ref().and_then(|config| config.status.as_ref());
        let is_waiting = status.and_then(|status| status.phase) == Some(Phase::PrerequisiteFailed);
        !is_waiting && self.failures < REPORTED_FAILURES - 1
    }

    fn plan_failure(&self, error: RequestError) -> Result<PlanFailure, RequestError> {
        let lacks_right = error.class == Class::Forbidden;
        if lacks_right && self.doubts_refusals() {
            return Err(error);
        }
        let why = refusal::lasting(error)?;
        Ok(if lacks_right { PlanFailure::Missing(why) } else { PlanFailure::Impossible(why) })
    }
}

/// The first change of a plan that the operator has no right to make.
fn forbidden(plan: &Plan) -> Option<String> {
    plan.refusals().find(|refusal| matches!(refusal, Refusal::Forbidden { .. })).map(ToString::to_string)
}
