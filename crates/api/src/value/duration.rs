//! Durations in the notation of Go, as Kubernetes users write them: `30m`, `1h30m`, `1.5h`. By hand: texts are accepted exactly as
//! CEL's `duration()` does in the schema.

use std::time::Duration;

/// The pattern of texts for CEL's `duration()`. The digits per unit are limited so that even the longest text stays below 292 years,
/// which fit in 64 bits of nanoseconds; otherwise the rule would fail instead of showing its message.
pub(crate) const DURATION_PATTERN: &str = concat!(
    r"^([0-9]{1,5}(\.[0-9]{1,9})?h|",
    r"[0-9]{1,7}(\.[0-9]{1,9})?m|",
    r"[0-9]{1,9}(\.[0-9]{1,9})?(s|ms|us|\x{b5}s|\x{3bc}s|ns))+$"
);

const MAX_FRACTION_DIGITS: usize = 9;

/// Nanoseconds per unit and the number of digits allowed before the decimal point.
const UNITS: &[(&str, u128, usize)] = &[
    ("h", 3_600_000_000_000, 5),
    ("m", 60_000_000_000, 7),
    ("s", 1_000_000_000, 9),
    ("ms", 1_000_000, 9),
    ("us", 1_000, 9),
    // Two characters look like the micro sign: U+00B5 and the Greek letter U+03BC. Go accepts both.
    ("\u{b5}s", 1_000, 9),
    ("\u{3bc}s", 1_000, 9),
    ("ns", 1, 9),
];

/// Parses a positive duration. None if the text is not one.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut nanos = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (term, after) = parse_term(rest)?;
        nanos += term;
        rest = after;
    }
    let nanos = u64::try_from(nanos).ok()?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Parses one number with its unit. Returns nanoseconds, and the rest of the text.
fn parse_term(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => {
            let (fraction, rest) = split_digits(rest);
            if fraction.is_empty() || fraction.len() > MAX_FRACTION_DIGITS {
                return None;
            }
            (fraction, rest)
        }
        None => ("", rest),
    };
    let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, nanos, max_digits) = UNITS.iter().find(|(name, ..)| *name == unit)?;
    if whole.is_empty() || whole.len() > *max_digits {
        return None;
    }
    let decimals = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let number: u128 = format!("{whole}{fraction}").parse().ok()?;
    Some((number * nanos / decimals, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        const SECOND: u64 = 1_000_000_000;
        let cases = [
            ("30m", 1_800 * SECOND),
            ("2h", 7_200 * SECOND),
            ("24h", 86_400 * SECOND),
            ("1h30m", 5_400 * SECOND),
            ("1h15m30.918s", 4_530_918_000_000),
            ("1.5h", 5_400 * SECOND),
            ("0.5s", SECOND / 2),
            ("100ms", SECOND / 10),
            ("7us", 7_000),
            ("7\u{b5}s", 7_000),
            ("7\u{3bc}s", 7_000),
            ("1ns", 1),
            ("0h1m", 60 * SECOND),
            ("1m1h1m", 3_720 * SECOND),
            ("99999h", 359_996_400 * SECOND),
            ("0.000000001s", 1),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_duration(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let cases = [
            "",
            "0",
            "0s",
            "0h0m",
            "0.0s",
            "0.1ns",
            "30",
            "m",
            ".5h",
            "1.h",
            "-30m",
            "+30m",
            "30 m",
            " 30m",
            "30m ",
            "1d",
            "1w",
            "30min",
            "1e3s",
            "1h-30m",
            "abc",
            "forever",
            "100000h",
            "10000000m",
            "1000000000s",
            "1.0000000001s",
            "1..5h",
            "\u{b5}s",
            "９h",
        ];
        for text in cases {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_text_does_not_overflow() {
        let text = "999999999s".repeat(6);
        assert!(parse_duration(&text).is_some());
        assert_eq!(parse_duration(&"999999999s".repeat(60)), None);
    }
}
