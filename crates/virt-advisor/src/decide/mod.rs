//! Commands by which a person decides about a plan: `approve`, `reject` and `undo`.

mod approve;
mod ask;
pub(crate) mod forecast_file;
mod reject;
mod undo;
mod write;

pub(crate) use approve::{Args as ApproveArgs, run as approve};
pub(crate) use reject::{Args as RejectArgs, run as reject};
pub(crate) use undo::{Args as UndoArgs, run as undo};

use advisor::approving::Undecidable;

use crate::failure::{Failure, failed};

// Without a doc comment: it would become the description of the command.
#[derive(clap::Args)]
struct PlanArgs {
    /// The profile whose plan it is
    profile: String,
    /// The digest of the plan that was read; nothing is decided on another plan
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Why, for whoever reads it later: a sentence, or the number of a change request
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

fn undecidable(error: &Undecidable) -> anyhow::Error {
    let failure = match error {
        Undecidable::Stale { .. } | Undecidable::Unseen(_) | Undecidable::OutOfDate(_) => Failure::StalePlan,
        Undecidable::NoPlan(_) => Failure::NotFound,
        Undecidable::NotWaiting { .. } => Failure::Other,
    };
    failed(failure, error.to_string())
}
