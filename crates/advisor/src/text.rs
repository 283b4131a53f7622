//! Texts that must not be longer than their field.

/// Truncates a name to at most `max` bytes.
pub(crate) fn shorten(name: &mut String, max: usize) {
    name.truncate(name.floor_char_boundary(max));
}

/// Truncates a text to at most `max` bytes, and says so at its end.
pub(crate) fn cut(mut text: String, max: usize) -> String {
    const MISSING: &str = "\n[cut: too long]";
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max.saturating_sub(MISSING.len())));
        text += MISSING;
    }
    text
}
