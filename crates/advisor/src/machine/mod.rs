//! The phases of a configuration: how one leads to another, and what each says in the conditions.

pub mod conditions;
pub mod table;

pub use conditions::conditions;
pub use table::{Event, TABLE, Transition, after};
