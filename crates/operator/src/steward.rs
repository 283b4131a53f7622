//! The steward of one configuration: waits for news, and does what a [`Session`] asks for until it rests.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use advisor::{
    Facts, Plan, Profile, Query, Refusal,
    machine::{Happening, NoPlan, Rhythm, happenings},
    session::{Ask, Reply, Session, Setting},
    writing::{Do, Said, Writing},
};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{Operation, Phase, VirtPlatformConfigStatus},
};
use futures::{
    FutureExt,
    future::{BoxFuture, Either, MaybeDone, maybe_done, select},
};
use http::Method;
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::{
    Class, DrawUpError, Kubernetes, RequestError, Surroundings, advertise,
    answer::LACKS_RIGHT,
    draw_up::{Drawn, draw_up_from},
    events::Events,
    fetch::fetch,
    inbox::{Inbox, Root},
    knowledge::{Knowledge, is_watched},
    patience::Patience,
    root,
    watches::Watches,
};

/// After so many failures in a row people hear of it.
const WORTH_TELLING: usize = 4;

/// A definition that just appeared may take a moment until its kind is served.
const SOON: Duration = Duration::from_secs(1);
const SETTLING: Duration = Duration::from_secs(15);

pub(crate) struct Steward {
    pub(crate) position: usize,
    pub(crate) profile: &'static dyn Profile,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) events: Events,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) version: String,
    pub(crate) epoch: Option<i64>,
    pub(crate) rhythm: Rhythm,
    pub(crate) surroundings: Surroundings,
    pub(crate) state: State,
}

#[derive(Default)]
pub(crate) struct State {
    /// The newest version of the configuration that is known, by watch or by our own write.
    config: Option<Arc<VirtPlatformConfig>>,
    /// Whether the watch has told yet whether there is one.
    is_known: bool,
    knowledge: Knowledge,
    /// How often in a row we could not go on.
    failures: usize,
    /// When the definition of a kind last changed.
    definitions_changed: Option<Instant>,
    /// What may not be watched: the words for it until they are told, then nothing.
    refused: BTreeMap<Query, Option<String>>,
}

