//! The life of a configuration, from creation to drift and back.

mod basic;
mod steady;
mod versions;

const DESCHEDULER: &str = "enable-load-aware-descheduling";
const SWAP_ITEM: &str = "enable-kubelet-swap";
mod zz_debug;
