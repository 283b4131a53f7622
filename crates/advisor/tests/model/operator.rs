//! The operator of the model: the shipping [`Session`], ask by ask, against the [`Cluster`]. What the steward of the operator
//! does with an ask, this does; nothing is decided here.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use advisor::{
    Facts, Plan,
    machine::Rhythm,
    session::{Ask, Reply, Session, Setting},
    writing::{Do, Said},
};
use api::VirtPlatformConfig;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::{
    cluster::Cluster,
    hashed::{Hashed, digest},
    mutation::Mutation,
    profile::Toy,
};

/// The cluster and the operator, without what the checker remembers about them.
#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct Core {
    pub(crate) cluster: Cluster,
    pub(crate) run: Option<Run>,
    /// The configuration that a watch has brought so far. May be old.
    pub(crate) known: Hashed<VirtPlatformConfig>,
    /// Something happened that the operator will hear of.
    pub(crate) has_news: bool,
    /// For the mistake of planning only once.
    pub(crate) kept: Option<Kept>,
}

/// A session under way, and what the API server has told it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) session: Arc<Session>,
    pub(crate) ask: Arc<Ask>,
    /// Follows from what the session began with and all replies, and thus stands for all that follows from these.
    id: u64,
    pub(crate) began: Hashed<VirtPlatformConfig>,
    /// The configuration as the API server itself last told it.
    pub(crate) told: Option<Hashed<VirtPlatformConfig>>,
    /// The configuration as it really was when the session began.
    pub(crate) then: Hashed<VirtPlatformConfig>,
    /// The versions of the targets that it was shown.
    pub(crate) shown: Vec<(usize, Option<Hashed<Value>>)>,
    /// What the targets held, of what is managed, and the input, when the plan was drawn up.
    pub(crate) drawn: Option<(Vec<String>, u8)>,
    /// The input of each draft that is not a plan yet.
    fetched: Option<u8>,
    /// Nothing has happened since it began but what it did.
    pub(crate) is_alone: bool,
}

/// Stands for a session that was told that what it began with is no longer so.
const OUTDATED: (u64, u64) = (0, 0);

impl Run {
    /// Tells one run from all others. How it really was in the beginning matters until the API server has told.
    fn key(&self) -> impl Hash + PartialEq {
        let then = self.then.clone();
        (self.id, self.began.clone(), self.is_alone, self.told.is_none().then_some(then))
    }

    /// The session forgets all that it has seen. (It also counts its steps; that it may run out of them is left aside here,
    /// and would show as a circle.)
    fn start_over(&mut self) {
        self.id = OUTDATED.0;
        self.shown.clear();
        self.drawn = None;
        self.fetched = None;
        if let Some(told) = &self.told {
            self.began = told.clone();
        }
    }
}

impl Hash for Run {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
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
}

/// What the operator did to the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Deed {
    Nothing,
    Recorded {
        before: Hashed<VirtPlatformConfig>,
    },
    /// A write that the API server accepted, and the target before it.
    Wrote {
        at: usize,
        request: Do,
        before: Option<Hashed<Value>>,
    },
}

