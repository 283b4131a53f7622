//! The commands that a guide prints, run in a terminal and ticked off.

use super::terminal::Terminal;

pub(crate) struct Checklist<'a> {
    terminal: &'a Terminal,
    list: testkit::checklist::Checklist,
}

impl<'a> Checklist<'a> {
    /// `guide` is what the guide has in its blocks of commands, `exceptions` what is not run, and why.
    pub(crate) fn of(guide: &str, exceptions: &[(&str, &str)], terminal: &'a Terminal) -> Checklist<'a> {
        Checklist { terminal, list: testkit::checklist::Checklist::of(guide, exceptions) }
    }

    /// Notes that a command of the guide is being run.
    pub(crate) fn tick(&mut self, command: &str) {
        self.list.tick(command);
    }

    pub(crate) async fn run(&mut self, command: &str) -> String {
        self.tick(command);
        self.terminal.run(command).await
    }

    /// The first command that begins so, run.
    pub(crate) async fn run_first(&mut self, beginning: &str) -> String {
        let command = self.list.first(beginning);
        self.terminal.run(&command).await
    }

    pub(crate) fn finish(self) {
        self.list.finish();
    }
}
