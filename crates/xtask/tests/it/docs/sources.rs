//! Source files are short, and each says in a few lines what it is for.

use std::{fs, path::Path};

use super::files_under;
use crate::commands::root;

const LONGEST_HEADER: usize = 3;
const LONGEST_FILE: usize = 400;

/// The lines at the beginning of a file that are about the module.
fn header(text: &str) -> usize {
    text.lines().take_while(|line| line.starts_with("//!")).count()
}

#[test]
fn a_header_ends_where_the_code_begins() {
    assert_eq!(header("//! One.\n//!\n//! Three.\n\nuse std::fs;\n//! no more\n"), 3);
    assert_eq!(header("use std::fs;\n"), 0);
}

#[test]
fn files_and_their_headers_are_short() {
    let mut files = Vec::new();
    files_under(Path::new("crates"), "rs", &mut files);
    assert!(files.len() > 500, "{files:?}");
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        for (what, lines, most) in
            [("a header", header(&text), LONGEST_HEADER), ("a file", text.lines().count(), LONGEST_FILE)]
        {
            if lines > most {
                found.push(format!("{}: {what} of {lines} lines; at most {most}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
