//! The operator of the model: the shipping [`Session`], ask by ask, against the [`Cluster`]. What the steward of the operator
//! does with an ask, this does; nothing is decided here.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use advisor::{
    Facts, Plan, field_manager,
    machine::Rhythm,
    session::{Ask, Reply, Session, Setting},
    writing::{Do, Said},
};
use api::VirtPlatformConfig;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::{
    cluster::{Cluster, Old, Target, contents},
    hashed::{Hashed, digest},
    mutation::Mutation,
    profile::Toy,
};

/// The cluster and the operator, without what the checker remembers about them.
#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Core {
    pub(crate) cluster: Cluster,
    pub(crate) run: Option<Arc<Run>>,
    /// The configuration that a watch has brought so far. May be old.
    pub(crate) known: Hashed<VirtPlatformConfig>,
    /// What the session began with, which after a crash may be brought once more.
    pub(crate) began: Option<Hashed<VirtPlatformConfig>>,
    /// Something happened that the operator will hear of.
    pub(crate) has_news: bool,
    /// Nothing has happened since the session began but what it did.
    pub(crate) is_alone: bool,
    /// For the mistake of planning only once.
    pub(crate) kept: Option<Kept>,
}

impl Core {
    pub(crate) fn ask(&self) -> Option<&Ask> {
        self.run.as_ref().map(|run| &run.ask)
    }
}

/// A session under way, and what the API server has told it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    session: Session,
    pub(crate) ask: Ask,
    /// Stands for everything in it.
    pub(crate) id: u64,
    /// Stands for what the session has in hand: what it saw, the plan, and what became of its items.
    brought: u64,
    /// The configuration as the session knows it: what it began with, or what the API server has told it since.
    heard: Hashed<VirtPlatformConfig>,
    is_told: bool,
    /// It was told that what it knows is no longer so.
    is_outdated: bool,
    /// The configuration as it really was when the session began. Does not matter once the API server has told.
    then: Option<Hashed<VirtPlatformConfig>>,
    /// What it was shown of the targets.
    pub(crate) shown: Vec<(usize, Option<Hashed<Value>>)>,
    /// What the plan was drawn up from.
    pub(crate) drawn: Option<Drawn>,
    /// The input of a draft that is not a plan yet.
    fetched: Option<u8>,
}

/// What the targets held, of what is managed, and the input, when a plan was drawn up.
#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Drawn {
    pub(crate) held: Hashed<Vec<String>>,
    pub(crate) input: u8,
}

impl Run {
    /// What the API server itself has told this session counts, and at the least what was so when it began.
    pub(crate) fn told(&self) -> &VirtPlatformConfig {
        self.then.as_ref().unwrap_or(&self.heard)
    }

    /// Where the item that is being written is among the targets.
    pub(crate) fn at(&self, toy: &Toy) -> Option<usize> {
        let writing = self.session.writing()?;
        toy.parts.iter().position(|part| part.name() == writing.planned().item.name)
    }

    fn tell(&mut self, config: &Hashed<VirtPlatformConfig>) {
        self.heard = config.clone();
        self.is_told = true;
        self.is_outdated = false;
        self.then = None;
    }

    /// The session forgets all that it has seen.
    fn start_over(&mut self) {
        self.brought = 0;
        self.shown.clear();
        self.drawn = None;
        self.fetched = None;
    }

    fn show(&mut self, at: usize, target: &Target) {
        let shown = (at, target.hashed().cloned());
        if !self.shown.contains(&shown) {
            self.shown.push(shown);
        }
    }

    /// Two sessions that know the same and ask for the same go on the same way, whatever led to them. (They also count their
    /// steps; that they may run out of them is left aside here, and would show as a circle.)
    fn identified(mut self) -> Arc<Self> {
        self.shown.sort_by_key(|shown| digest(shown));
        let ask = match &self.ask {
            Ask::Record(new) => (0, contents(new)),
            Ask::Reread => (1, 0),
            Ask::Look => (2, 0),
            Ask::DrawUp { seen } => (3, u64::from(seen.is_some())),
            Ask::Write(request) => (4, digest(format!("{request:?}"))),
            Ask::Rest(_) => (5, 0),
            Ask::Later(_) => (6, 0),
        };
        let config = (&self.heard, self.is_told, self.is_outdated, &self.then);
        self.id = digest((ask, config, self.brought, &self.shown, &self.drawn, self.fetched));
        Arc::new(self)
    }
}

