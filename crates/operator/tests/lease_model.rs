//! Explores every way in which replicas may compete for the lease: requests and answers get lost or late, replicas stop and
//! continue. No two of them may believe that they lead at the same time.
//! The code under test is the code of the operator. Time passes in ticks: the lease lasts three, a leader renews within two.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use operator::election::{Candidate, Input, LeaseRecord, LeaseTimes, Outcome, Request, Step};
use stateright::{Checker, HasDiscoveries, Model, Property};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many requests or answers may get lost.
const LOSSES: u8 = 1;
const TIMES: LeaseTimes = LeaseTimes {
    lease_duration: Duration::from_secs(3),
    renew_deadline: Duration::from_secs(2),
    retry_period: Duration::from_secs(1),
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    tick: u64,
    stored: Option<LeaseRecord>,
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
    /// May start again from this tick on.
    Nothing { from: u64 },
    /// Sent, not arrived.
    Request(Request),
    /// Answered; the answer has not arrived.
    Answer(Input),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    Tick,
    /// A replica starts an attempt.
    Start(usize),
    /// Its request arrives.
    Arrive(usize),
    /// It receives the answer, however late.
    Receive(usize),
    /// The request never arrives.
    LoseRequest(usize),
    /// The answer never arrives.
    LoseAnswer(usize),
}

/// A fault of the code that the model must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The API server does not compare versions.
    Unconditional,
    /// Leading counts from the answer and not from the request.
    FromAnswer,
    /// A lost answer counts as a success.
    Hopeful,
    /// The lease is taken over while its holder may still lead.
    Impatient,
}

struct Contest {
    replicas: usize,
    ticks: u64,
    fault: Fault,
}

impl Contest {
    fn now(state: &State) -> Duration {
        Duration::from_secs(state.tick)
    }

    fn perform(&self, state: &mut State, at: usize, mut step: Step) {
        let now = Contest::now(state);
        // A read is answered at once: with a later answer the replica would only wait longer.
        while step == Step::Send(Request::Read) {
            let input = self.answer(state, &Request::Read);
            step = state.replicas[at].candidate.next(now, input);
        }
        state.replicas[at].under_way = match step {
            Step::Done(Outcome { retry_after }) => UnderWay::Nothing { from: state.tick + retry_after.as_secs() },
            Step::Send(request) => UnderWay::Request(request),
        };
    }

    fn answer(&self, state: &mut State, request: &Request) -> Input {
        let fits = |record: &LeaseRecord| match (&state.stored, request) {
            _ if self.fault == Fault::Unconditional => true,
            (None, Request::Create(_)) => true,
            (Some(stored), Request::Replace(_)) => stored.version == record.version,
            _ => false,
        };
        match request {
            Request::Read => state.stored.clone().map_or(Input::Absent, Input::Found),
            Request::Create(record) | Request::Replace(record) if fits(record) => {
                state.version += 1;
                let written = LeaseRecord { version: state.version.to_string(), ..record.clone() };
                state.stored = Some(written.clone());
                Input::Written(written)
            }
            Request::Create(_) | Request::Replace(_) => Input::Conflict,
        }
    }
}

impl Model for Contest {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let times = match self.fault {
            Fault::Impatient => LeaseTimes { lease_duration: Duration::from_secs(1), ..TIMES },
            _ => TIMES,
        };
        let replica = |number: usize| Replica {
            candidate: Candidate::new(number.to_string(), times),
            under_way: UnderWay::Nothing { from: 0 },
        };
        let replicas = (0..self.replicas).map(replica).collect();
        vec![State { tick: 0, stored: None, version: 0, losses: 0, replicas }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.tick < self.ticks {
            actions.push(Action::Tick);
        }
        for (position, replica) in state.replicas.iter().enumerate() {
            match &replica.under_way {
                UnderWay::Nothing { from } if *from <= state.tick => actions.push(Action::Start(position)),
                UnderWay::Nothing { .. } => {}
                UnderWay::Request(_) => {
                    actions.push(Action::Arrive(position));
                    if state.losses < LOSSES {
                        actions.push(Action::LoseRequest(position));
                    }
                }
                UnderWay::Answer(_) => {
                    actions.push(Action::Receive(position));
                    if state.losses < LOSSES {
                        actions.push(Action::LoseAnswer(position));
                    }
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let now = Contest::now(&state);
        match action {
            Action::Tick => state.tick += 1,
            Action::Start(at) => {
                let step = state.replicas[at].candidate.start(now);
                self.perform(&mut state, at, step);
            }
            Action::Arrive(at) => {
                let UnderWay::Request(request) = state.replicas[at].under_way.clone() else { return None };
                let input = self.answer(&mut state, &request);
                state.replicas[at].under_way = UnderWay::Answer(input);
            }
            Action::Receive(at) | Action::LoseRequest(at) | Action::LoseAnswer(at) => {
                let under_way = state.replicas[at].under_way.clone();
                let input = match (&action, under_way) {
                    (Action::Receive(_), UnderWay::Answer(input)) => input,
                    (Action::LoseAnswer(_), UnderWay::Answer(input)) if self.fault == Fault::Hopeful => input,
                    (Action::LoseRequest(_), UnderWay::Request(Request::Create(record) | Request::Replace(record)))
                        if self.fault == Fault::Hopeful =>
                    {
                        Input::Written(record)
                    }
                    _ => Input::Unknown,
                };
                if !matches!(action, Action::Receive(_)) {
                    state.losses += 1;
                }
                let candidate = &mut state.replicas[at].candidate;
                if self.fault == Fault::FromAnswer {
                    candidate.start(now);
                }
                let step = candidate.next(now, input);
                self.perform(&mut state, at, step);
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

/// Three replicas long enough to see a leader replaced, and two replicas long enough to see that twice.
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
    for fault in [Fault::Unconditional, Fault::FromAnswer, Fault::Hopeful, Fault::Impatient] {
        assert!(explore(2, 6, fault).discovery("at most one leads").is_some(), "{fault:?} was not noticed");
    }
}
