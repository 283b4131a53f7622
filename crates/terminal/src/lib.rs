//! Text for terminals: tables, ages, progress, what a terminal can show, and a screen that is redrawn in place. It knows nothing of Kubernetes.

mod age;
mod capabilities;
mod compact_table;
mod print;
mod progress;
mod redrawn;
pub mod table;

pub use age::{age, minute};
pub use capabilities::{Signs, Terminal, height, signs, width};
pub use compact_table::{Align, CompactTable, pad};
pub use print::print;
pub use progress::progress_bar;
pub use redrawn::RedrawnScreen;
