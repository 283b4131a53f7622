//! The commands that a page prints, ticked off as they are run, so that none is forgotten: each is run as printed or is listed with the
//! reason why it is not.

use crate::files::root;

/// Where outputs begin and end that a test keeps current, and with them the commands that print them.
const KEPT: (&str, &str) = ("<!-- output: kept current by a test -->", "<!-- end of output -->");

pub struct Checklist {
    commands: Vec<String>,
    left: Vec<String>,
}

impl Checklist {
    /// `script` is what a guide has in its blocks of commands, `exceptions` what is not run, and why.
    pub fn of(script: &str, exceptions: &[(&str, &str)]) -> Checklist {
        let commands = commands(script);
        let mut left = commands.clone();
        for (exception, because) in exceptions {
            assert!(commands.iter().any(|command| command == exception), "the guide has no {exception}");
            assert!(!because.is_empty(), "{exception}");
            left.retain(|command| command != exception);
        }
        Checklist { commands, left }
    }

    /// Notes that a command of the guide is being run.
    pub fn tick(&mut self, command: &str) {
        assert!(self.commands.iter().any(|known| known == command), "the guide does not print\n{command}");
        self.left.retain(|left| left != command);
    }

    /// The first command that is left and begins so, ticked off.
    pub fn first(&mut self, beginning: &str) -> String {
        let command = self.left.iter().find(|command| command.starts_with(beginning));
        let command = command.unwrap_or_else(|| panic!("nothing is left that begins with {beginning}")).clone();
        self.tick(&command);
        command
    }

    /// What is neither run nor listed so far, in the order of the guide.
    pub fn left(&self) -> &[String] {
        &self.left
    }

    pub fn finish(self) {
        assert!(self.left.is_empty(), "neither run nor listed as an exception:\n{}", self.left.join("\n"));
    }
}

/// What a page of this repository has in its blocks of commands, but for those whose output is kept current.
pub fn script(page: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    script_of(&text)
}

fn script_of(text: &str) -> String {
    let mut script = String::new();
    let (mut language, mut kept) = (None, false);
    for line in text.lines() {
        match (line.trim().strip_prefix("```"), language) {
            (Some(opened), None) => language = Some(opened),
            (Some(_), Some(_)) => language = None,
            (None, None) => kept = line == KEPT.0 || kept && line != KEPT.1,
            (None, Some("sh" | "bash")) if !kept => script += &format!("{line}\n"),
            (None, Some("console")) if !kept => {
                let command = line.strip_prefix("$ ").map(|command| format!("{command}\n"));
                script += &command.unwrap_or_default();
            }
            (None, Some(_)) => {}
        }
    }
    script
}

/// The commands in a script: without comments, with continued lines and here documents in one piece.
fn commands(script: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = line.split_once("  # ").map_or(line, |(command, _)| command.trim_end()).to_owned();
        while command.ends_with('\\') {
            command = format!("{command}\n{}", lines.next().unwrap_or_default());
        }
        if command.ends_with("<<EOF") {
            for line in lines.by_ref() {
                command = format!("{command}\n{line}");
                if line == "EOF" {
                    break;
                }
            }
        }
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_taken_apart_into_its_commands() {
        let script = "# why\none    # now\n\ntwo \\\n  more\napply <<EOF\na: b\n# not a comment\nEOF\none\n";
        assert_eq!(commands(script), ["one", "two \\\n  more", "apply <<EOF\na: b\n# not a comment\nEOF"]);
    }

    #[test]
    fn the_script_of_a_page_is_what_people_type() {
        let (start, end) = KEPT;
        let page = format!(
            "text\n```sh\none\n```\n```yaml\na: b\n```\n```console\n$ two\noutput\n```\n{start}\n```console\n$ kept\n```\n{end}\n```bash\nthree\n```\n"
        );
        assert_eq!(script_of(&page), "one\ntwo\nthree\n");
    }

    #[test]
    #[should_panic(expected = "neither run nor listed as an exception:\nthree")]
    fn a_command_that_is_forgotten_fails() {
        let mut list = Checklist::of("one\ntwo\nthree\n", &[("two", "it takes too long")]);
        assert_eq!(list.first("o"), "one");
        assert_eq!(list.left(), ["three"]);
        list.finish();
    }
}
