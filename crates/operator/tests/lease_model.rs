//! Every way in which three replicas may contend for the lease: requests and answers get lost or late, replicas are stopped
//! and wake up, and still no two of them ever believe that they lead at the same time.
//!
//! Explored is the very code that ships. Time passes in ticks; a record counts for three of them, a leader renews within two.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use operator::election::{Candidate, Heard, Move, Record, Times};
use stateright::{Checker, HasDiscoveries, Model, Property};

/// How many requests or answers may get lost.
const LOSSES: u8 = 1;
const TIMES: Times =
    Times { duration: Duration::from_secs(3), renew: Duration::from_secs(2), retry: Duration::from_secs(1) };

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    tick: u64,
    stored: Option<Record>,
    version: u64,
    losses: u8,
    replicas: Vec<Replica>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Replica {
    candidate: Candidate,
    under_way: UnderWay,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum UnderWay {
    /// May ask again from this tick on.
    Nothing { from: u64 },
    /// Sent, not arrived.
    Request(Move),
    /// Arrived and answered, not heard.
    Answer(Heard),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Tick,
    /// A replica begins to ask around.
    Begin(usize),
    /// Its request arrives.
    Arrive(usize),
    /// It hears the answer, however much later.
    Hear(usize),
    /// The request never arrives.
    LoseRequest(usize),
    /// The answer never arrives.
    LoseAnswer(usize),
}

/// What may be wrong with the code, to see that it would be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The API server does not compare versions.
    Unconditional,
    /// Leading counts from hearing and not from asking.
    FromHearing,
    /// A lost answer counts as a success.
    Hopeful,
    /// Others are waited for less long than they may lead.
    Impatient,
}

/// So many replicas for so many ticks.
struct Contest {
    replicas: usize,
    ticks: u64,
    fault: Fault,
}

impl Contest {
    fn now(state: &State) -> Duration {
        Duration::from_secs(state.tick)
    }

    fn send(&self, replica: &mut Replica, next: Move, tick: u64) {
        replica.under_way = match next {
            Move::Wait(pause) => UnderWay::Nothing { from: tick + pause.as_secs() },
            request => UnderWay::Request(request),
        };
    }

    fn answer(&self, state: &mut State, request: &Move) -> Heard {
        let fits = |record: &Record| match (&state.stored, request) {
            _ if self.fault == Fault::Unconditional => true,
            (None, Move::Create(_)) => true,
            (Some(stored), Move::Replace(_)) => stored.version == record.version,
            _ => false,
        };
        match request {
            Move::Read => state.stored.clone().map_or(Heard::Absent, Heard::Found),
            Move::Create(record) | Move::Replace(record) if fits(record) => {
                state.version += 1;
                let written = Record { version: state.version.to_string(), ..record.clone() };
                state.stored = Some(written.clone());
                Heard::Written(written)
            }
            Move::Create(_) | Move::Replace(_) | Move::Wait(_) => Heard::Nothing,
        }
    }
}

