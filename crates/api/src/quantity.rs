//! Quantities as Kubernetes writes them: `2`, `500m`, `1.5`, `4Gi`, `1e9`. By hand: texts are accepted, rounded and limited exactly
//! as CEL's `quantity()` does in the schema.

/// The pattern of texts for CEL's `quantity()`. It excludes signs and three-digit exponents, which no amount of CPU or memory needs;
/// comparing `1e999999999` with zero would keep the API server busy.
pub(crate) const QUANTITY_PATTERN: &str = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$";

pub(crate) const NANOS_PER_UNIT: u128 = 1_000_000_000;
const NANOS_PER_THOUSANDTH: u128 = NANOS_PER_UNIT / 1000;

/// Kubernetes keeps no more than this many whole units.
const MAX_UNITS: u128 = i64::MAX as u128;

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

/// Parses a quantity as billionths of its unit, the precision of Kubernetes. As there, more digits are rounded up, and large numbers
/// are limited to 2^63 - 1 units.
pub(crate) fn parse_nanos(text: &str) -> Option<u128> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let (doublings, exponent) = scale(suffix)?;

    // Decimal digits rather than a machine number: `0.1Ei` times 2^60 is then exact.
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    for _ in 0..doublings {
        double(&mut digits);
    }
    let shift = exponent + 9 - i32::try_from(fraction.len()).ok()?;
    Some(shifted(&digits, shift).min(MAX_UNITS * NANOS_PER_UNIT))
}

/// What a suffix stands for: how many times to double, and a power of ten.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => (0, exponent(suffix.strip_prefix(['e', 'E'])?)?),
    })
}

fn exponent(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let well_formed = matches!(digits.len(), 1 | 2) && digits.bytes().all(|digit| digit.is_ascii_digit());
    if well_formed { text.parse().ok() } else { None }
}

fn double(digits: &mut Vec<u8>) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let doubled = *digit * 2 + carry;
        *digit = doubled % 10;
        carry = doubled / 10;
    }
    if carry > 0 {
        digits.insert(0, carry);
    }
}

/// The digits as a number, times ten to the power of `shift`, rounded up.
fn shifted(digits: &[u8], shift: i32) -> u128 {
    let dropped = usize::try_from(-shift).unwrap_or(0).min(digits.len());
    let (kept, dropped) = digits.split_at(digits.len() - dropped);
    let kept = kept.iter().fold(0_u128, |number, digit| number.saturating_mul(10).saturating_add(u128::from(*digit)));
    let round_up = u128::from(dropped.iter().any(|digit| *digit > 0));
    let zeros = u32::try_from(shift).unwrap_or(0);
    kept.saturating_mul(10_u128.saturating_pow(zeros)).saturating_add(round_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u128 = NANOS_PER_UNIT;

    #[test]
    fn every_suffix_is_read() {
        let cases = [
            ("7n", 7),
            ("7u", 7_000),
            ("7m", 7_000_000),
            ("7", 7 * UNIT),
            ("7k", 7_000 * UNIT),
            ("7M", 7_000_000 * UNIT),
            ("7G", 7_000_000_000 * UNIT),
            ("7T", 7_000_000_000_000 * UNIT),
            ("7P", 7_000_000_000_000_000 * UNIT),
            ("7E", 7_000_000_000_000_000_000 * UNIT),
            ("7Ki", (7 << 10) * UNIT),
            ("7Mi", (7 << 20) * UNIT),
            ("7Gi", (7 << 30) * UNIT),
            ("7Ti", (7 << 40) * UNIT),
            ("7Pi", (7 << 50) * UNIT),
            ("7Ei", (7 << 60) * UNIT),
            ("7e3", 7_000 * UNIT),
            ("7E3", 7_000 * UNIT),
            ("7e+03", 7_000 * UNIT),
            ("7e-3", 7_000_000),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_nanos(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn fractions_are_exact_and_rounded_up_to_a_billionth() {
        let cases = [
            ("0", 0),
            ("0m", 0),
            ("0.0", 0),
            ("007", 7 * UNIT),
            ("1.5", 1_500_000_000),
            ("1.", UNIT),
            (".5", 500_000_000),
            ("1.5Gi", (3 << 29) * UNIT),
            ("0.1Ki", 102_400_000_000),
            ("0.0000000001", 1),
            ("1.0000000001", UNIT + 1),
            ("1e-99", 1),
            ("0e-99", 0),
            ("0.3333333333333333333333333Mi", 349_525_333_333_334),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_nanos(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_64_bits_end_at_the_largest_one() {
        for text in [
            "8Ei",
            "10E",
            "9223372036854775808",
            "99999999999999999999999999999999",
            "1e99",
            "9999999999999999999999999999Ei",
        ] {
            assert_eq!(parse_nanos(text), Some(MAX_UNITS * UNIT), "{text}");
        }
        assert_eq!(parse_nanos("9223372036854775806"), Some((MAX_UNITS - 1) * UNIT));
    }

    #[test]
    fn anything_else_is_refused() {
        let cases = [
            "", ".", "m", "Gi", "e3", "-1", "+1", "1 Gi", " 1", "1 ", "1,5", "1.5.5", "1..5", "1K", "1g", "1gi", "1GI",
            "1Gib", "1GB", "1mi", "1mm", "1e", "1e+", "1e100", "1e1.5", "1e3m", "0x10", "1_000", "inf", "NaN", "two",
            "４Gi",
        ];
        for text in cases {
            assert_eq!(parse_nanos(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_rounded_up_and_nonsense_has_none() {
        assert_eq!([thousandths("1.5"), thousandths("250m"), thousandths("1u")], [Some(1500), Some(250), Some(1)]);
        assert_eq!([units("4Gi"), units("100m"), units("2")], [Some(4 << 30), Some(1), Some(2)]);
        assert_eq!((thousandths("8Ei"), thousandths("two"), units("")), (Some(u64::MAX), None, None));
    }
}
