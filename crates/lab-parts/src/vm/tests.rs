//! The steps for one VM.

mod fixture;
mod lifecycle;
mod migrations;
