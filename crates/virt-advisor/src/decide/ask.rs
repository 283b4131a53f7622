//! Questions to the person at the terminal. They go to standard error, as what is asked about, so that standard output stays clean.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    pin::pin,
    task::Poll,
    thread,
};

use advisor::approving::Question;
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use terminal::table::visible;
use tokio::sync::oneshot;

use crate::{
    failure::{Failure, failed},
    prose::{hanging, outdented},
};

const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// So many pieces of evidence are shown with a risk.
const EVIDENCE: usize = 5;

/// Whether somebody can answer.
pub(super) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether the person accepts it.
pub(super) async fn accepts(question: &Question) -> anyhow::Result<bool> {
    let answer = answer(&text(question, terminal::width())).await?;
    Ok(["y", "yes"].contains(&answer.to_lowercase().as_str()))
}

/// What is asked about, what it is seen from, and the question in the last line.
pub(super) fn text(question: &Question, width: usize) -> String {
    let told = match question {
        Question::Rejection { reason } => {
            let rejected = visible(&rejection(reason.as_deref()));
            outdented(&format!("{WARNING}! {rejected}{WARNING:#}"), width)
        }
        Question::Risk(risk) => {
            let (name, message) = (visible(&risk.name), visible(&risk.message));
            let text = outdented(&format!("{WARNING}! {name}{WARNING:#}: {message}"), width);
            let evidence = risk.evidence.iter().take(EVIDENCE).map(|evidence| hanging("   -", evidence, 5, width));
            let more = risk.evidence.len().saturating_sub(EVIDENCE);
            let more = if more > 0 { format!("   - and {more} more\n") } else { String::new() };
            text + &evidence.collect::<String>() + &more
        }
        Question::Item { name, fields } => {
            let (name, fields) = (visible(name), visible(&fields.join(", ")));
            let lost = format!("what somebody has changed since gets lost: {fields}");
            outdented(&format!("{WARNING}! Item {name}{WARNING:#}: {lost}"), width)
        }
    };
    match question {
        Question::Rejection { .. } => format!("\n{told}Approve it nevertheless? [y/N] "),
        _ => format!("\n{told}Accept {}? [y/N] ", question.name()),
    }
}

/// `this plan was rejected: not before the audit`
pub(super) fn rejection(reason: Option<&str>) -> String {
    format!("this plan was rejected: {}", reason.unwrap_or("no reason was given"))
}

/// Whether the person types exactly this word.
pub(super) async fn types(word: &str, question: &str) -> anyhow::Result<bool> {
    Ok(answer(&format!("\n{question} Type {word} to go on: ")).await? == word)
}

/// The answer. A question that nobody can see is not asked. Ctrl-C ends the program, also after a pager has had it ignored.
async fn answer(question: &str) -> anyhow::Result<String> {
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    // It listens before anybody is asked, so that no Ctrl-C gets lost.
    if let Poll::Ready(ended) = futures::poll!(interrupt.as_mut()) {
        ended.context("listening for Ctrl-C")?;
    }
    let mut screen = anstream::stderr();
    screen.write_all(question.as_bytes()).and_then(|()| screen.flush()).context("asking")?;
    let (sender, line) = oneshot::channel();
    // A thread, because a read from a terminal cannot be given up, and the program does not wait for it at its end.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        // Nobody waits for it after Ctrl-C.
        let _ = sender.send(read.map(|_| line));
    });
    tokio::select! {
        line = line => Ok(line.context("asking")?.context("asking")?.trim().to_owned()),
        _ = &mut interrupt => {
            anstream::eprintln!();
            Err(failed(Failure::Interrupted, "nothing was written"))
        }
    }
}

#[cfg(test)]
mod tests {
    use advisor::blast_radius::NamedRisk;

    use super::*;

    #[test]
    fn a_question_shows_the_reason_and_no_escape_of_a_terminal() {
        let shown = |question: &Question| anstream::adapter::strip_str(&text(question, 80)).to_string();
        let rejection = Question::Rejection { reason: Some("not before the audit".into()) };
        assert_eq!(
            shown(&rejection),
            "\n! this plan was rejected: not before the audit\nApprove it nevertheless? [y/N] "
        );
        let evidence = vec!["a\u{1b}[2Jb".into()];
        let risk = Question::Risk(NamedRisk { name: "R".into(), message: "m".into(), evidence });
        assert_eq!(shown(&risk), "\n! R: m\n   - a\\u{1b}[2Jb\nAccept R? [y/N] ");
    }
}
