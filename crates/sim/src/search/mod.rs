//! The search for a score that comes near the optimum: generated scenarios, a judgement of each run, candidates that an unmodified
//! descheduler can use, and what it takes to do better.

mod candidate;
mod case;
mod family;
mod found;
mod halving;
mod judge;
mod lift;
mod tally;

pub use candidate::{Candidate, Described, shipped, space};
pub use case::{Case, cases};
pub use family::{Family, scenario};
pub use found::{Bar, Found, search};
pub use judge::{Done, Judgement, LAST_PART, MOST_MIGRATIONS, MOST_SPREAD, Yardstick, judge, moved_back};
pub use lift::Lift;
pub use tally::{Count, Tally, tally, tally_lifted};
