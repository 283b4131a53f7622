//! Which of two versions of an object is the newer one.

use std::cmp::Ordering;

/// Compares two resourceVersions of one object as numbers. `None` if either is not a number, because then nothing but equality means
/// anything.
pub fn compare(a: &str, b: &str) -> Option<Ordering> {
    let number = |version: &str| version.parse::<u64>().ok();
    Some(number(a)?.cmp(&number(b)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers_and_not_as_text() {
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("10", "9"), Some(Ordering::Greater));
        assert_eq!(compare("10", "10"), Some(Ordering::Equal));
        assert_eq!(compare("18446744073709551614", "18446744073709551615"), Some(Ordering::Less));
    }

    #[test]
    fn a_version_that_is_no_number_compares_to_nothing() {
        for (a, b) in [("", "1"), ("1", ""), ("a", "a"), ("1", "-1"), ("1.5", "2"), ("18446744073709551616", "1")] {
            assert_eq!(compare(a, b), None, "{a:?} and {b:?}");
        }
    }
}
