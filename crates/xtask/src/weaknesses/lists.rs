//! What the numbers stand for.

use super::Lesson;

/// Weaknesses of the reference implementation.
pub(crate) const WEAKNESSES: &[Lesson] = &[
    Lesson {
        number: "W1",
        text: "A descheduler without `evictionLimits.node` sends the operator in circles",
        instead: None,
    },
    Lesson {
        number: "W2",
        text: "A timeout or a failed health check under Abort goes on, and ends in Completed",
        instead: None,
    },
    Lesson {
        number: "W3",
        text: "Changes of HyperConverged's density settings from outside are never noticed",
        instead: None,
    },
    Lesson { number: "W4", text: "A pool is believed to be done before it has taken in the change", instead: None },
    Lesson { number: "W5", text: "Writes happen during DryRun", instead: None },
    Lesson { number: "W6", text: "An edit by hand is reverted when a pool happens to roll", instead: None },
    Lesson { number: "W7", text: "What is applied is not what was reviewed", instead: None },
    Lesson { number: "W8", text: "Changed options are ignored silently", instead: None },
    Lesson {
        number: "W9",
        text: "Drifted stays although the drift is gone; texts for people are used as state",
        instead: None,
    },
    Lesson {
        number: "W10",
        text: "The clock of waitTimeout is stale, and needs an event to be looked at",
        instead: None,
    },
    Lesson { number: "W11", text: "CompletedWithErrors reports success", instead: None },
    Lesson { number: "W12", text: "Invalid options are retried without a pause", instead: None },
    Lesson { number: "W13", text: "enableSwap: false is refused", instead: None },
    Lesson { number: "W14", text: "Turning something off leaves its MachineConfig behind", instead: None },
    Lesson {
        number: "W15",
        text: "The swap script breaks nodes without the partition and is skipped after the second reboot",
        instead: Some(
            "The script itself is the guide's, byte for byte: it makes no swap area, and no plan says which nodes lack the partition",
        ),
    },
    Lesson { number: "W16", text: "A change of Low impact reboots nodes", instead: None },
    Lesson { number: "W17", text: "Arguments and profiles of others are overwritten", instead: None },
    Lesson { number: "W18", text: "A HyperConverged that cannot be read counts as absent", instead: None },
    Lesson {
        number: "W19",
        text: "An edit of the target is blamed on HyperConverged; one fixed limit turns off the other",
        instead: None,
    },
    Lesson { number: "W20", text: "An API error that would pass is final", instead: None },
    Lesson { number: "W21", text: "What is live when one looks is taken for what was applied", instead: None },
    Lesson { number: "W22", text: "A field that somebody adds beside ours is called drift", instead: None },
    Lesson { number: "W23", text: "One invalid waitTimeout stops the controller for all objects", instead: None },
    Lesson { number: "W24", text: "Between comparing and writing, anything may happen", instead: None },
    Lesson {
        number: "W25",
        text: "An upgrade is reported because of its impact alone, and never resolved by hand",
        instead: None,
    },
    Lesson {
        number: "W26",
        text: "Items do not wait for each other",
        instead: Some(
            "Decided otherwise: the workflow guide applies the items in order without waiting in between, see D23",
        ),
    },
    Lesson {
        number: "W27",
        text: "Pools without nodes, custom, paused and degraded pools are not understood",
        instead: Some("MachineConfigs are for the role worker, so nodes that are in the pool master alone get none"),
    },
    Lesson {
        number: "W28",
        text: "Conditions break the conventions of Kubernetes",
        instead: Some(
            "Types, order, reasons and messages are those of the workflow guide, both of its spellings of the failed prerequisites included; there is no condition that sums them up",
        ),
    },
    Lesson { number: "W29", text: "observedGeneration lags behind, so that people wait for ever", instead: None },
    Lesson { number: "W30", text: "DryRun after completion does nothing", instead: None },
    Lesson {
        number: "W31",
        text: "A forced review asks for what is set already",
        instead: Some(
            "Any edit of the spec answers a forced review, as in the workflow guide; whoever wants more names the plan in the approval",
        ),
    },
    Lesson {
        number: "W32",
        text: "Diffs with wrong counts, lost lines and unreadable payloads",
        instead: Some(
            "Headers have the form of the guide, without namespaces; the status keeps payloads as they are stored, and the preview shows them in clear",
        ),
    },
    Lesson {
        number: "W33",
        text: "No impact is shown before there is a plan",
        instead: Some(
            "The annotation of load-aware rebalancing begins with Medium, as in the guide, beside a column that says High",
        ),
    },
    Lesson {
        number: "W34",
        text: "No events, no short name, no drift column",
        instead: Some(
            "Metrics and a history of what was approved and applied are to come; nothing is rolled back by itself",
        ),
    },
    Lesson { number: "W35", text: "Nobody is told that fields of others are taken over", instead: None },
    Lesson {
        number: "W36",
        text: "A new profile means changes all over the place",
        instead: Some(
            "A kind that no profile used before is added to one list in the operator, and a test tells when it is missing",
        ),
    },
    Lesson { number: "W37", text: "Options travel as strings and fall back silently", instead: None },
    Lesson { number: "W38", text: "All MachineConfigs and all definitions are kept in memory", instead: None },
    Lesson { number: "W39", text: "The process exits when a definition appears", instead: None },
    Lesson { number: "W40", text: "Several status updates per round, with errors ignored", instead: None },
    Lesson {
        number: "W41",
        text: "A profile that could not be offered at start never is",
        instead: Some("A profile that is deleted is always offered again, see D30"),
    },
    Lesson {
        number: "W42",
        text: "Reverting drift has no back-off and no end",
        instead: Some("One field still asks for both: to overwrite what changed since the plan, and to revert drift"),
    },
    Lesson {
        number: "W43",
        text: "Two profiles mean two rounds of reboots",
        instead: Some("Not beaten yet: plans are approved one by one, and each says what it reboots"),
    },
    Lesson {
        number: "W44",
        text: "Dead and duplicate code",
        instead: Some("Nothing to run: clippy, with warnings as errors, keeps dead code out"),
    },
    Lesson { number: "W45", text: "The version is written down in several places", instead: None },
    Lesson { number: "W46", text: "Undeploying deletes the namespace of the whole platform", instead: None },
    Lesson {
        number: "W47",
        text: "Roles for people name a kind that does not exist; samples cannot be applied",
        instead: None,
    },
    Lesson { number: "W48", text: "The quick start cannot work on the development cluster", instead: None },
    Lesson { number: "W49", text: "Tests that cannot fail", instead: None },
];