impl Hash for Run {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Kept(Arc<Plan>);

impl Hash for Kept {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.digest, &self.0.snapshot).hash(state);
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// What becomes of the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Answered,
    /// Carried out, and the answer lost.
    Unheard,
    /// Refused for good.
    Refused,
    /// Answered with what was so earlier.
    Stale(Old),
}

/// What the operator did to the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deed {
    Nothing,
    Recorded,
    /// A write that the API server accepted.
    Wrote {
        at: usize,
        request: Do,
    },
}

/// What an answer leads to, in the session and in the part of the cluster that the request was about.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) run: Arc<Run>,
    config: Option<Hashed<VirtPlatformConfig>>,
    target: Option<(usize, Target)>,
    kept: Option<Kept>,
    /// The session ends here, for lack of an answer.
    is_dropped: bool,
    pub(crate) deed: Deed,
}

/// What a request is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touches {
    Nothing,
    Config,
    /// Everything that a profile wants to know.
    Everything,
    Targets,
    Target(usize),
}

/// What stays the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) toy: &'static Toy,
    pub(crate) mutation: Option<Mutation>,
}

/// Whether a request may change something.
pub(crate) fn is_effect(ask: &Ask) -> bool {
    matches!(ask, Ask::Record(_)) || is_write(ask)
}

pub(crate) fn is_write(ask: &Ask) -> bool {
    matches!(ask, Ask::Write(request) if !matches!(request, Do::Read))
}

