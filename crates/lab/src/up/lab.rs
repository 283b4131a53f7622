//! Starts, holds and stops the parts of the lab. Each part starts after those that it needs.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use devcluster::{Cluster, Component, Identity, Kwok, Port};
use kube::Client;
use kube_io::connect;
use standins::{
    descheduler::{self, DeschedulerSettings, Mode, Policy, PolicySource},
    machine_config,
};
use tokio::sync::watch;

use super::{Check, Descheduling, Options, Part, advisor, journal::JournalTask, logs, platform, psi::PsiTask};
use crate::{
    COMPONENT, Error,
    error::Context,
    exporter::{self, Exporter},
    kwok, prometheus,
    soft_tainter::{SoftTainter, SoftTainterSettings},
    vm::{self, VmController},
    webhook::{self, Webhook},
};

const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the descheduler runs with a policy as it is.
const INTERVAL: Duration = Duration::from_secs(60);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

const MACHINE_CONFIG_OPERATOR: &str = "machine-config-operator";
const JOURNAL: &str = "migrations.json";

/// The programs of third parties, in the order in which they are reported.
const PROGRAMS: [Component; 6] = [
    Component::Etcd,
    Component::ApiServer,
    Component::Scheduler,
    Component::ControllerManager,
    Component::Kwok,
    Component::Prometheus,
];

/// Our own parts, by the names of their logs and users.
pub const PARTS: [&str; 5] = ["vm-controller", "eviction-webhook", "metrics-exporter", "descheduler", "soft-tainter"];

/// A part that has become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    pub part: &'static str,
    /// An address, or a word about its state.
    pub place: String,
}

/// A running lab. Dropping it ends every process and removes every file.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Lab {
    controller: Option<VmController>,
    webhook: Option<Webhook>,
    exporter: Option<Exporter>,
    stand_in: Option<descheduler::StandIn>,
    soft_tainter: Option<SoftTainter>,
    machine_config_operator: Option<machine_config::StandIn>,
    psi: Option<PsiTask>,
    _journal: JournalTask,
    client: Client,
    options: Options,
    exporter_port: Port,
    /// Within the cluster's folder, so that it is removed with it, however this process ends.
    folder: PathBuf,
    cluster: Cluster,
}

impl Lab {
    /// Starts all parts, and reports each one that is ready.
    pub async fn start(options: Options, report: impl Fn(Ready)) -> Result<Lab, Error> {
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
            report(Ready { part: component.name(), place: cluster.address(component)? });
        }
        let folder = folder_in(&cluster)?;
        let opened = options.logs.open(&folder);
        opened.map_err(|error| Error::Asset(format!("opening logs in {}: {error}", folder.display())))?;
        platform::definitions(&cluster, options.descheduler_release).await?;
        if options.advisor {
            advisor::definitions(&cluster).await?;
        }
        // The garbage collector discovers new kinds when it starts, and then only every half a minute.
        cluster.restart(Component::ControllerManager).await?;
        let config = cluster.access().config(&Identity::Admin).await?;
        let client = connect::client(config, COMPONENT).context(|| "making a client for the lab".into())?;
        platform::nodes(&client, &options).await?;
        platform::namespace(&client).await?;
        report(Ready { part: "nodes", place: format!("{} of {} cores", options.nodes, options.cores) });

