//! A diff for people: payloads of Ignition files decoded, and in color.

use advisor::object_text;
use anstyle::{AnsiColor, Style};
use terminal::table::visible;

use crate::prose::BOLD;

pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
pub(crate) const REMOVED: Style = AnsiColor::Red.on_default();
const HUNK: Style = AnsiColor::Cyan.on_default();

/// A payload that is decoded is shown up to here itself.
const SHOWN: usize = 64;

/// A diff in which every `data:` URL is followed by its text.
pub(crate) fn decoded(diff: &str) -> String {
    let mut text = String::new();
    for line in diff.lines() {
        let sign = line.chars().next().filter(|sign| "+- ".contains(*sign)).unwrap_or(' ');
        let urls = line.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        match urls.filter_map(|url| Some((url, object_text::data_url(url)?))).next() {
            None => text += &format!("{line}\n"),
            Some((url, payload)) => {
                let cut = url.char_indices().nth(SHOWN).map(|(end, _)| format!("{}...", &url[..end]));
                text += &format!("{}\n", cut.map_or_else(|| line.to_owned(), |cut| line.replace(url, &cut)));
                payload.split_terminator('\n').for_each(|decoded| text += &format!("{sign}            | {decoded}\n"));
            }
        }
    }
    text
}

/// The diff behind blanks, with the colors that `git diff` has.
pub(crate) fn colored(diff: &str) -> String {
    diff.split_terminator('\n').map(|text| line(&visible(text))).collect()
}

fn line(line: &str) -> String {
    let style = match line {
        line if line.starts_with("+++") || line.starts_with("---") => BOLD,
        line if line.starts_with("@@") => HUNK,
        line if line.starts_with('+') => ADDED,
        line if line.starts_with('-') => REMOVED,
        "" => return "\n".to_owned(),
        _ => return format!("   {line}\n"),
    };
    format!("   {style}{line}{style:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_shown_decoded_with_the_sign_of_their_line() {
        let diff =
            "@@ -1 +1 @@\n-    source: data:,old%0Atext\n+    source: data:;base64,bmV3Cg==\n     path: /etc/a\n";
        let expected = "@@ -1 +1 @@\n-    source: data:,old%0Atext\n-            | old\n-            | text\n\
                        +    source: data:;base64,bmV3Cg==\n+            | new\n     path: /etc/a\n";
        assert_eq!(decoded(diff), expected);
    }

    #[test]
    fn what_a_terminal_would_act_on_is_shown_and_not_done() {
        let diff = decoded("+    source: data:,harmless%0Aevil%0Dharmless%0D%0A\n+\ta: \u{1b}[8mhidden\n");
        let shown = anstream::adapter::strip_str(&colored(&diff)).to_string();
        let expected = "   +            | harmless\n   +            | evil\\rharmless\\r\n   +\ta: \\u{1b}[8mhidden\n";
        assert!(shown.ends_with(expected), "{shown:?}");
    }
}
