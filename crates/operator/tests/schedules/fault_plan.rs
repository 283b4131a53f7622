//! The faults of a schedule, and what happens to one request.

use std::time::Duration;

use http::Method;

use crate::{api::Request, random::Random};

/// A schedule has some of these faults: some mistakes only show in the absence of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Answered with 409, although nothing has changed.
    Conflict,
    /// Answered with 429 and `Retry-After`.
    TooMany,
    /// Answered with 500.
    ServerError,
    /// The connection breaks before the request arrives.
    CutBefore,
    /// The connection breaks after the request was carried out.
    CutAfter,
    /// Carried out, and never answered.
    Silent,
    /// Carried out after the time limit of the client.
    Late,
    /// A read is answered from an earlier version.
    Stale,
    /// The operator dies before the request is sent.
    CrashBefore,
    /// The operator dies after the request was carried out.
    CrashAfter,
    /// Requests take seconds.
    Slow,
    /// Watches break.
    WatchCut,
    /// Watches cannot be resumed.
    WatchGone,
    /// Watch events come late, or twice.
    WatchLag,
}

pub(crate) const FAULTS: [Fault; 14] = [
    Fault::Conflict,
    Fault::TooMany,
    Fault::ServerError,
    Fault::CutBefore,
    Fault::CutAfter,
    Fault::Silent,
    Fault::Late,
    Fault::Stale,
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::Slow,
    Fault::WatchCut,
    Fault::WatchGone,
    Fault::WatchLag,
];

/// The faults of a schedule and their frequency.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FaultPlan {
    pub(crate) faults: Vec<Fault>,
    /// How many of a thousand requests have a fault.
    pub(crate) permille: u64,
}

impl FaultPlan {
    pub(crate) fn none() -> FaultPlan {
        FaultPlan { faults: Vec::new(), permille: 0 }
    }

    pub(crate) fn of(seed: u64) -> FaultPlan {
        let mut random = Random::of(seed, "climate", 0);
        let share = *random.pick(&[150, 400, 800]);
        let faults = FAULTS.into_iter().filter(|_| random.permille(share)).collect();
        FaultPlan { faults, permille: *random.pick(&[10, 40, 120, 250]) }
    }

    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}

/// How one request is delivered: a delay, a fault or none, and a delay of the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Delivery {
    pub(crate) before: Duration,
    pub(crate) fault: Option<Fault>,
    pub(crate) after: Duration,
}

impl Delivery {
    pub(crate) fn of(random: &mut Random, fault_plan: &FaultPlan, request: &Request) -> Delivery {
        let longest = if fault_plan.has(Fault::Slow) { 4000 } else { 30 };
        let fits = |fault: &&Fault| match fault {
            Fault::Conflict => request.method != Method::GET && request.method != Method::POST,
            Fault::Stale => request.method == Method::GET,
            Fault::Late => request.method != Method::GET,
            Fault::Slow | Fault::WatchCut | Fault::WatchGone | Fault::WatchLag => false,
            _ => true,
        };
        let fitting: Vec<&Fault> = fault_plan.faults.iter().filter(fits).collect();
        let fault = (!fitting.is_empty() && random.permille(fault_plan.permille)).then(|| **random.pick(&fitting));
        Delivery { before: random.millis(1, longest), fault, after: random.millis(1, longest) }
    }
}
