//! What the terminal can show.

/// Where nobody says how wide the terminal is.
const WIDTH: usize = 80;

pub(crate) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    columns.unwrap_or(WIDTH).clamp(40, 120)
}
