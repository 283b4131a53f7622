//! How long it takes to make a plan: from the first request until the status that holds it is recorded.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct PlanTimer {
    begun: Option<Instant>,
    is_made: bool,
}

impl PlanTimer {
    /// The first request is about to be sent, unless it was sent ahead already.
    pub(crate) fn begin(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// There is a plan, or a reason for having none, which takes no time that counts.
    pub(crate) fn ended(&mut self, is_made: bool) {
        *self = PlanTimer { begun: self.begun.filter(|_| is_made), is_made };
    }

    /// A status was recorded. It holds the plan if there is one, and then the time is returned.
    pub(crate) fn recorded(&mut self) -> Option<Duration> {
        let begun = self.begun.filter(|_| self.is_made)?;
        *self = PlanTimer::default();
        Some(begun.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_plan_that_was_begun_ahead_counts_from_there_and_only_its_own_status_ends_it() {
        let mut timer = PlanTimer::default();
        assert_eq!(timer.recorded(), None, "no plan was made");
        timer.begin();
        tokio::time::advance(SECOND).await;
        assert_eq!(timer.recorded(), None, "the status that announces a plan");
        timer.begin();
        tokio::time::advance(SECOND).await;
        timer.ended(true);
        tokio::time::advance(SECOND).await;
        assert_eq!(timer.recorded(), Some(3 * SECOND));
        assert_eq!(timer.recorded(), None, "the status of the next item");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_that_cannot_be_made_does_not_count() {
        let mut timer = PlanTimer::default();
        timer.begin();
        tokio::time::advance(SECOND).await;
        timer.ended(false);
        assert_eq!(timer.recorded(), None, "the status that says why");
        timer.begin();
        tokio::time::advance(SECOND).await;
        timer.ended(true);
        assert_eq!(timer.recorded(), Some(SECOND), "from the request of the second attempt");
    }
}