        let journal = JournalTask::start(client.clone(), folder.join(JOURNAL));
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
        report(Ready { part: "vm-controller", place: "ready".into() });
        lab.start_webhook().await?;
        let address = lab.webhook.as_ref().map(|webhook| webhook.address().to_string()).unwrap_or_default();
        report(Ready { part: "eviction-webhook", place: address });
        lab.start_exporter().await?;
        report(Ready { part: "metrics-exporter", place: format!("{}/metrics", lab.exporter_url()) });
        lab.start_descheduler(&descheduler_port).await?;
        report(Ready { part: "descheduler", place: format!("http://{}/metrics", descheduler_port.address()) });
        if lab.options.soft_tainter {
            lab.start_soft_tainter().await?;
            report(Ready { part: "soft-tainter", place: "ready".into() });
        }
        if lab.options.advisor {
            advisor::platform(&lab.cluster, &lab.folder).await?;
            let client = lab.client_of(MACHINE_CONFIG_OPERATOR, machine_config::COMPONENT).await?;
            lab.psi = lab.stand_in.as_ref().map(|stand_in| PsiTask::start(client.clone(), stand_in.psi()));
            let Options { nodes, time_scale, .. } = lab.options;
            lab.machine_config_operator = Some(advisor::machine_config_operator(client, nodes, time_scale).await?);
            report(Ready { part: MACHINE_CONFIG_OPERATOR, place: "a stand-in; all machines are updated".into() });
        }
        if let Descheduling::By { algorithm, mode } = &lab.options.descheduling {
            lab.balance(algorithm, *mode).await?;
        }
        Ok(lab)
    }

    /// Each part has its own user, so that the audit log shows which part sent a request. A stand-in has the user of what it
    /// replaces, and its user agent shows that it is a stand-in.
    async fn client_of(&self, user: &str, component: &str) -> Result<Client, Error> {
        let config = self.cluster.access().config(&Identity::user(user, &["system:masters"])).await?;
        connect::client(config, component).context(|| format!("making a client for {user}"))
    }

    /// Also after [`Lab::stop_controller`], like a pod that restarts.
    pub async fn start_controller(&mut self) -> Result<(), Error> {
        let settings =
            vm::VmControllerSettings { time_scale: self.options.time_scale, ..self.options.migration.clone() };
        let controller = VmController::start(self.client_of("vm-controller", "vm-controller").await?, settings);
        until("the VM controller has seen the cluster", controller.state(), |state| state.is_ready).await?;
        self.controller = Some(controller);
        Ok(())
    }

    /// Stops the controller at once.
    pub fn stop_controller(&mut self) {
        self.controller = None;
    }

    pub async fn start_webhook(&mut self) -> Result<(), Error> {
        let mut settings = webhook::WebhookSettings {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            endpoint: webhook::Endpoint::Host("127.0.0.1".into()),
            migration_aware: self.migration_aware(),
            ..webhook::WebhookSettings::default()
        };
        settings.exempt_users.push("vm-controller".into());
        self.webhook =
            Some(Webhook::start(self.client_of("eviction-webhook", "eviction-webhook").await?, settings).await?);
        Ok(())
    }

    fn migration_aware(&self) -> webhook::MigrationAwareSettings {
        let switch = match (&self.options.descheduling, self.options.migration_aware) {
            (Descheduling::Policy(_), webhook::Switch::Auto) => webhook::Switch::Off,
            (_, switch) => switch,
        };
        let Options { descheduler_release: release, time_scale, .. } = self.options;
        webhook::MigrationAwareSettings { switch, release, time_scale }
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
            // With the advisor, only after its plan has enabled it.
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
        let client = self.client_of("soft-tainter", "soft-tainter").await?;
        self.soft_tainter = Some(SoftTainter::start(client, settings).map_err(Error::SoftTainter)?);
        Ok(())
    }

    /// Makes the descheduler balance with this algorithm and mode.
    pub async fn balance(&self, algorithm: &balance::Algorithm, mode: balance::Mode) -> Result<(), Error> {
        platform::apply_kube_descheduler(&self.client, algorithm, mode, self.options.descheduler_release).await
    }

    /// The client of the administrator.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file with the migrations.
    pub fn journal(&self) -> PathBuf {
        self.folder.join(JOURNAL)
    }

    /// The kubeconfig of the administrator.
    pub async fn kubeconfig(&self) -> Result<PathBuf, Error> {
        Ok(self.cluster.access().kubeconfig(&Identity::Admin).await?)
    }

    /// All parts that run.
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

    /// The file with the policy of the last descheduler. It does not exist before the first one has started.
    pub fn policy(&self) -> Option<PathBuf> {
        self.stand_in.as_ref().map(descheduler::StandIn::policy)
    }

    pub fn exporter_url(&self) -> String {
        format!("http://{}", self.exporter_port.address())
    }

    pub fn prometheus_url(&self) -> Result<String, Error> {
        Ok(format!("http://{}", self.cluster.address(Component::Prometheus)?))
    }

    /// The URL of the descheduler's own metrics on plain HTTP.
    pub fn descheduler_url(&self) -> Option<String> {
        self.stand_in.as_ref()?.metrics().map(|address| format!("http://{address}"))
    }

    pub fn descheduler_log(&self) -> Option<PathBuf> {
        self.stand_in.as_ref().map(descheduler::StandIn::log)
    }

    pub fn descheduler(&self) -> Option<watch::Receiver<descheduler::StandInState>> {
        self.stand_in.as_ref().map(descheduler::StandIn::state)
    }

    /// Stops the stand-ins and the descheduler in order, within [`SHUTDOWN_TIMEOUT`], and everything else at once.
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
        // What has not ended by then waits for a response that does not come. Dropping ends it.
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, in_order).await;
    }
}

/// A folder for the lab beside the cluster's logs.
fn folder_in(cluster: &Cluster) -> Result<PathBuf, Error> {
    let log = cluster.log(Component::ApiServer)?;
    let folder = log.parent().unwrap_or(Path::new(".")).join("lab");
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(Error::Asset(format!("creating {}: {error}", folder.display()))),
    }
}

fn port(preferred: Option<u16>) -> Result<Port, Error> {
    Ok(preferred.map_or_else(Port::reserve, Port::preferably)?)
}

async fn until<T>(what: &str, mut state: watch::Receiver<T>, holds: impl Fn(&T) -> bool) -> Result<(), Error> {
    let late = || Error::Late { what: what.to_owned(), after: READY_TIMEOUT };
    match tokio::time::timeout(READY_TIMEOUT, state.wait_for(|state| holds(state))).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(late()),
    }
}
