//! Values that are stored as text: ratios, durations, and (in `quantity`) quantities. The API types keep the text, and these functions
//! parse it, so that one invalid value does not make a whole object or list unreadable. They accept exactly what the CEL rules accept.

mod duration;
mod int_or_text;
mod ratio;

pub(crate) use duration::{DURATION_PATTERN, parse_duration};
pub(crate) use int_or_text::IntOrText;
pub(crate) use ratio::{RATIO_PATTERN, parse_ratio};

pub(crate) const CPU_RULE: &str = "must be a positive amount of CPU such as 2, 500m or \"1.5\"";
pub(crate) const MEMORY_RULE: &str = "must be a positive amount of memory such as 4Gi, 512Mi or 1Ti";
pub(crate) const RATIO_RULE: &str = "must be a ratio from 0 to 1 in quotes, such as \"0.5\"";
pub(crate) const DURATION_RULE: &str = "must be a positive duration such as 30m, 2h or 1h30m, of at most 99999h";

/// A text that is not a valid value of its field.
///
/// The API server refuses such texts with the same message, but an object may have been stored before the current schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// Not a positive amount of CPU.
    #[error("{0:?} {rule}", rule = CPU_RULE)]
    Cpu(String),
    /// Not a positive amount of memory.
    #[error("{0:?} {rule}", rule = MEMORY_RULE)]
    Memory(String),
    /// Not a number from 0 to 1.
    #[error("{0:?} {rule}", rule = RATIO_RULE)]
    Ratio(String),
    /// Not a positive duration.
    #[error("{0:?} {rule}", rule = DURATION_RULE)]
    Duration(String),
}

impl InvalidValue {
    /// The reason for conditions, events and metrics; stable, unlike the message.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Cpu(_) => "InvalidCPU",
            Self::Memory(_) => "InvalidMemory",
            Self::Ratio(_) => "InvalidRatio",
            Self::Duration(_) => "InvalidDuration",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_the_text_and_a_good_value() {
        let error = InvalidValue::Cpu("two".into());
        assert_eq!(error.to_string(), "\"two\" must be a positive amount of CPU such as 2, 500m or \"1.5\"");
        assert_eq!(error.reason(), "InvalidCPU");
    }
}
