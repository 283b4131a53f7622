//! A program on a pseudo-terminal: what it shows, what somebody types, and how it ends.
//!
//! The terminal is not the controlling one of the program. So Ctrl-C is sent as the signal that it stands for.

use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use tokio::sync::watch;
use vt100::Parser;

const LIMIT: Duration = Duration::from_secs(90);

pub struct Pty {
    child: Child,
    keyboard: File,
    /// What is on the screen. It closes when the program has ended.
    screen: watch::Receiver<Parser>,
}

impl Pty {
    /// Starts a program. Colors are as the program chooses them for a terminal that has them.
    pub fn spawn(program: &Path, args: &[&str], env: &[(&str, &str)], rows: u16, columns: u16) -> Pty {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
        let stdio = || Stdio::from(theirs.try_clone().unwrap());
        let mut command = Command::new(program);
        command.args(args).stdin(stdio()).stdout(stdio()).stderr(stdio());
        for name in ["NO_COLOR", "COLUMNS", "LC_CTYPE", "CI"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").envs(env.iter().copied());
        let child = command.spawn().unwrap();
        let keyboard = File::from(ours);
        let mut output = keyboard.try_clone().unwrap();
        let (shown, screen) = watch::channel(Parser::new(rows, columns, 1000));
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            // Linux reports an error once nobody has the other side open any more.
            while let Ok(count @ 1..) = output.read(&mut part) {
                shown.send_modify(|parser| parser.process(&part[..count]));
            }
        });
        Pty { child, keyboard, screen }
    }

    /// Types a text. Enter is `\r`.
    pub fn send(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// What `kill` does.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// The text on the screen, without colors.
    pub fn text(&self) -> String {
        self.screen.borrow().screen().contents()
    }

    pub fn is_cursor_hidden(&self) -> bool {
        self.screen.borrow().screen().hide_cursor()
    }

    /// Waits until a text is on the screen, and returns all of it.
    pub async fn wait_for(&mut self, text: &str) -> String {
        self.wait_until(&format!("{text:?}"), |screen| screen.contains(text)).await
    }

    /// Waits until the screen is as it should be, and returns its text.
    pub async fn wait_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let is_shown = |parser: &Parser| holds(&parser.screen().contents());
        let found = match tokio::time::timeout(LIMIT, self.screen.wait_for(is_shown)).await {
            Ok(Ok(parser)) => Some(parser.screen().contents()),
            // It has ended, or takes too long.
            Ok(Err(_)) | Err(_) => None,
        };
        found.unwrap_or_else(|| panic!("{what} is never on the screen:\n{}", self.text()))
    }

    /// Waits until the program has ended.
    pub async fn end(&mut self) -> ExitStatus {
        let closed = tokio::time::timeout(LIMIT, async { while self.screen.changed().await.is_ok() {} }).await;
        assert!(closed.is_ok(), "it goes on:\n{}", self.text());
        self.child.wait().unwrap()
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_sees_a_terminal_of_the_size_asked_for_and_what_is_typed() {
        let script =
            r#"printf '\033[31mfirst'; printf '\033[H\033[J'; stty size; read -r word; echo "it was $word"; exit 7"#;
        let mut pty = Pty::spawn(Path::new("sh"), &["-c", script], &[], 10, 60);
        let screen = pty.wait_for("10 60").await;
        assert!(!screen.contains("first"), "it was cleared: {screen}");
        pty.send("xyzzy\r");
        let screen = pty.wait_for("it was xyzzy").await;
        assert!(screen.lines().any(|line| line == "xyzzy"), "typing is echoed: {screen}");
        assert_eq!(pty.end().await.code(), Some(7));
    }

    #[tokio::test]
    async fn a_program_can_be_interrupted() {
        let script = "trap 'echo caught; exit 130' INT; echo ready; while :; do sleep 0.05; done";
        // A shell cannot catch what was ignored when it started, as in a job in the background.
        let args = ["--default-signal=INT", "sh", "-c", script];
        let mut pty = Pty::spawn(Path::new("env"), &args, &[], 10, 60);
        pty.wait_for("ready").await;
        pty.interrupt();
        pty.wait_for("caught").await;
        assert_eq!(pty.end().await.code(), Some(130));
    }
}
