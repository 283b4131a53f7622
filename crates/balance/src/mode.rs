//! The six threshold modes: how far from the average a node must be to count as under- or over-utilized.

use std::{fmt, str::FromStr};

use crate::error::Unknown;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    Low,
    Medium,
    High,
    #[default]
    AsymmetricLow,
    AsymmetricMedium,
    AsymmetricHigh,
}

impl Mode {
    pub const ALL: [Mode; 6] =
        [Mode::Low, Mode::Medium, Mode::High, Mode::AsymmetricLow, Mode::AsymmetricMedium, Mode::AsymmetricHigh];

    /// The name in a KubeDescheduler.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Low => "Low",
            Mode::Medium => "Medium",
            Mode::High => "High",
            Mode::AsymmetricLow => "AsymmetricLow",
            Mode::AsymmetricMedium => "AsymmetricMedium",
            Mode::AsymmetricHigh => "AsymmetricHigh",
        }
    }

    /// The name on a command line.
    pub const fn slug(self) -> &'static str {
        match self {
            Mode::Low => "low",
            Mode::Medium => "medium",
            Mode::High => "high",
            Mode::AsymmetricLow => "asym-low",
            Mode::AsymmetricMedium => "asym-medium",
            Mode::AsymmetricHigh => "asym-high",
        }
    }

    /// How far below the average (`thresholds`) and above it (`targetThresholds`), in whole percent of the score.
    pub const fn percent(self) -> (u8, u8) {
        match self {
            Mode::Low => (10, 10),
            Mode::Medium => (20, 20),
            Mode::High => (30, 30),
            Mode::AsymmetricLow => (0, 10),
            Mode::AsymmetricMedium => (0, 20),
            Mode::AsymmetricHigh => (0, 30),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lower, upper) = self.percent();
        f.pad(&format!("{} ({lower}%:{upper}%)", self.name()))
    }
}

impl FromStr for Mode {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let given = text.trim();
        let is = |mode: &Mode| {
            [mode.name(), mode.slug()].iter().any(|name| name.eq_ignore_ascii_case(given)) || mode.to_string() == given
        };
        let found = Mode::ALL.into_iter().find(is);
        found.ok_or_else(|| Unknown::new("threshold mode", text, Mode::ALL.map(Mode::slug)))
    }
}
