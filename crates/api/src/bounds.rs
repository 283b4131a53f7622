//! The maximum lengths of texts and lists in a status or a record. The schema enforces them, so the operator truncates first: nobody
//! would see a status that the API server refuses.

/// Characters of a unified diff in `status.items[].diff`.
pub const DIFF: usize = 262_144;

/// Characters of a message, of an item or of a condition.
pub const MESSAGE: usize = 32_768;

/// Characters of one entry of `status.notes`.
pub const NOTE: usize = 2_048;

/// Characters of the value of one input in `status.inputs`.
pub const INPUT_VALUE: usize = 4_096;

/// Characters of a dotted field path.
pub const FIELD_PATH: usize = 1_024;

/// Characters of a Kubernetes object name.
pub const NAME: usize = 253;

/// Characters of the name of a field manager.
pub const MANAGER: usize = 128;

/// Items of a plan.
pub const ITEMS: usize = 64;

/// Field paths in one list of field paths.
pub const FIELD_PATHS: usize = 256;

/// Entries of a short list in a status: notes, managers, pools, conditions.
pub const SHORT_LIST: usize = 64;

/// Entries of `status.migrations` of a VirtualMachine.
pub const ENDED_MIGRATIONS: usize = 16;

/// Characters of the name of a risk.
pub const RISK_NAME: usize = 128;

/// Entries of `status.inputs`.
pub const INPUTS: usize = 128;

/// Entries of `status.reverts`.
pub const REVERTS: usize = 16;

/// Bytes of a whole record, and so of any value in it: etcd takes 1.5 MiB, and a finished record also has a status.
pub const RECORD: usize = 1_048_576;

/// Bytes that options and approval may add to that. They are not known when a plan is made, and the largest that the schema allows fit.
pub const RECORD_HEAD: usize = 131_072;

/// Fields of one item of a record.
pub const LEAVES: usize = 2_048;

/// Steps of a path in a record.
pub const PATH_ELEMENTS: usize = 64;
