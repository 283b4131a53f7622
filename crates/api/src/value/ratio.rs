//! Ratios from 0 to 1, in any decimal notation: `0`, `1`, `0.25`, `.5`, `1.0`, `5e-1`.

/// The pattern of texts for CEL's `double()`, which would also accept `inf`, `nan` and hexadecimal numbers, and fails for exponents
/// out of range.
pub(crate) const RATIO_PATTERN: &str = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$";

/// Parses a ratio. None if the text is not one.
pub(crate) fn parse_ratio(text: &str) -> Option<f64> {
    // Rust's parser also accepts words (`inf`, `nan`) and signs.
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        None => (text, "0"),
    };
    let starts_well = mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let short_exponent = matches!(exponent.len(), 1 | 2) && exponent.bytes().all(|digit| digit.is_ascii_digit());
    if !starts_well || !short_exponent {
        return None;
    }
    text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_forms_from_0_to_1_are_read() {
        let cases = [
            ("0", 0.0),
            ("1", 1.0),
            ("0.0", 0.0),
            ("1.0", 1.0),
            ("1.", 1.0),
            ("0.25", 0.25),
            (".5", 0.5),
            ("00.5", 0.5),
            ("5e-1", 0.5),
            ("5E-1", 0.5),
            ("0.05e+1", 0.5),
            ("0.05e1", 0.5),
            ("100e-02", 1.0),
            ("1e-99", 1e-99),
        ];
        for (text, ratio) in cases {
            assert_eq!(parse_ratio(text), Some(ratio), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        let cases = [
            "",
            ".",
            "e1",
            ".e1",
            "1.1",
            "1.0000001",
            "2",
            "-0",
            "-0.5",
            "+0.5",
            "50%",
            "0,5",
            " 0.5",
            "0.5 ",
            "1e1",
            "1e-100",
            "1e",
            "1e-",
            "1e--1",
            "inf",
            "NaN",
            "nan",
            "infinity",
            "0x1",
            "half",
            "0.5m",
            "1_0e-1",
            "0.5.5",
            "5e-1e0",
        ];
        for text in cases {
            assert_eq!(parse_ratio(text), None, "{text}");
        }
    }
}
