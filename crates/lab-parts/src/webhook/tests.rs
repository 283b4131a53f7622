//! The webhook without an API server.

mod case;
mod decisions;
mod migration_aware;
mod protocol;
