//! What the commands of `rebalance-lab sim` print.

mod commands;
mod documents;
