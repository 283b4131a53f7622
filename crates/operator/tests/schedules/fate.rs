//! What may happen to a request on its way, and how likely it is in a schedule.

use std::time::Duration;

use http::Method;

use crate::{api::Request, dice::Dice};

/// Kinds of trouble. A schedule has some of them: some faults only show when others do not get in their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// 409, although nothing moved.
    Conflict,
    /// 429 with `Retry-After`.
    TooMany,
    /// 500.
    ServerError,
    /// The connection breaks before the request arrives.
    CutBefore,
    /// The connection breaks when it was carried out.
    CutAfter,
    /// Carried out, and never answered.
    Silent,
    /// Carried out after whoever asked has lost patience.
    Late,
    /// A read is answered with what was there a while ago.
    Stale,
    /// The operator dies before the request leaves.
    CrashBefore,
    /// The operator dies when it was carried out.
    CrashAfter,
    /// Requests take seconds.
    Slow,
    /// Watches break.
    WatchCut,
    /// Watches cannot be resumed.
    WatchGone,
    /// What watches bring comes late, or twice.
    WatchLag,
}

pub(crate) const TROUBLES: [Trouble; 14] = [
    Trouble::Conflict,
    Trouble::TooMany,
    Trouble::ServerError,
    Trouble::CutBefore,
    Trouble::CutAfter,
    Trouble::Silent,
    Trouble::Late,
    Trouble::Stale,
    Trouble::CrashBefore,
    Trouble::CrashAfter,
    Trouble::Slow,
    Trouble::WatchCut,
    Trouble::WatchGone,
    Trouble::WatchLag,
];

/// The troubles of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Climate {
    pub(crate) troubles: Vec<Trouble>,
    /// How many of a thousand requests are in trouble.
    pub(crate) permille: u64,
}

impl Climate {
    pub(crate) fn fair() -> Climate {
        Climate { troubles: Vec::new(), permille: 0 }
    }

    pub(crate) fn of(seed: u64) -> Climate {
        let mut dice = Dice::of(seed, "climate", 0);
        let share = *dice.pick(&[150, 400, 800]);
        let troubles = TROUBLES.into_iter().filter(|_| dice.permille(share)).collect();
        Climate { troubles, permille: *dice.pick(&[10, 40, 120, 250]) }
    }

    pub(crate) fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fate {
    pub(crate) before: Duration,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) after: Duration,
}

impl Fate {
    pub(crate) fn of(dice: &mut Dice, climate: &Climate, request: &Request) -> Fate {
        let longest = if climate.has(Trouble::Slow) { 4000 } else { 30 };
        let fits = |trouble: &&Trouble| match trouble {
            Trouble::Conflict => request.method != Method::GET && request.method != Method::POST,
            Trouble::Stale => request.method == Method::GET,
            Trouble::Late => request.method != Method::GET,
            Trouble::Slow | Trouble::WatchCut | Trouble::WatchGone | Trouble::WatchLag => false,
            _ => true,
        };
        let fitting: Vec<&Trouble> = climate.troubles.iter().filter(fits).collect();
        let trouble = (!fitting.is_empty() && dice.permille(climate.permille)).then(|| **dice.pick(&fitting));
        Fate { before: dice.millis(1, longest), trouble, after: dice.millis(1, longest) }
    }
}
