//! Quantities of Kubernetes as whole numbers, for programs that add and compare them.

use crate::value::{NANOS_PER_UNIT, parse_nanos};

const NANOS_PER_THOUSANDTH: u128 = NANOS_PER_UNIT / 1000;

/// A quantity in thousandths of its unit, rounded up, as Kubernetes counts CPU.
pub fn thousandths(text: &str) -> Option<u64> {
    parse_nanos(text).map(|nanos| limited(nanos.div_ceil(NANOS_PER_THOUSANDTH)))
}

/// A quantity in whole units, rounded up, as Kubernetes counts memory and devices.
pub fn units(text: &str) -> Option<u64> {
    parse_nanos(text).map(|nanos| limited(nanos.div_ceil(NANOS_PER_UNIT)))
}

fn limited(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_and_nonsense_has_none() {
        assert_eq!([thousandths("1.5"), thousandths("250m"), thousandths("1u")], [Some(1500), Some(250), Some(1)]);
        assert_eq!([units("4Gi"), units("100m"), units("2")], [Some(4 << 30), Some(1), Some(2)]);
        assert_eq!((thousandths("8Ei"), thousandths("two"), units("")), (Some(u64::MAX), None, None));
    }
}
