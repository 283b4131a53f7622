//! The parts of the lab, in the order in which they need each other.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use devcluster::{Cluster, Component, Identity, Kwok, Port};
use kube::Client;
use standins::{
    descheduler::{self, DeschedulerSettings, Mode, Policy, PolicySource},
    machine_config,
};
use tokio::sync::watch;

use super::{Check, Descheduling, Error, Options, Part, advisor, error::Doing, journal, logs, platform, psi};
use crate::{
    connect,
    exporter::{self, Exporter},
    kwok, prometheus,
    soft_tainter::{SoftTainter, SoftTainterSettings},
    vm::{self, VmController},
    webhook::{self, Webhook},
};

/// How long a part may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(60);
/// How long parts may take to end.
const GRACE: Duration = Duration::from_secs(15);

const MACHINE_CONFIG_OPERATOR: &str = "machine-config-operator";
const JOURNAL: &str = "migrations.json";

/// The programs of others, in the order in which they are told of.
const PROGRAMS: [Component; 6] = [
    Component::Etcd,
    Component::ApiServer,
    Component::Scheduler,
    Component::ControllerManager,
    Component::Kwok,
    Component::Prometheus,
];

/// The parts that are ours, by the names that their logs and users have.
pub const PARTS: [&str; 5] = ["vm-controller", "eviction-webhook", "metrics-exporter", "descheduler", "soft-tainter"];

/// A part that has become ready, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub part: &'static str,
    pub place: String,
}

/// A running lab. Everything ends, and every file goes, when it is dropped.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Lab {
    controller: Option<VmController>,
    webhook: Option<Webhook>,
    exporter: Option<Exporter>,
    stand_in: Option<descheduler::StandIn>,
    soft_tainter: Option<SoftTainter>,
    machine_config_operator: Option<machine_config::StandIn>,
    psi: Option<psi::Keeper>,
    _journal: journal::Keeper,
    client: Client,
    options: Options,
    exporter_port: Port,
    /// Within the cluster's, so that it goes with that, however this process ends.
    folder: PathBuf,
    cluster: Cluster,
}

impl Lab {
    /// Brings everything up, and tells of each part when it is ready.
    pub async fn start(options: Options, tell: impl Fn(Ready)) -> Result<Lab, Error> {
        let exporter_port = port(options.ports.exporter)?;
        let descheduler_port = port(options.ports.descheduler)?;
        let prometheus = prometheus::PrometheusSettings {
            descheduler: Some(descheduler_port.address()),
            signals: options.signals,
            time_scale: options.time_scale,
            ..prometheus::PrometheusSettings::new(exporter_port.address())
        };
        let cluster = Cluster::builder()
            .scheduler()
            .controllers(&kwok::CONTROLLERS)
            .kwok(Kwok { stages: kwok::stages().to_owned() })
            .prometheus(prometheus.component(options.ports.prometheus))
            .start()
            .await?;
        for component in PROGRAMS {
            tell(Ready { part: component.name(), place: cluster.address(component)? });
        }
        let folder = folder_in(&cluster)?;
        let opened = options.logs.open(&folder);
        opened.map_err(|error| Error::Asset(format!("opening logs in {}: {error}", folder.display())))?;
        platform::definitions(&cluster, options.descheduler_release).await?;
        if options.advisor {
            advisor::definitions(&cluster).await?;
        }
        // The garbage collector looks for new kinds every half a minute, and when it starts.
        cluster.restart(Component::ControllerManager).await?;
        let config = cluster.access().config(&Identity::Admin).await?;
        let client = connect::client(config, connect::LAB).doing(|| "making a client for the lab".into())?;
        platform::nodes(&client, &options).await?;
        platform::namespace(&client).await?;
        tell(Ready { part: "nodes", place: format!("{} of {} cores", options.nodes, options.cores) });

        let journal = journal::Keeper::start(client.clone(), folder.join(JOURNAL));
        let mut lab = Lab {
            controller: None,
            webhook: None,
            exporter: None,
            stand_in: None,
            soft_tainter: None,
            machine_config_operator: None,
            psi: None,
            _journal: journal,
            client,
            options,
            exporter_port,
            folder,
            cluster,
        };
        lab.start_controller().await?;
        tell(Ready { part: "vm-controller", place: "ready".into() });
        lab.start_webhook().await?;
        let address = lab.webhook.as_ref().map(|webhook| webhook.address().to_string()).unwrap_or_default();
        tell(Ready { part: "eviction-webhook", place: address });
        lab.start_exporter().await?;
        tell(Ready { part: "metrics-exporter", place: format!("{}/metrics", lab.exporter_url()) });
        lab.start_descheduler(&descheduler_port).await?;
        tell(Ready { part: "descheduler", place: format!("http://{}/metrics", descheduler_port.address()) });
        if lab.options.soft_tainter {
            lab.start_soft_tainter().await?;
            tell(Ready { part: "soft-tainter", place: "ready".into() });
        }
        if lab.options.advisor {
            advisor::platform(&lab.cluster, &lab.folder).await?;
            let client = lab.client_of(MACHINE_CONFIG_OPERATOR, machine_config::COMPONENT).await?;
            lab.psi = lab.stand_in.as_ref().map(|stand_in| psi::Keeper::start(client.clone(), stand_in.psi()));
            let Options { nodes, time_scale, .. } = lab.options;
            lab.machine_config_operator = Some(advisor::machine_config_operator(client, nodes, time_scale).await?);
            tell(Ready { part: MACHINE_CONFIG_OPERATOR, place: "a stand-in; all machines are updated".into() });
        }
        if let Descheduling::By { algorithm, mode } = &lab.options.descheduling {
            lab.order(algorithm, *mode).await?;
        }
        Ok(lab)
    }

