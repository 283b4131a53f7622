//! Draws the picture of the README: a terminal with what `virt-advisor preview` prints.
//!
//! The text is the output that `docs/preview.md` shows, and a test of that page compares it with a real run.

use std::{fs, path::Path};

use anyhow::Context;

const PAGE: &str = "docs/preview.md";
const PICTURE: &str = "docs/pictures/plan.svg";

/// As much as fits beside the text of a README. The page shows the rest.
const LINES: usize = 39;
const COLUMNS: usize = 116;

// Sizes in pixels.
const FONT: usize = 13;
const LINE: usize = 18;
const MARGIN: usize = 16;
const TITLE_BAR: usize = 28;

const BACKGROUND: &str = "#0d1117";
const BAR: &str = "#21262d";
const DIM: &str = "#7d8590";
const PLAIN: &str = "#e6edf3";
const ADDED: &str = "#3fb950";
const REMOVED: &str = "#ff7b72";
const HUNK: &str = "#39c5cf";

pub(crate) fn run() -> anyhow::Result<()> {
    let (path, svg) = file(&crate::root())?;
    let file = crate::root().join(path);
    fs::write(&file, svg).with_context(|| format!("writing {path}"))?;
    println!("{path}");
    Ok(())
}

/// The picture: path from the root of the repository, and content.
pub(crate) fn file(root: &Path) -> anyhow::Result<(&'static str, String)> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let shown = page.split_once("```console\n").and_then(|(_, rest)| rest.split_once("```"));
    let (output, _) = shown.with_context(|| format!("{PAGE} shows no output"))?;
    Ok((PICTURE, svg(output)))
}

fn svg(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let shown = lines.iter().take(LINES).map(|line| line.chars().take(COLUMNS).collect::<String>());
    let rest = lines.len().saturating_sub(LINES);
    let more = (rest > 0).then(|| format!("... {rest} more lines"));
    let shown: Vec<String> = shown.chain(more).collect();

    let width = 2 * MARGIN + COLUMNS * FONT * 3 / 5;
    let height = TITLE_BAR + 2 * MARGIN + shown.len() * LINE;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>virt-advisor preview: the plan of a profile, with impact and diff</title>
<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>
<path d="M0 {TITLE_BAR}V8a8 8 0 0 1 8-8H{}a8 8 0 0 1 8 8V{TITLE_BAR}z" fill="{BAR}"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="{FONT}">
"#,
        width - 8
    );
    for (number, line) in shown.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = TITLE_BAR + MARGIN + number * LINE + FONT;
        let (color, weight) = style(line);
        let weight = if weight { r#" font-weight="bold""# } else { "" };
        svg += &format!(
            r#"<text x="{MARGIN}" y="{y}" fill="{color}"{weight} xml:space="preserve">{}</text>"#,
            escaped(line)
        );
        svg.push('\n');
    }
    svg + "</g>\n</svg>\n"
}

/// Color, and whether it is bold: as `virt-advisor` prints it on a terminal.
fn style(line: &str) -> (&'static str, bool) {
    let diff = line.strip_prefix("   ").unwrap_or_default();
    match diff.chars().next() {
        _ if line.starts_with("...") || line.starts_with('$') => (DIM, false),
        Some('+') => (ADDED, false),
        Some('-') => (REMOVED, false),
        Some('@') => (HUNK, false),
        _ if line.starts_with("Plan for") || line.starts_with(|c: char| c.is_ascii_digit()) => (PLAIN, true),
        _ => (PLAIN, false),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_picture_shows_the_output_of_today() {
        let (path, expected) = file(&crate::root()).unwrap();
        let committed = fs::read_to_string(crate::root().join(path)).unwrap_or_default();
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }

    #[test]
    fn signs_of_a_diff_have_their_colors_and_markup_is_escaped() {
        let svg = svg("$ virt-advisor preview p\nPlan for p\n   +  a: <b>\n   -  a: c\n");
        assert!(svg.contains(&format!(r#"fill="{ADDED}" xml:space="preserve">   +  a: &lt;b&gt;</text>"#)), "{svg}");
        assert!(svg.contains(&format!(r#"fill="{REMOVED}" xml:space="preserve">   -  a: c</text>"#)), "{svg}");
        assert!(svg.contains(r#"font-weight="bold" xml:space="preserve">Plan for p</text>"#), "{svg}");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let svg = svg(&"line\n".repeat(LINES + 7));
        assert!(svg.contains(">... 7 more lines</text>"), "{svg}");
    }
}