impl Steward {
    /// Works until it is dropped.
    pub(crate) async fn work(mut self) {
        let mut patience = Patience::new(self.surroundings.clone());
        let mut due: Option<Instant> = None;
        let mut is_recheck = false;
        loop {
            let timer = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // What is to be looked at anyhow is better looked at with the newest news.
                biased;
                () = self.inbox.arrival() => {
                    let matters = self.read_mail();
                    self.tell_refused();
                    if !matters {
                        continue;
                    }
                }
                () = timer => {
                    if is_recheck {
                        self.state.knowledge.forget_all();
                    }
                }
            }
            match self.attend().await {
                Ok(rest) => {
                    patience.reset();
                    self.state.failures = 0;
                    is_recheck = true;
                    due = rest.map(|rest| Instant::now() + self.until(rest));
                }
                Err(error) => {
                    let wait = patience.next().max(error.retry_after.unwrap_or_default());
                    warn!(config = self.name(), %error, retry_in = ?wait, "could not go on");
                    self.state.failures += 1;
                    if self.state.failures == WORTH_TELLING {
                        self.complain(&error);
                    }
                    // Gone between our look and the request: what was seen no longer holds.
                    if matches!(error.class, Class::KindMissing | Class::NotFound) {
                        self.state.knowledge.forget_all();
                    }
                    is_recheck = false;
                    due = Some(Instant::now() + wait);
                }
            }
            self.watches.attend(self.position, &self.interests());
        }
    }

    fn name(&self) -> &'static str {
        self.profile.about().name
    }

    /// When to look again. A little irregular, so that not everybody asks at once; and soon, when a kind is just coming up.
    fn until(&self, rest: Duration) -> Duration {
        let settling = self.state.definitions_changed.is_some_and(|changed| changed.elapsed() < SETTLING);
        if rest == self.rhythm.prerequisites && settling {
            return SOON.min(rest);
        }
        let regular = rest == self.rhythm.prerequisites || rest == self.rhythm.recheck;
        if regular { self.surroundings.spread(rest) } else { rest }
    }

    /// Takes in what the watches told. Whether anything of it matters.
    fn read_mail(&mut self) -> bool {
        let mail = self.inbox.take();
        let mut matters = false;
        for kind in mail.kinds {
            if self.state.knowledge.forget_kind(kind) {
                self.state.definitions_changed = Some(Instant::now());
                matters = true;
            }
        }
        for (query, why) in mail.refused {
            self.state.refused.entry(query).or_insert(Some(why));
        }
        for (query, sighting) in &mail.sightings {
            self.state.refused.remove(query);
            matters |= self.state.knowledge.absorb(query, sighting);
        }
        match mail.root {
            Some(Root::Absent) => {
                matters = true;
                self.state.config = None;
                self.state.is_known = true;
            }
            Some(Root::Present(config)) if self.is_news(&config) => {
                matters = true;
                self.state.config = Some(config);
                self.state.is_known = true;
            }
            Some(Root::Present(_)) | None => {}
        }
        matters
    }

    /// Whether a configuration that the watch brought is newer than the one that is known. Our own writes come back too.
    fn is_news(&self, config: &VirtPlatformConfig) -> bool {
        let Some(known) = &self.state.config else { return true };
        let version =
            |config: &VirtPlatformConfig| config.resource_version().and_then(|version| version.parse::<u64>().ok());
        known.uid() != config.uid()
            || match (version(known), version(config)) {
                (Some(known), Some(new)) => new > known,
                _ => known.resource_version() != config.resource_version(),
            }
    }

    /// What to watch: everything that was asked for, except what is watched anyhow or never changes.
    fn interests(&self) -> BTreeSet<Query> {
        self.state.knowledge.facts().queries().filter(|query| is_watched(query)).cloned().collect()
    }

    /// Everything there is to do now. How long to rest afterwards, if nothing is heard.
    async fn attend(&mut self) -> Result<Option<Duration>, RequestError> {
        let about = self.profile.about();
        let Some(config) = self.state.config.clone() else {
            self.state.knowledge.forget_all();
            if about.advertised && self.state.is_known {
                advertise::offer(&self.kubernetes, about).await?;
            }
            return Ok(None);
        };
        if about.advertised {
            advertise::refresh(&self.kubernetes, about, &config).await?;
        }
        self.reconcile((*config).clone()).await
    }

    /// Asks and answers until the session rests.
    async fn reconcile(&mut self, config: VirtPlatformConfig) -> Result<Option<Duration>, RequestError> {
        let version = self.version.clone();
        let setting = Setting { profile: self.profile, version: &version, epoch: self.epoch, rhythm: self.rhythm };
        let mut session = Session::new(config);
        let mut ask = session.begin(&setting, self.surroundings.now());
        let mut drawing: Option<Drawing> = None;
        loop {
            let reply = match ask {
                Ask::Rest(rest) => return Ok(rest),
                Ask::Later(why) => return Err(self.trouble(why.to_owned())),
                Ask::Record(new) => {
                    if session.draws_up_next(&new) && drawing.is_none() {
                        drawing = Some(self.begin_drawing(Some(&new), None));
                    }
                    meanwhile(drawing.as_mut(), self.record(session.config(), &new)).await?
                }
                Ask::Reread => {
                    drawing = None;
                    self.reread().await?
                }
                Ask::Look => Reply::Saw(self.look(session.config()).await?),
                Ask::DrawUp { seen } => {
                    let begun = drawing.take().filter(|_| seen.is_none());
                    let drawing = begun.unwrap_or_else(|| self.begin_drawing(session.config(), seen));
                    Reply::Drew(Box::new(self.end_drawing(drawing).await?))
                }
                Ask::Write(request) => self.write(session.writing(), request).await?,
            };
            ask = session.next(&setting, self.surroundings.now(), reply);
            self.state.config = session.config().cloned().map(Arc::new);
        }
    }

    fn trouble(&self, message: String) -> RequestError {
        let doing = format!("attending to VirtPlatformConfig {}", self.name());
        RequestError::other(doing, message, Class::Other)
    }

    /// Writes the status over the version it was derived from.
    async fn record(&self, old: Option<&VirtPlatformConfig>, new: &VirtPlatformConfig) -> Result<Reply, RequestError> {
        let uri = root::object(self.name(), "/status?fieldManager=virt-advisor-operator");
        let doing = format!("recording the status of VirtPlatformConfig {}", self.name());
        match self.kubernetes.call(Method::PUT, uri, Some("application/json"), &json!(new), doing).await {
            Ok(stored) => {
                let nothing = VirtPlatformConfigStatus::default();
                let status = |config: Option<&VirtPlatformConfig>| config.and_then(|config| config.status.clone());
                self.tell(new, &status(old).unwrap_or_default(), new.status.as_ref().unwrap_or(&nothing));
                Ok(Reply::Recorded(Box::new(self.parse(stored)?)))
            }
            Err(error) if matches!(error.class, Class::Conflict | Class::Unknown) => Ok(Reply::NotRecorded),
            Err(error) if error.class == Class::NotFound => Ok(Reply::Config(None)),
            Err(error) => Err(error),
        }
    }

    /// That there is none is for the watch to tell: an answer may be older than what we know.
    async fn reread(&self) -> Result<Reply, RequestError> {
        let doing = format!("reading VirtPlatformConfig {}", self.name());
        let object =
            self.kubernetes.call(Method::GET, root::object(self.name(), ""), None, &Value::Null, doing).await?;
        Ok(Reply::Config(Some(Box::new(self.parse(object)?))))
    }

    fn parse(&self, object: Value) -> Result<VirtPlatformConfig, RequestError> {
        serde_json::from_value(object).map_err(|error| self.trouble(error.to_string()))
    }

    /// Most errors pass. Those that do not are told where people look, since the status may be what cannot be written.
    fn complain(&self, error: &RequestError) {
        if let Some(config) = &self.state.config {
            let note = format!("Trying again: {error}{}", error.advice());
            self.events.publish(config, &Happening { warning: true, reason: "CannotGoOn".into(), note });
        }
    }

    /// Without a watch we still look from time to time; people should know why so late.
    fn tell_refused(&mut self) {
        let Some(config) = &self.state.config else { return };
        for (query, why) in &mut self.state.refused {
            // A plan is possible without evidence, and the plan says so.
            let is_optional = matches!(query, Query::Evidence(_));
            if let Some(why) = why.take().filter(|_| !is_optional) {
                let note = format!("Changes of {query} are only noticed at the next regular look: {why}{LACKS_RIGHT}");
                self.events.publish(config, &Happening { warning: true, reason: "CannotWatch".into(), note });
            }
        }
    }

    /// Log and events tell the same story.
    fn tell(&self, config: &VirtPlatformConfig, before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) {
        for happening in happenings(before, after) {
            let phase = after.phase.map(|phase| phase.as_str()).unwrap_or_default();
            match happening.warning {
                true => warn!(config = self.name(), phase, reason = happening.reason, "{}", happening.note),
                false => info!(config = self.name(), phase, reason = happening.reason, "{}", happening.note),
            }
            self.events.publish(config, &happening);
        }
    }

    async fn look(&mut self, config: Option<&VirtPlatformConfig>) -> Result<Facts, RequestError> {
        let options = config.and_then(|config| config.spec.options.as_ref());
        let Ok(planner) = self.profile.resolve(options) else { return Ok(Facts::default()) };
        let facts = fetch(&self.kubernetes, planner.as_ref(), self.state.knowledge.facts().clone()).await?;
        self.state.knowledge.learn(facts.clone());
        Ok(facts)
    }

    fn kept(&self) -> Facts {
        let is_current = |query: &Query| !self.state.refused.contains_key(query) && !self.inbox.mentions(query);
        self.state.knowledge.kept(is_current)
    }

    /// A plan from what was just seen, or else from what the cluster says now and not from what was heard earlier.
    fn begin_drawing(&self, config: Option<&VirtPlatformConfig>, seen: Option<Facts>) -> Drawing {
        let (kubernetes, profile) = (self.kubernetes.clone(), self.profile);
        let options = config.and_then(|config| config.spec.options.clone());
        let guess = seen.is_none().then(|| self.state.knowledge.facts().clone());
        let known = seen.unwrap_or_else(|| self.kept());
        let drawing = async move { draw_up_from(&kubernetes, profile, options.as_ref(), known, guess).await };
        Box::pin(maybe_done(drawing.boxed()))
    }

    /// Errors are those that may pass.
    async fn end_drawing(&mut self, mut drawing: Drawing) -> Result<Result<Plan, NoPlan>, RequestError> {
        drawing.as_mut().await;
        let Some(drawn) = drawing.as_mut().take_output() else { return Err(self.trouble("a plan was used up".into())) };
        if let Some(facts) = drawn.facts {
            self.state.knowledge.learn(facts);
        }
        match drawn.plan {
            Ok(plan) => match forbidden(&plan).filter(|_| self.doubts_refusals()) {
                Some(refusal) => Err(self.trouble(refusal)),
                None => Ok(Ok(plan)),
            },
            Err(DrawUpError::MissingPrerequisites(missing)) => Ok(Err(NoPlan::Missing(missing))),
            Err(DrawUpError::InvalidOptions(error)) => Ok(Err(error.into())),
            Err(DrawUpError::Request(error)) => self.no_plan(error).map(Err),
        }
    }

    /// An API server that is just starting does not know any roles yet, and refuses everything for a moment.
    fn doubts_refusals(&self) -> bool {
        let status = self.state.config.as_ref().and_then(|config| config.status.as_ref());
        let is_waiting = status.and_then(|status| status.phase) == Some(Phase::PrerequisiteFailed);
        !is_waiting && self.state.failures < WORTH_TELLING - 1
    }

    /// Why there can be no plan as things stand, if it is not for the moment only. A right that we lack is to be waited for.
    fn no_plan(&self, error: RequestError) -> Result<NoPlan, RequestError> {
        let lacks_right = error.class == Class::Forbidden;
        if lacks_right && self.doubts_refusals() {
            return Err(error);
        }
        let why = error.lasting()?;
        Ok(if lacks_right { NoPlan::Missing(why) } else { NoPlan::Impossible(why) })
    }

    async fn write(&mut self, writing: Option<&Writing>, request: Do) -> Result<Reply, RequestError> {
        let Some(writing) = writing else { return Err(self.trouble("there is nothing to write".into())) };
        let planned = writing.planned();
        debug!(config = self.name(), item = planned.item.name, target = %planned.target, ?request, "writing");
        let query = Query::Object(planned.target.clone());
        self.state.knowledge.forget(&query);
        let said = self.kubernetes.send_to(planned, request).await?;
        if let Said::Object(object) = &said
            && planned.item.operation == Operation::Apply
        {
            self.state.knowledge.remember(query, planned.version, (**object).clone());
        }
        Ok(Reply::Target(said))
    }
}

/// A plan that is being drawn up, perhaps while its configuration is told so.
type Drawing = Pin<Box<MaybeDone<BoxFuture<'static, Drawn>>>>;

/// Gets on with a plan until something else is done.
async fn meanwhile<T>(drawing: Option<&mut Drawing>, work: impl Future<Output = T>) -> T {
    let Some(drawing) = drawing else { return work.await };
    match select(pin!(work), drawing).await {
        Either::Left((done, _)) => done,
        Either::Right(((), work)) => work.await,
    }
}

/// What of a plan we may not do.
fn forbidden(plan: &Plan) -> Option<String> {
    plan.refusals().find(|refusal| matches!(refusal, Refusal::Forbidden { .. })).map(ToString::to_string)
}