    /// Each part is somebody of its own to the API server, so that the audit log tells who did what. A stand-in does it under
    /// the name of whom it stands in for, and says in its requests what it is.
    async fn client_of(&self, user: &str, component: &str) -> Result<Client, Error> {
        let config = self.cluster.access().config(&Identity::user(user, &["system:masters"])).await?;
        connect::client(config, component).doing(|| format!("making a client for {user}"))
    }

    /// Also after [`Lab::stop_controller`], as a pod that comes back.
    pub async fn start_controller(&mut self) -> Result<(), Error> {
        let settings = vm::VmControllerSettings { time_scale: self.options.time_scale, ..self.options.migration.clone() };
        let controller = VmController::start(self.client_of("vm-controller", "vm-controller").await?, settings);
        until("the VM controller has seen the cluster", controller.state(), |state| state.is_ready).await?;
        self.controller = Some(controller);
        Ok(())
    }

    /// Ends it in the middle of whatever it does.
    pub fn stop_controller(&mut self) {
        self.controller = None;
    }

    pub async fn start_webhook(&mut self) -> Result<(), Error> {
        let mut settings = webhook::WebhookSettings {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            reach: webhook::Reach::Host("127.0.0.1".into()),
            ..webhook::WebhookSettings::default()
        };
        settings.exempt_users.push("vm-controller".into());
        self.webhook =
            Some(Webhook::start(self.client_of("eviction-webhook", "eviction-webhook").await?, settings).await?);
        Ok(())
    }

    pub fn stop_webhook(&mut self) {
        self.webhook = None;
    }

