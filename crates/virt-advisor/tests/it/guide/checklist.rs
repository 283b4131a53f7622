//! The commands that a guide prints, ticked off as they are run, so that none is forgotten: each is run as printed or is
//! listed with the reason why it is not.

use super::terminal::Terminal;

pub(crate) struct Checklist<'a> {
    terminal: &'a Terminal,
    commands: Vec<String>,
    left: Vec<String>,
}

impl<'a> Checklist<'a> {
    /// `guide` is what the guide has in its blocks of commands, `exceptions` what is not run, and why.
    pub(crate) fn of(guide: &str, exceptions: &[(&str, &str)], terminal: &'a Terminal) -> Checklist<'a> {
        let commands = commands(guide);
        let mut left = commands.clone();
        for (exception, because) in exceptions {
            assert!(commands.iter().any(|command| command == exception), "the guide has no {exception}");
            assert!(!because.is_empty(), "{exception}");
            left.retain(|command| command != exception);
        }
        Checklist { terminal, commands, left }
    }

    /// Notes that a command of the guide is being run.
    pub(crate) fn tick(&mut self, command: &str) {
        assert!(self.commands.iter().any(|known| known == command), "the guide does not print\n{command}");
        self.left.retain(|left| left != command);
    }

    pub(crate) async fn run(&mut self, command: &str) -> String {
        self.tick(command);
        self.terminal.run(command).await
    }

    /// The first command that begins so, run.
    pub(crate) async fn run_first(&mut self, beginning: &str) -> String {
        let command = self.left.iter().find(|command| command.starts_with(beginning));
        let command = command.unwrap_or_else(|| panic!("nothing is left that begins with {beginning}")).clone();
        self.run(&command).await
    }

    pub(crate) fn finish(self) {
        assert!(self.left.is_empty(), "neither run nor listed as an exception:\n{}", self.left.join("\n"));
    }
}

/// The commands in a script: without comments, with continued lines and here documents in one piece.
fn commands(script: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut command = line.to_owned();
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

#[test]
fn a_script_is_taken_apart_into_its_commands() {
    let script = "# why\none\n\ntwo \\\n  more\napply <<EOF\na: b\n# not a comment\nEOF\none\n";
    assert_eq!(commands(script), ["one", "two \\\n  more", "apply <<EOF\na: b\n# not a comment\nEOF"]);
}