/// Where documents and reference implementation disagree: the reading that is built here.
pub(crate) const READINGS: &[Lesson] = &[
    Lesson {
        number: "D1",
        text: "Options without ksmConfiguration: no page merging; no options at all: on all nodes",
        instead: None,
    },
    Lesson { number: "D2", text: "`mode` reaches the descheduler", instead: None },
    Lesson { number: "D3", text: "`enableSwap: false` alone is valid and plans the removal", instead: None },
    Lesson { number: "D4", text: "More than 120 % needs swap; 120 % does not", instead: None },
    Lesson {
        number: "D5",
        text: "HyperConverged changed from outside: new plan, forced review, resolved by itself; what the user fixed drifts",
        instead: None,
    },
    Lesson { number: "D6", text: "waitTimeout fails the rollout", instead: None },
    Lesson { number: "D7", text: "What is in force is compared every five minutes too", instead: None },
    Lesson { number: "D8", text: "Abort ends in Failed, Continue in CompletedWithErrors", instead: None },
    Lesson { number: "D9", text: "Completed is True only when everything succeeded", instead: None },
    Lesson { number: "D10", text: "By default nobody is fought", instead: None },
    Lesson { number: "D11", text: "DryRun applies nothing", instead: None },
    Lesson { number: "D12", text: "Only what plans name is watched", instead: None },
    Lesson { number: "D13", text: "Every diff comes from a server-side dry run", instead: None },
    Lesson {
        number: "D14",
        text: "A new profile changes nothing in the operator",
        instead: Some("But for a kind that no profile used before, see W36"),
    },
    Lesson {
        number: "D15",
        text: "New objects show Pending, then Drafting; a plan without changes completes at once",
        instead: None,
    },
    Lesson { number: "D16", text: "managementState is set on creation only and not listed as managed", instead: None },
    Lesson { number: "D17", text: "Impact is one of three words", instead: None },
    Lesson { number: "D18", text: "A new descheduler is Medium, a changed one Low", instead: None },
    Lesson { number: "D19", text: "Pressure metrics come first", instead: None },
    Lesson { number: "D20", text: "Only what the plan needs is required", instead: None },
    Lesson { number: "D21", text: "observedGeneration has its usual meaning", instead: None },
    Lesson { number: "D22", text: "An acknowledgement together with other options leads to a new plan", instead: None },
    Lesson { number: "D23", text: "Items are applied in order without waiting in between", instead: None },
    Lesson { number: "D24", text: "All of the progress texts, by the state of the pool", instead: None },
    Lesson { number: "D25", text: "The quick start and the samples work as printed", instead: None },
    Lesson {
        number: "D26",
        text: "The density default is 150; HyperConverged is an input only for changes",
        instead: None,
    },
    Lesson { number: "D27", text: "KubeDescheduler is namespaced everywhere", instead: None },
    Lesson {
        number: "D28",
        text: "Paths of source files in the documents",
        instead: Some("They are those of another code base"),
    },
    Lesson { number: "D29", text: "Drift is noticed by watches", instead: None },
    Lesson {
        number: "D30",
        text: "Deleting a configuration leaves what was applied, and the profile is offered again",
        instead: None,
    },
    Lesson { number: "D31", text: "Stand-ins for all kinds that the profiles need are shipped", instead: None },
    Lesson { number: "D32", text: "All four versions of the descheduler come to rest", instead: None },
];