    pub async fn start_exporter(&mut self) -> Result<(), Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.exporter_port.number()));
        let settings = exporter::ExporterSettings { address, ..exporter::ExporterSettings::default() };
        let started = Exporter::start(self.client_of("metrics-exporter", "metrics-exporter").await?, settings).await;
        self.exporter = Some(started.map_err(|cause| Error::Listen { part: "metrics exporter", cause })?);
        Ok(())
    }

    pub fn stop_exporter(&mut self) {
        self.exporter = None;
    }

    fn policy_source(&self) -> PolicySource {
        match &self.options.descheduling {
            Descheduling::Policy(text) => {
                let interval = INTERVAL.div_f64(self.options.time_scale);
                PolicySource::Fixed(Policy::from_text(text.clone(), interval, Mode::Automatic))
            }
            Descheduling::By { .. } | Descheduling::Awaited => PolicySource::KubeDescheduler,
        }
    }

    async fn start_descheduler(&mut self, metrics: &Port) -> Result<(), Error> {
        let program = tokio::task::spawn_blocking(descheduler::program).await;
        let program = program.map_err(|error| Error::Asset(error.to_string()))??;
        let who = Identity::user("descheduler", &["system:masters"]);
        let settings = DeschedulerSettings {
            release: self.options.descheduler_release,
            kubeconfig: Some(self.cluster.access().kubeconfig(&who).await?),
            prometheus_url: Some(self.prometheus_url()?),
            metrics: Some((Ipv4Addr::LOCALHOST, metrics.number()).into()),
            time_scale: self.options.time_scale,
            // With the advisor, when its plan has turned it on.
            has_psi: !self.options.advisor,
            policy_source: self.policy_source(),
            ..DeschedulerSettings::new(program, self.folder.join("descheduler"))
        };
        let stand_in = descheduler::StandIn::start(
            self.client_of("descheduler-operator", descheduler::COMPONENT).await?,
            settings,
        )
        .await?;
        until("the descheduler's stand-in has seen the cluster", stand_in.state(), |state| state.is_acting).await?;
        self.stand_in = Some(stand_in);
        Ok(())
    }

    async fn start_soft_tainter(&mut self) -> Result<(), Error> {
        let settings = SoftTainterSettings {
            release: self.options.descheduler_release,
            prometheus_url: self.prometheus_url()?,
            time_scale: self.options.time_scale,
            policy_source: self.policy_source(),
        };
        self.soft_tainter = Some(SoftTainter::start(self.client_of("soft-tainter", "soft-tainter").await?, settings)?);
        Ok(())
    }

    /// Has the descheduler work by this from now on.
    pub async fn order(&self, algorithm: &balance::Algorithm, mode: balance::Mode) -> Result<(), Error> {
        platform::order(&self.client, algorithm, mode, self.options.descheduler_release).await
    }

    /// The administrator's.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where migrations are written down.
    pub fn journal(&self) -> PathBuf {
        self.folder.join(JOURNAL)
    }

    /// The administrator's.
    pub async fn kubeconfig(&self) -> Result<PathBuf, Error> {
        Ok(self.cluster.access().kubeconfig(&Identity::Admin).await?)
    }

    /// All parts, for others to find.
    pub fn parts(&self) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        for component in PROGRAMS {
            let address = self.cluster.address(component)?;
            let (place, check) = match component {
                Component::ApiServer => (format!("https://{address}"), Check::Listens(address)),
                Component::Prometheus => {
                    let url = format!("http://{address}");
                    (url.clone(), Check::Page { url, path: "/-/ready".into() })
                }
                _ => (address.clone(), Check::Listens(address)),
            };
            let log = self.cluster.log(component)?.to_owned();
            parts.push(Part { name: component.name().to_owned(), place, log, check });
        }
        let mut ours = |name: &str, place: String, check: Check| {
            parts.push(Part { name: name.to_owned(), place, log: logs::path(&self.folder, name), check });
        };
        let page = |url: &str, path: &str| Check::Page { url: url.to_owned(), path: path.to_owned() };
        ours("vm-controller", String::new(), Check::Task);
        if let Some(webhook) = &self.webhook {
            let address = webhook.address().to_string();
            ours("eviction-webhook", format!("https://{address}"), Check::Listens(address));
        }
        let url = self.exporter_url();
        ours("metrics-exporter", format!("{url}/metrics"), page(&url, "/health"));
        if let Some(url) = self.descheduler_url() {
            ours("descheduler-operator", String::new(), page(&url, "/health"));
        }
        if self.soft_tainter.is_some() {
            ours("soft-tainter", String::new(), Check::Task);
        }
        if self.machine_config_operator.is_some() {
            ours(MACHINE_CONFIG_OPERATOR, String::new(), Check::Task);
        }
        ours("lab", String::new(), Check::Task);
        if let (Some(url), Some(log)) = (self.descheduler_url(), self.descheduler_log()) {
            let (name, place) = ("descheduler".to_owned(), format!("{url}/metrics"));
            parts.push(Part { name, place, log, check: page(&url, "/healthz") });
        }
        Ok(parts)
    }

    /// The policy of the descheduler that was started last; there is no such file before.
    pub fn policy(&self) -> Option<PathBuf> {
        self.stand_in.as_ref().map(descheduler::StandIn::policy)
    }

    pub fn exporter_url(&self) -> String {
        format!("http://{}", self.exporter_port.address())
    }

    pub fn prometheus_url(&self) -> Result<String, Error> {
        Ok(format!("http://{}", self.cluster.address(Component::Prometheus)?))
    }

    /// Where the descheduler's own metrics are on plain HTTP.
    pub fn descheduler_url(&self) -> Option<String> {
        self.stand_in.as_ref()?.metrics().map(|address| format!("http://{address}"))
    }

    pub fn descheduler_log(&self) -> Option<PathBuf> {
        self.stand_in.as_ref().map(descheduler::StandIn::log)
    }

    pub fn descheduler(&self) -> Option<watch::Receiver<descheduler::StandInState>> {
        self.stand_in.as_ref().map(descheduler::StandIn::state)
    }

    /// Ends the stand-ins and the descheduler in their own time, but by [`GRACE`], and everything else at once.
    pub async fn shutdown(mut self) {
        let operator = self.machine_config_operator.take();
        let stand_in = self.stand_in.take();
        let in_order = async {
            if let Some(operator) = operator {
                let _ = operator.shutdown().await;
            }
            if let Some(stand_in) = stand_in {
                stand_in.shutdown().await;
            }
        };
        // Whoever has not ended by then waits for an answer that does not come, and is ended by being dropped.
        let _ = tokio::time::timeout(GRACE, in_order).await;
    }
}

/// A folder of ours beside the cluster's logs.
fn folder_in(cluster: &Cluster) -> Result<PathBuf, Error> {
    let log = cluster.log(Component::ApiServer)?;
    let folder = log.parent().unwrap_or(Path::new(".")).join("lab");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(Error::Asset(format!("creating {}: {error}", folder.display()))),
    }
}

fn port(wish: Option<u16>) -> Result<Port, Error> {
    Ok(wish.map_or_else(Port::reserve, Port::preferably)?)
}

async fn until<T>(what: &str, mut state: watch::Receiver<T>, holds: impl Fn(&T) -> bool) -> Result<(), Error> {
    let late = || Error::Late { what: what.to_owned(), after: PATIENCE };
    match tokio::time::timeout(PATIENCE, state.wait_for(|state| holds(state))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(late()),
    }
}