impl Model for Contest {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let times = match self.fault {
            Fault::Impatient => Times { duration: Duration::from_secs(1), ..TIMES },
            _ => TIMES,
        };
        let replica = |number: usize| Replica {
            candidate: Candidate::new(number.to_string(), times),
            under_way: UnderWay::Nothing { from: 0 },
        };
        let replicas = (0..self.replicas).map(replica).collect();
        vec![State { tick: 0, stored: None, version: 0, losses: 0, replicas }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.tick < self.ticks {
            steps.push(Step::Tick);
        }
        for (position, replica) in state.replicas.iter().enumerate() {
            match &replica.under_way {
                UnderWay::Nothing { from } if *from <= state.tick => steps.push(Step::Begin(position)),
                UnderWay::Nothing { .. } => {}
                UnderWay::Request(_) => {
                    steps.push(Step::Arrive(position));
                    if state.losses < LOSSES {
                        steps.push(Step::LoseRequest(position));
                    }
                }
                UnderWay::Answer(_) => {
                    steps.push(Step::Hear(position));
                    if state.losses < LOSSES {
                        steps.push(Step::LoseAnswer(position));
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let now = Contest::now(&state);
        match step {
            Step::Tick => state.tick += 1,
            Step::Begin(at) => {
                let tick = state.tick;
                // Read, answered and heard at once: a change that is seen later is only waited for longer.
                let read = state.replicas[at].candidate.begin(now);
                let heard = self.answer(&mut state, &read);
                let replica = &mut state.replicas[at];
                let next = replica.candidate.next(now, heard);
                self.send(replica, next, tick);
            }
            Step::Arrive(at) => {
                let UnderWay::Request(request) = state.replicas[at].under_way.clone() else { return None };
                let heard = self.answer(&mut state, &request);
                state.replicas[at].under_way = UnderWay::Answer(heard);
            }
            Step::Hear(at) | Step::LoseRequest(at) | Step::LoseAnswer(at) => {
                let under_way = state.replicas[at].under_way.clone();
                let heard = match (&step, under_way) {
                    (Step::Hear(_), UnderWay::Answer(heard)) => heard,
                    (Step::LoseAnswer(_), UnderWay::Answer(heard)) if self.fault == Fault::Hopeful => heard,
                    (Step::LoseRequest(_), UnderWay::Request(Move::Create(record) | Move::Replace(record)))
                        if self.fault == Fault::Hopeful =>
                    {
                        Heard::Written(record)
                    }
                    _ => Heard::Nothing,
                };
                if !matches!(step, Step::Hear(_)) {
                    state.losses += 1;
                }
                let tick = state.tick;
                let replica = &mut state.replicas[at];
                if self.fault == Fault::FromHearing {
                    replica.candidate.begin(now);
                }
                let next = replica.candidate.next(now, heard);
                self.send(replica, next, tick);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one leads", |_, state: &State| {
                let now = Contest::now(state);
                state.replicas.iter().filter(|replica| replica.candidate.leads(now)).count() <= 1
            }),
            Property::always("nobody leads while another holds a newer lease", |_, state: &State| {
                let now = Contest::now(state);
                let epoch = state.stored.as_ref().map_or(0, |stored| stored.transitions);
                let leader = |replica: &&Replica| replica.candidate.leads(now);
                state.replicas.iter().filter(leader).all(|replica| {
                    replica.candidate.leads_until().is_some_and(|(_, led)| led == epoch || led + 1 == epoch)
                })
            }),
            Property::sometimes("somebody leads", |_, state: &State| {
                state.replicas.iter().any(|replica| replica.candidate.leads(Contest::now(state)))
            }),
            Property::sometimes("a silent leader is followed", |_, state: &State| {
                let led = |replica: &Replica| replica.candidate.leads_until().is_some_and(|(_, epoch)| epoch == 1);
                state.replicas.iter().any(led)
            }),
        ]
    }
}

fn explore(replicas: usize, ticks: u64, fault: Fault) -> impl Checker<Contest> {
    let contest = Contest { replicas, ticks, fault };
    contest.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join()
}

/// Three for long enough to see a leader followed, and two for long enough to see that twice.
#[test]
fn no_two_replicas_ever_lead_at_the_same_time() {
    for (replicas, ticks) in [(3, 4), (2, 7)] {
        let checker = explore(replicas, ticks, Fault::None);
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        println!("{replicas} replicas, {ticks} ticks: {states} states, depth {depth}");
        checker.assert_properties();
    }
}

/// A check that finds nothing wrong with anything would be worthless.
#[test]
fn what_could_be_wrong_is_found() {
    for fault in [Fault::Unconditional, Fault::FromHearing, Fault::Hopeful, Fault::Impatient] {
        assert!(explore(2, 6, fault).discovery("at most one leads").is_some(), "{fault:?} was not noticed");
    }
}
