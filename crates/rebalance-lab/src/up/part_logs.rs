//! One log file per part, although all parts log in one process.

use std::io;

use lab::up::PartLogs;
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// Writes each line to the log of the part whose module logged it.
pub(super) struct ByModule(pub(super) PartLogs);

pub(super) struct Line {
    logs: PartLogs,
    module: Option<String>,
}

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.logs.write(self.module.as_deref(), bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for ByModule {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { logs: self.0.clone(), module: None }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line {
        Line { logs: self.0.clone(), module: metadata.module_path().map(ToOwned::to_owned) }
    }
}