impl Stage {
    fn setting(&self) -> Setting<'static> {
        Setting { profile: self.toy, version: "v1", epoch: None, rhythm: Rhythm::default() }
    }

    fn view(&self, config: &VirtPlatformConfig) -> VirtPlatformConfig {
        let config = config.clone();
        match self.mutation {
            Some(mutation) => mutation.view(config),
            None => config,
        }
    }

    fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(crate) fn touches(&self, run: &Run) -> Touches {
        match &run.ask {
            Ask::Rest(_) | Ask::Later(_) => Touches::Nothing,
            Ask::Record(_) | Ask::Reread => Touches::Config,
            Ask::Look | Ask::DrawUp { seen: None } => Touches::Everything,
            Ask::DrawUp { seen: Some(_) } => Touches::Targets,
            Ask::Write(_) => run.at(self.toy).map_or(Touches::Nothing, Touches::Target),
        }
    }

    /// Stands for everything that the answer to a session depends on.
    pub(crate) fn circumstances(&self, core: &Core, run: &Run) -> u64 {
        match self.touches(run) {
            Touches::Nothing => 0,
            Touches::Config => digest(&core.cluster.config),
            Touches::Everything => core.cluster.outlook(),
            Touches::Targets => digest((&core.cluster.targets, &core.kept)),
            Touches::Target(at) => digest(&core.cluster.targets[at]),
        }
    }

    /// A session that begins with what a watch has brought.
    pub(crate) fn first(&self, core: &Core) -> Arc<Run> {
        let mut session = Session::new(self.view(&core.known));
        let ask = session.begin(&self.setting(), now());
        let run = Run {
            session,
            ask,
            id: 0,
            brought: 0,
            heard: core.known.clone(),
            is_told: false,
            is_outdated: false,
            then: Some(core.cluster.config.clone()),
            shown: Vec::new(),
            drawn: None,
            fetched: None,
        };
        run.identified()
    }

    /// The session is dropped where it stands. What the next one is brought first may be what this one last knew, or even
    /// what it began with.
    pub(crate) fn drop_run(&self, core: &Core, is_forgetful: bool) -> Core {
        let mut core = core.clone();
        if let Some(run) = core.run.take() {
            let began = core.began.take().filter(|_| is_forgetful);
            core.known = began.unwrap_or_else(|| run.heard.clone());
        }
        core.has_news = true;
        core.is_alone = false;
        core.cluster.count_anew();
        core
    }

    /// What an answer leads to, given what the session may meet with.
    pub(crate) fn turn(&self, core: &Core, run: &Run, fate: Fate) -> Option<Turn> {
        match fate {
            Fate::Unheard if !is_effect(&run.ask) => return None,
            Fate::Refused if !is_write(&run.ask) => return None,
            Fate::Stale(_) if !matches!(run.ask, Ask::Look | Ask::DrawUp { seen: None } | Ask::Write(Do::Read)) => {
                return None;
            }
            _ => {}
        }
        let mut run = run.clone();
        let mut cluster = match fate {
            Fate::Stale(old) => core.cluster.as_it_was(old)?,
            _ => core.cluster.clone(),
        };
        let mut kept = None;
        let (mut config, mut target, mut is_dropped, mut deed) = (None, None, false, Deed::Nothing);
        let reply = match std::mem::replace(&mut run.ask, Ask::Reread) {
            Ask::Rest(_) | Ask::Later(_) => return None,
            Ask::Record(new) => {
                let before = cluster.config.clone();
                let reply = self.record(&mut cluster, &mut run, &new, fate);
                if before != cluster.config {
                    deed = Deed::Recorded;
                    config = Some(cluster.config.clone());
                }
                if run.heard != cluster.config {
                    // A mistake: it believes something else.
                    run.brought = digest((run.brought, contents(&new)));
                }
                if reply == Reply::NotRecorded {
                    run.is_outdated = true;
                    run.start_over();
                }
                Some(reply)
            }
            Ask::Reread if self.has(Mutation::NotConfirmed) && !run.is_outdated => {
                run.brought = digest(run.brought);
                Some(Reply::Config(run.session.config().cloned().map(Box::new)))
            }
            Ask::Reread => {
                let version = run.session.config().map(|config| &config.metadata.resource_version);
                if version != Some(&cluster.config.metadata.resource_version) {
                    run.start_over();
                }
                run.tell(&cluster.config);
                Some(Reply::Config(Some(Box::new(self.view(&cluster.config)))))
            }
            Ask::Look => {
                run.brought = digest(("saw", cluster.outlook()));
                Some(Reply::Saw(self.look(&cluster, &mut run)))
            }
            // To fetch and to preview are two moments.
            Ask::DrawUp { seen: None } => {
                run.brought = digest(("saw", cluster.outlook()));
                run.ask = Ask::DrawUp { seen: Some(self.look(&cluster, &mut run)) };
                None
            }
            Ask::DrawUp { seen: Some(facts) } => match self.draw_up(core, &mut run, &facts) {
                Some(plan) => {
                    run.brought = digest(("drew", run.brought, &core.kept));
                    kept = self.has(Mutation::PlansOnce).then(|| Kept(Arc::new(plan.clone())));
                    Some(Reply::Drew(Box::new(Ok(plan))))
                }
                None => {
                    run.brought = 0;
                    run.ask = Ask::DrawUp { seen: None };
                    None
                }
            },
            Ask::Write(request) => {
                let at = run.at(self.toy)?;
                let manager = field_manager::of_item(&run.session.writing()?.planned().item).to_owned();
                let said = self.write(&mut cluster, (at, &manager), request, fate, &mut deed);
                if deed != Deed::Nothing {
                    target = Some((at, cluster.targets[at].clone()));
                }
                is_dropped = fate == Fate::Unheard && !self.has(Mutation::SilenceIsFailure);
                if matches!(said, Said::Object(_) | Said::Absent) {
                    run.show(at, &cluster.targets[at]);
                }
                run.brought = digest((run.brought, std::mem::discriminant(&said), &cluster.targets[at]));
                (!is_dropped).then_some(Reply::Target(said))
            }
        };
        if let Some(reply) = reply {
            run.ask = run.session.next(&self.setting(), now(), reply);
        }
        Some(Turn { run: run.identified(), config, target, kept, is_dropped, deed })
    }

    /// The state after a turn.
    pub(crate) fn after(&self, core: &Core, turn: &Turn, fate: Fate) -> Core {
        let mut core = core.clone();
        if let Some(config) = &turn.config {
            core.cluster.config = config.clone();
        }
        if let Some((at, target)) = &turn.target {
            core.cluster.targets[*at] = target.clone();
        }
        core.kept = core.kept.or_else(|| turn.kept.clone());
        core.run = Some(turn.run.clone());
        // Nobody refuses the next one, nor are its answers old; and of what was old it hears the news.
        core.is_alone &= matches!(fate, Fate::Answered | Fate::Unheard);
        core.has_news |= matches!(fate, Fate::Stale(_));
        if turn.is_dropped { self.drop_run(&core, false) } else { self.go_on(core) }
    }

    /// With a session that has asked for something; or without it, if that is to be left alone.
    pub(crate) fn go_on(&self, mut core: Core) -> Core {
        match &core.run {
            Some(run) if matches!(run.ask, Ask::Rest(_)) => {
                core.known = run.heard.clone();
                core.has_news |= core.known != core.cluster.config;
                core.run = None;
                core.began = None;
                core.is_alone = false;
                core.cluster.count_anew();
                core
            }
            Some(run) if matches!(run.ask, Ask::Later(_)) => self.drop_run(&core, false),
            _ => core,
        }
    }

    fn record(&self, cluster: &mut Cluster, run: &mut Run, new: &VirtPlatformConfig, fate: Fate) -> Reply {
        let mut new = new.clone();
        if let (Some(mutation), Some(status)) = (self.mutation, &mut new.status) {
            mutation.recorded(status);
        }
        let over = new.metadata.resource_version.clone();
        if self.mutation.is_some_and(|mutation| mutation.keeps_to_itself(run.session.config(), &new)) {
            return Reply::Recorded(Box::new(new));
        }
        let over = over.as_deref().filter(|_| !self.has(Mutation::RecordsOverAnything));
        if !cluster.record(&new, over) {
            return match self.has(Mutation::RecordConflictIsSuccess) {
                true => Reply::Recorded(Box::new(new)),
                false => Reply::NotRecorded,
            };
        }
        if fate == Fate::Unheard {
            return Reply::NotRecorded;
        }
        run.tell(&cluster.config);
        Reply::Recorded(Box::new(self.view(&cluster.config)))
    }

    fn look(&self, cluster: &Cluster, run: &mut Run) -> Facts {
        let mut cluster = cluster.clone();
        let status = run.session.config().and_then(|config| config.status.as_ref());
        if self.has(Mutation::InputNotWatched) && status.is_some_and(|status| !status.items.is_empty()) {
            cluster.input = 1;
        }
        run.fetched = Some(cluster.input);
        for (at, target) in cluster.targets.iter().enumerate() {
            run.show(at, target);
        }
        cluster.facts(self.toy)
    }

    fn draw_up(&self, core: &Core, run: &mut Run, facts: &Facts) -> Option<Plan> {
        if let Some(Kept(plan)) = &core.kept {
            return Some((**plan).clone());
        }
        let options = run.session.config().and_then(|config| config.spec.options.as_ref());
        let plan = core.cluster.draw_up(self.toy, options, facts.clone())?;
        let held = |part: &crate::profile::Part| part.managed(facts.object(&part.target()));
        let held = Hashed::new(self.toy.parts.iter().map(held).collect());
        run.drawn = Some(Drawn { held, input: run.fetched.unwrap_or_default() });
        Some(plan)
    }

    fn write(
        &self,
        cluster: &mut Cluster,
        (at, manager): (usize, &str),
        mut request: Do,
        fate: Fate,
        deed: &mut Deed,
    ) -> Said {
        if fate == Fate::Refused {
            return Said::Failed("no".into());
        }
        if let Some(mutation) = self.mutation {
            mutation.sent(&mut request);
        }
        let said = cluster.answer(at, manager, &request);
        if !matches!(request, Do::Read) && matches!(said, Said::Object(_)) {
            *deed = Deed::Wrote { at, request: request.clone() };
        }
        match (said, request) {
            _ if fate == Fate::Unheard => Said::Failed("no answer".into()),
            (Said::Conflict, Do::Apply(fields)) if self.has(Mutation::ConflictIsSuccess) => {
                Said::Object(Box::new(fields))
            }
            (said, _) => said,
        }
    }
}

/// Time stands still.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}
