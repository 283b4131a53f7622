//! What the numbers of the lab's lessons stand for.

use super::{Lesson, lesson, partly};

pub(crate) const SECTIONS: &[(&str, &[Lesson])] = &[
    ("What could not be run", RUNNING),
    ("VM controller and migrations", MIGRATIONS),
    ("Eviction webhook", WEBHOOK),
    ("Scenarios", SCENARIOS),
    ("Size", SIZE),
];

const RUNNING: &[Lesson] = &[
    lesson("L1", "crashing samples", "Generating a sample scenario crashes, and so do the examples"),
    partly(
        "L2",
        "broken window",
        "The window does not open; where it did, it ignores a new mode, moved sliders and pressures set by hand",
        "There is no window: `status`, `watch` and the simulator's tables and plots show what it showed, from the same data",
    ),
    partly(
        "L3",
        "posted scenario",
        "A scenario that is posted to the exporter stops it for good, and its metrics with it",
        "The exporter takes no scenarios: load is what the VMs say, and `load` edits those",
    ),
    lesson("L4", "endless simulation", "The simulator never ends when no node has room for any VM"),
    lesson("L5", "nameless objects", "A node or a VM without a name is accepted"),
    lesson("L6", "unequal round trip", "What is written is not what is read"),
    lesson("L7", "loop stops", "The loop stops after its first step, for every step is reported as failed"),
    lesson("L8", "mode by name", "A threshold mode cannot be asked for by its own name"),
    lesson(
        "L9",
        "missing series",
        "Series are asked for that no rule records, and something else is used without a word",
    ),
    partly(
        "L10",
        "unloaded scenario",
        "The scenario that the exporter begins with is never loaded",
        "A lab begins with VMs, not with a scenario of the exporter's",
    ),
    lesson(
        "L11",
        "broken installation",
        "The installation packs files that are not there and passes options that do not exist",
    ),
    lesson("L12", "unloaded rules", "The rules are not loaded"),
    lesson("L13", "missing metrics", "The metrics that the rules need are not all there"),
    partly(
        "L14",
        "proxy name",
        "The proxy in front of Prometheus looks for a name that does not exist",
        "The descheduler asks Prometheus itself",
    ),
];

const MIGRATIONS: &[Lesson] = &[
    lesson("L20", "undeletable pod", "A pod of a VM that was deleted cannot be deleted"),
    lesson(
        "L21",
        "leftover target",
        "A migration that fails leaves its target behind, for the webhook refuses to have it removed",
    ),
    lesson("L22", "ignored spec.running", "`spec.running` is ignored"),
    lesson("L23", "growing conditions", "Conditions grow without bound"),
    lesson("L24", "stale node and label", "Node and label of a VM are those of a pod that is gone"),
    lesson("L25", "second pod stays", "A second pod of a VM stays forever"),
    lesson("L26", "dropped write", "A write that is overtaken is dropped"),
    lesson(
        "L27",
        "third pod after restart",
        "After a restart during a migration the target is migrated, and a third pod appears",
    ),
    lesson("L28", "target as source", "While there are two pods, the target is taken for the source"),
];

const WEBHOOK: &[Lesson] = &[
    lesson(
        "L30",
        "webhook never called",
        "One of two webhooks is never asked, for it looks for a resource that does not exist",
    ),
    lesson("L31", "dry run migrates", "A dry run starts a migration"),
    lesson("L32", "HTML for a bad review", "A malformed review is answered with a page of HTML"),
    lesson(
        "L33",
        "missing eviction annotation",
        "`eviction-in-progress` is never set, so that a migration that failed holds up the descheduler for ten minutes",
    ),
    lesson("L34", "repeated eviction", "A repeated eviction is recorded again and is answered like the first"),
    lesson(
        "L35",
        "webhook blocks the cluster",
        "Every eviction of the cluster goes through the webhook, and fails when it is down",
    ),
    lesson(
        "L36",
        "certificates not renewed",
        "Certificates are not renewed, and calls fail from the installation until the CA is written",
    ),
];

const SCENARIOS: &[Lesson] = &[
    lesson("L40", "first node only", "Tasks for the hottest nodes always go to the first"),
    lesson("L41", "number cut to one", "A number of tasks that is drawn is cut to one"),
    lesson("L42", "load stays", "When the last task ends, the load stays"),
    lesson("L43", "misread duration", "`1h30m` is read as an hour"),
    lesson("L44", "shared task state", "Tasks change what other threads read"),
];

const SIZE: &[Lesson] = &[
    lesson(
        "L50",
        "requests without change",
        "The VM controller asks three times per VM in every pass, for nothing that changed",
    ),
    lesson("L51", "slow scrape", "A scrape asks for the pods of every node: 500 nodes take five seconds and more"),
];
