//! What the commands of `rebalance-lab sim` print.

mod classify;
mod commands;
mod documents;
