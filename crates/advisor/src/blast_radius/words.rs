//! Numbers in sentences.

/// `1 node`, `2 nodes`
pub(super) fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    }
}
