//! Results for people and programs: CSV, plots as SVG, and a report as one HTML file.

pub mod csv;
pub mod frames;
pub mod html;
pub mod nodes;
pub mod svg;
pub mod tradeoff;

use balance::Bucket;

/// Colors for people with color blindness too (Okabe and Ito). Shapes and words say the same.
pub(crate) const fn color(bucket: Bucket) -> &'static str {
    match bucket {
        Bucket::Under => "#0072b2",
        Bucket::Appropriate => "#8c8c8c",
        Bucket::Over => "#d55e00",
    }
}

/// Escapes text for XML and HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Bytes with three digits, such as `1.24 TB`.
pub fn bytes(value: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= 1000.0 && unit + 1 < units.len() {
        scaled /= 1000.0;
        unit += 1;
    }
    let digits = if scaled < 10.0 && unit > 0 { 2 } else { usize::from(scaled < 100.0 && unit > 0) };
    format!("{scaled:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_about_three_digits() {
        for (value, text) in
            [(0.0, "0 B"), (999.0, "999 B"), (1240.0, "1.24 kB"), (5.6e10, "56.0 GB"), (7.89e14, "789 TB")]
        {
            assert_eq!(bytes(value), text);
        }
    }
}
