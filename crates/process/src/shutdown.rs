//! The signals that ask a program to end.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for signals from the moment it is made.
#[derive(Debug)]
pub struct Shutdown {
    signals: Vec<Signal>,
}

impl Shutdown {
    /// SIGTERM and SIGINT.
    pub fn new() -> io::Result<Shutdown> {
        Shutdown::on(&[SignalKind::terminate(), SignalKind::interrupt()])
    }

    /// SIGTERM, SIGINT and SIGHUP: also when the terminal is closed.
    pub fn or_hangup() -> io::Result<Shutdown> {
        Shutdown::on(&[SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()])
    }

    fn on(kinds: &[SignalKind]) -> io::Result<Shutdown> {
        let signals = kinds.iter().map(|&kind| signal(kind)).collect::<io::Result<_>>()?;
        Ok(Shutdown { signals })
    }

    /// Returns at the next signal.
    pub async fn wait(&mut self) {
        poll_fn(|context| self.poll(context)).await;
    }

    /// Ends at the first signal.
    pub async fn requested(mut self) {
        self.wait().await;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self.signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal as Sent, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn each_signal_is_waited_for_once() {
        let mut shutdown = Shutdown::or_hangup().unwrap();
        for signal in [Sent::TERM, Sent::INT, Sent::HUP] {
            kill_process(getpid(), signal).unwrap();
            shutdown.wait().await;
        }
    }
}
