//! A cluster from a seed: nodes in zones, guests of every class and owner on them, sometimes a disruption budget, and with an even seed
//! a guest whose migrations fail.

use fastrand::Rng;

use super::guest::{Guest, Make, Owner};

/// A pod that is no guest. Its budget may allow no disruption.
pub(super) const GUARDED: &str = "guarded";

const fn make(strategy: &'static str, has_device: bool, owner: Owner) -> Make {
    Make { strategy: Some(strategy), has_device, owner }
}

const MOVES_LIVE: [Make; 5] = [
    make("LiveMigrate", false, Owner::Machine("Always")),
    make("LiveMigrateIfPossible", false, Owner::Machine("RerunOnFailure")),
    make("LiveMigrate", false, Owner::Nobody),
    make("LiveMigrate", false, Owner::ReplicaSet),
    make("LiveMigrateIfPossible", false, Owner::Pool("Manual")),
];
const RESTARTS: [Make; 5] = [
    make("None", false, Owner::Machine("Always")),
    make("LiveMigrateIfPossible", true, Owner::Machine("Always")),
    make("None", false, Owner::ReplicaSet),
    make("LiveMigrateIfPossible", true, Owner::ReplicaSet),
    make("None", false, Owner::Pool("Always")),
];
const STAYS_DOWN: [Make; 6] = [
    make("None", false, Owner::Machine("RerunOnFailure")),
    make("None", false, Owner::Machine("Manual")),
    make("None", false, Owner::Machine("Once")),
    make("None", false, Owner::Nobody),
    make("LiveMigrateIfPossible", true, Owner::Machine("RerunOnFailure")),
    make("None", false, Owner::Pool("RerunOnFailure")),
];
const BLOCKS: [Make; 3] = [
    make("LiveMigrate", true, Owner::Machine("Always")),
    make("External", false, Owner::Machine("Always")),
    make("LiveMigrate", true, Owner::Pool("Always")),
];
/// What KubeVirt says decides about these.
const INHERITS: [Make; 3] = [
    Make { strategy: None, has_device: false, owner: Owner::Machine("Always") },
    Make { strategy: None, has_device: false, owner: Owner::Machine("RerunOnFailure") },
    Make { strategy: None, has_device: false, owner: Owner::ReplicaSet },
];
/// One of these is in every cluster, whatever happens to it.
const OWNED: [Make; 4] = [RESTARTS[2], RESTARTS[3], RESTARTS[4], STAYS_DOWN[5]];

/// Migrations of a guest that fail.
#[derive(Debug, Clone)]
pub(super) struct Failing {
    pub(super) guest: String,
    /// How many fail before one succeeds. None: all, until somebody does something about it.
    pub(super) times: Option<u32>,
}

pub(super) struct RandomCluster {
    /// Names and zones, in the order in which they are created.
    pub(super) nodes: Vec<(String, Option<&'static str>)>,
    pub(super) max_unavailable: u32,
    pub(super) guests: Vec<Guest>,
    /// The node of a pod whose budget allows no disruption.
    pub(super) guarded: Option<String>,
    /// No forecast knows them, so they are only where it has no end.
    pub(super) failing: Option<Failing>,
    /// KubeVirt's settings.
    pub(super) strategy: Option<&'static str>,
    pub(super) migrations_per_node: u32,
    /// How long guests need to shut down, in seconds.
    pub(super) shutdown: f64,
}

impl RandomCluster {
    pub(super) fn new(seed: u64, largest: usize) -> RandomCluster {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(3..=largest);
        let mut numbers: Vec<usize> = (0..count).collect();
        rng.shuffle(&mut numbers);
        let zones = [Some("a"), Some("b"), Some("c"), None];
        let node = |number: usize, rng: &mut Rng| (format!("worker-{number}"), *rng.choice(&zones).unwrap());
        let nodes: Vec<_> = numbers.into_iter().map(|number| node(number, &mut rng)).collect();
        let mut makes: Vec<Make> = [&MOVES_LIVE[..], &RESTARTS, &STAYS_DOWN, &BLOCKS, &OWNED]
            .map(|class| *rng.choice(class).unwrap())
            .to_vec();
        let others: Vec<Make> = [&MOVES_LIVE[..], &RESTARTS, &STAYS_DOWN, &INHERITS].concat();
        makes.extend((0..rng.usize(count..=2 * count)).map(|_| *rng.choice(&others).unwrap()));
        makes.extend(rng.bool().then(|| *rng.choice(&BLOCKS).unwrap()));
        let somewhere = |rng: &mut Rng| rng.choice(&nodes).unwrap().0.clone();
        let guests = makes.into_iter().enumerate();
        let guests: Vec<Guest> = guests.map(|(number, make)| Guest::new(number, somewhere(&mut rng), make)).collect();
        // The first one is of the class that moves.
        let times = if seed.is_multiple_of(4) { Some(rng.u32(1..=3)) } else { None };
        let failing = Failing { guest: guests[0].name.clone(), times };
        RandomCluster {
            max_unavailable: if count > 3 { rng.u32(1..=2) } else { 1 },
            guests,
            guarded: (rng.u8(0..3) == 0).then(|| somewhere(&mut rng)),
            failing: seed.is_multiple_of(2).then_some(failing),
            strategy: rng.choice([None, Some("LiveMigrate"), Some("LiveMigrateIfPossible")]).unwrap(),
            migrations_per_node: rng.u32(1..=3),
            shutdown: f64::from(rng.u32(5..50)),
            nodes,
        }
    }
}