/// What stays the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage {
    pub(crate) toy: &'static Toy,
    pub(crate) mutation: Option<Mutation>,
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

    /// Begins a session with the newest configuration, or with an older one that a watch brought.
    pub(crate) fn begin(&self, core: &Core, is_stale: bool) -> Core {
        let mut core = core.clone();
        if !is_stale {
            core.known = core.cluster.config.clone();
        }
        let mut session = Session::new(self.view(&core.known));
        let ask = session.begin(&self.setting(), now());
        core.has_news = is_stale;
        let run = Run {
            session: Arc::new(session),
            ask: Arc::new(ask),
            id: digest(&core.known),
            began: core.known.clone(),
            told: None,
            then: core.cluster.config.clone(),
            shown: Vec::new(),
            drawn: None,
            fetched: None,
            is_alone: !is_stale,
        };
        self.go_on(core, run)
    }

    /// The session is dropped where it stands. What the next one is brought first may be what this one last knew, or even
    /// what it began with.
    pub(crate) fn drop_run(&self, core: &Core, is_forgetful: bool) -> Core {
        let mut core = core.clone();
        if let Some(run) = core.run.take() {
            core.known = run.told.filter(|_| !is_forgetful).unwrap_or(run.began);
        }
        core.has_news = true;
        core
    }

    /// Answers what the session asks for. None when there is no session, or no request that could meet this fate.
    pub(crate) fn step(&self, core: &Core, fate: Fate) -> Option<(Core, Deed)> {
        let run = core.run.as_ref()?;
        let ask = run.ask.clone();
        let is_write = matches!(&*ask, Ask::Write(request) if !matches!(request, Do::Read));
        match fate {
            Fate::Unheard if !is_write && !matches!(&*ask, Ask::Record(_)) => return None,
            Fate::Refused if !is_write => return None,
            _ => {}
        }
        let mut core = core.clone();
        let mut run = run.clone();
        let mut deed = Deed::Nothing;
        // With the reply, what it follows from.
        let (reply, from) = match &*ask {
            Ask::Rest(_) | Ask::Later(_) => return None,
            Ask::Record(new) => {
                let before = core.cluster.config.clone();
                let reply = self.record(&mut core, &mut run, new, fate);
                if before != core.cluster.config {
                    deed = Deed::Recorded { before };
                }
                if reply == Reply::NotRecorded {
                    run.start_over();
                    (reply, OUTDATED.1)
                } else {
                    (reply, digest(&core.cluster.config))
                }
            }
            Ask::Reread if self.has(Mutation::NotConfirmed) && run.id != digest(OUTDATED) => {
                (Reply::Config(run.session.config().cloned().map(Box::new)), 0)
            }
            Ask::Reread => {
                let is_news = run.session.config().map(|config| &config.metadata.resource_version)
                    != Some(&core.cluster.config.metadata.resource_version);
                run.told = Some(core.cluster.config.clone());
                if is_news {
                    run.start_over();
                }
                let config = self.view(&core.cluster.config);
                (Reply::Config(Some(Box::new(config))), digest(&core.cluster.config))
            }
            Ask::Look => (Reply::Saw(self.look(&core, &mut run)), core.cluster.outlook()),
            Ask::DrawUp { seen: None } => {
                // To fetch and to preview are two moments.
                let facts = self.look(&core, &mut run);
                run.id = digest((run.id, core.cluster.outlook()));
                run.ask = Arc::new(Ask::DrawUp { seen: Some(facts) });
                core.run = Some(run);
                return Some((core, deed));
            }
            Ask::DrawUp { seen: Some(facts) } => match self.draw_up(&mut core, &mut run, facts) {
                Some(plan) => (Reply::Drew(Box::new(Ok(plan))), digest(&core.kept)),
                None => {
                    run.id = digest((run.id, "moved"));
                    run.ask = Arc::new(Ask::DrawUp { seen: None });
                    core.run = Some(run);
                    return Some((core, deed));
                }
            },
            Ask::Write(request) => {
                let (at, said, done) = self.write(&mut core, &run, request, fate);
                deed = done;
                if fate == Fate::Unheard && !self.has(Mutation::SilenceIsFailure) {
                    return Some((self.drop_run(&core, false), deed));
                }
                // Nobody refuses the next one.
                run.is_alone &= fate != Fate::Refused;
                if matches!(said, Said::Object(_) | Said::Absent) {
                    run.shown.push((at, core.cluster.targets[at].object.clone()));
                }
                let from = digest((std::mem::discriminant(&said), &core.cluster.targets[at]));
                (Reply::Target(said), from)
            }
        };
        let mut session = (*run.session).clone();
        run.id = digest((run.id, from));
        run.ask = Arc::new(session.next(&self.setting(), now(), reply));
        run.session = Arc::new(session);
        Some((self.go_on(core, run), deed))
    }

    /// With a session that has asked for something; or without it, if that is to be left alone.
    fn go_on(&self, mut core: Core, run: Run) -> Core {
        match &*run.ask {
            Ask::Rest(_) => {
                core.known = self.rested(&core, &run);
                core.has_news |= core.known != core.cluster.config;
                core.run = None;
            }
            Ask::Later(_) => {
                core.run = Some(run);
                core = self.drop_run(&core, false);
            }
            _ => core.run = Some(run),
        }
        core
    }

    fn rested(&self, core: &Core, run: &Run) -> Hashed<VirtPlatformConfig> {
        let known = run.session.config().and_then(|config| config.metadata.resource_version.as_ref());
        let is_current = known == core.cluster.config.metadata.resource_version.as_ref();
        if is_current { core.cluster.config.clone() } else { run.told.clone().unwrap_or_else(|| run.began.clone()) }
    }

    fn record(&self, core: &mut Core, run: &mut Run, new: &VirtPlatformConfig, fate: Fate) -> Reply {
        let mut new = new.clone();
        if let (Some(mutation), Some(status)) = (self.mutation, &mut new.status) {
            mutation.recorded(status);
        }
        let over = new.metadata.resource_version.clone();
        if self.mutation.is_some_and(|mutation| mutation.keeps_to_itself(run.session.config(), &new)) {
            return Reply::Recorded(Box::new(new));
        }
        let over = over.as_deref().filter(|_| !self.has(Mutation::RecordsOverAnything));
        if !core.cluster.record(&new, over) {
            return match self.has(Mutation::RecordConflictIsSuccess) {
                true => Reply::Recorded(Box::new(new)),
                false => Reply::NotRecorded,
            };
        }
        if fate == Fate::Unheard {
            return Reply::NotRecorded;
        }
        run.told = Some(core.cluster.config.clone());
        Reply::Recorded(Box::new(self.view(&core.cluster.config)))
    }

    fn look(&self, core: &Core, run: &mut Run) -> Facts {
        let mut cluster = core.cluster.clone();
        if self.has(Mutation::InputNotWatched) && cluster.config.status.as_ref().is_some_and(|it| !it.items.is_empty())
        {
            cluster.input = 1;
        }
        run.fetched = Some(cluster.input);
        for (at, target) in cluster.targets.iter().enumerate() {
            let shown = (at, target.object.clone());
            if !run.shown.contains(&shown) {
                run.shown.push(shown);
            }
        }
        cluster.facts(self.toy)
    }

    fn draw_up(&self, core: &mut Core, run: &mut Run, facts: &Facts) -> Option<Plan> {
        if let Some(Kept(plan)) = &core.kept {
            return Some((**plan).clone());
        }
        let options = run.session.config().and_then(|config| config.spec.options.as_ref());
        let plan = core.cluster.draw_up(self.toy, options, facts.clone())?;
        let held = |part: &crate::profile::Part| part.managed(facts.object(&part.target()));
        run.drawn = Some((self.toy.parts.iter().map(held).collect(), run.fetched.unwrap_or_default()));
        if self.has(Mutation::PlansOnce) {
            core.kept = Some(Kept(Arc::new(plan.clone())));
        }
        Some(plan)
    }

    fn write(&self, core: &mut Core, run: &Run, request: &Do, fate: Fate) -> (usize, Said, Deed) {
        let name = run.session.writing().map(|writing| writing.planned().item.name.clone()).unwrap_or_default();
        let at = self.toy.parts.iter().position(|part| part.name() == name).unwrap();
        if fate == Fate::Refused {
            return (at, Said::Failed("no".into()), Deed::Nothing);
        }
        let mut request = request.clone();
        if let Some(mutation) = self.mutation {
            mutation.sent(&mut request);
        }
        let before = core.cluster.targets[at].object.clone();
        let mut said = core.cluster.answer(at, &request);
        let is_accepted = !matches!(request, Do::Read) && matches!(said, Said::Object(_));
        if self.has(Mutation::ConflictIsSuccess)
            && let (Said::Conflict, Do::Apply(fields)) = (&said, &request)
        {
            said = Said::Object(Box::new(fields.clone()));
        }
        if fate == Fate::Unheard {
            said = Said::Failed("no answer".into());
        }
        (at, said, if is_accepted { Deed::Wrote { at, request, before } } else { Deed::Nothing })
    }
}

/// Time stands still.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}
