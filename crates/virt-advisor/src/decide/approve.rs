//! `virt-advisor approve`: shows the plan, asks about each of its risks, and approves exactly what was shown.

use std::path::PathBuf;

use advisor::{
    approving::{self, Accepted, Approver, NamedTimes, Question, Times},
    blast_radius::{self, BlastRadius, NamedRisk, blast_radius},
    start_time::StartTime,
};
use anyhow::Context;
use api::VirtPlatformConfig;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{PlanArgs, ask, forecast_file, undecidable, write::write};
use crate::{
    configs,
    connection::Connection,
    failure::{Failure, failed},
    impact, output,
    plan::{self, view::PlanView},
    program,
    prose::{BOLD, outdented},
    reader::Reader,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  virt-advisor approve load-aware-rebalancing --reason CHG-4711
  virt-advisor approve load-aware-rebalancing --digest 67ae…b19 --accept-risk VMRestarts --reason CHG-4711
  virt-advisor approve load-aware-rebalancing --forecast forecast.json

On a terminal it shows the plan and asks. A script names the digest that was read and the risks that are accepted, and is not asked.
The times of an earlier approval stay unless others are given.")]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// A risk that is accepted; can be repeated, or a list with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    accept_risk: Vec<String>,
    /// An item that may overwrite what somebody has changed since; can be repeated, or a list with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    accept_item: Vec<String>,
    /// Approve it although somebody has rejected it, and take the rejection back
    #[arg(long)]
    despite_rejection: bool,
    /// The forecast that was read, as `forecast --save` wrote it; its summary is kept with the approval
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    forecast: Option<PathBuf>,
    /// Do not start before this time, for example 2026-01-12T22:00:00Z
    #[arg(long, value_name = "TIME")]
    not_before: Option<Timestamp>,
    /// Start no reboot after this time
    #[arg(long, value_name = "TIME")]
    not_after: Option<Timestamp>,
    /// Take the times of an earlier approval away; a window stays
    #[arg(long, conflicts_with = "not_before")]
    now: bool,
}

impl Args {
    /// What was given beside the plan, for a command that is to be repeated.
    fn given(&self) -> String {
        let named =
            |option: &str, names: &[String]| names.iter().map(|name| format!(" {option} {name}")).collect::<String>();
        let time =
            |option: &str, time: Option<Timestamp>| time.map(|time| format!(" {option} {time}")).unwrap_or_default();
        let flag = |option: &str, is_set: bool| if is_set { format!(" {option}") } else { String::new() };
        let quoted = |reason: &String| format!(" --reason '{}'", reason.replace('\'', r"'\''"));
        [
            named("--accept-risk", &self.accept_risk),
            named("--accept-item", &self.accept_item),
            flag("--despite-rejection", self.despite_rejection),
            time("--not-before", self.not_before),
            time("--not-after", self.not_after),
            flag("--now", self.now),
            self.forecast.as_ref().map(|file| format!(" --forecast {}", file.display())).unwrap_or_default(),
            self.plan.reason.as_ref().map(quoted).unwrap_or_default(),
        ]
        .concat()
    }
}

pub(crate) async fn run(args: &Args, connection: &Connection) -> anyhow::Result<()> {
    let reader = connection.reader("approve").await?;
    let config = configs::get(&reader, &args.plan.profile).await?;
    let digest =
        approving::plan_to_approve(&config, args.plan.digest.as_deref()).map_err(|error| undecidable(&error))?;
    let forecast =
        args.forecast.as_deref().map(|file| forecast_file::read(file, &args.plan.profile, digest)).transpose()?;
    let now = Timestamp::now();
    let named = NamedTimes { not_before: args.not_before, not_after: args.not_after, now: args.now };
    let times = Times::new(&config, named, now);
    let start = start(&config, &times, now)?;
    let radius = radius(&reader, &config).await;
    let mut accepted = Accepted::new(&args.accept_risk, &args.accept_item, args.despite_rejection);
    let open = approving::questions(&config, radius.risks.clone(), &accepted);
    match (&args.plan.digest, ask::is_possible()) {
        (digest, true) => {
            if digest.is_none() {
                output::show(&shown(&config, &radius, now, terminal::width())?)?;
            }
            consult(&args.plan.profile, &open, digest.is_some(), &start, &mut accepted).await?;
        }
        (Some(_), false) => are_accepted(args, digest, &open)?,
        (None, false) => {
            let text = format!(
                "nobody can be asked here: read the plan, then name it: {} approve {} --digest {digest}{}",
                program::name(),
                args.plan.profile,
                args.given()
            );
            return Err(failed(Failure::Other, text));
        }
    }
    let approver = Approver { name: user(&reader).await?, reason: args.plan.reason.clone(), times, forecast };
    let digest = digest.to_owned();
    write(&reader, config, |config| approving::approval(config, &digest, &approver, &accepted)).await?;
    terminal::print(&format!(
        "Approved plan {digest} of {profile} as {}.\n{start}\nFollow it: {} status {profile} -w\n",
        approver.name,
        program::name(),
        profile = args.plan.profile
    ))
}

/// When the plan starts, in words. A plan that never would is not approved.
fn start(config: &VirtPlatformConfig, times: &Times, now: Timestamp) -> anyhow::Result<String> {
    let start = times.start(config, now);
    let told = approving::start_told(&start);
    match (told, start) {
        (Some(told), _) => {
            let passed = times
                .passed
                .map(|end| format!(" The end of an earlier approval, {end:.0}, has passed and is taken away."));
            Ok(format!("{told}.{}", passed.unwrap_or_default()))
        }
        (None, StartTime::Invalid(error)) => Err(failed(Failure::Other, format!("nothing was written: {error}"))),
        (None, _) => {
            let end = times.not_after.map_or_else(String::new, |end| format!(", {end:.0},"));
            let text = format!(
                "nothing was written: the approval would end{end} before the plan starts; give a later --not-after, or --now for no times"
            );
            Err(failed(Failure::Other, text))
        }
    }
}

/// What the plan does to nodes and virtual machines. A plan that reboots nothing needs no look at them.
async fn radius(reader: &Reader, config: &VirtPlatformConfig) -> BlastRadius {
    let status = config.status.clone().unwrap_or_default();
    let plan = blast_radius::PlanContents { items: &status.items, risks: &status.risks };
    let reboots = status.items.iter().filter_map(|item| item.impact_detail.as_ref()).any(|detail| detail.reboot);
    let observed = match reboots {
        true => {
            anstream::eprintln!("Looking at what the plan does to virtual machines ...");
            impact::observe::observe(reader).await.0
        }
        false => blast_radius::ObservedCluster::default(),
    };
    blast_radius(plan, &observed)
}

/// Asks whatever has not been answered on the command line.
async fn consult(
    profile: &str,
    open: &[Question],
    is_named: bool,
    start: &str,
    accepted: &mut Accepted,
) -> anyhow::Result<()> {
    for question in open {
        if !ask::accepts(question).await? {
            let text =
                format!("{} was not accepted, so {profile} was not approved; nothing was written", question.name());
            return Err(failed(Failure::RisksNotAccepted, text));
        }
        accepted.add(question);
    }
    if !is_named && !ask::types("yes", &format!("This approves the plan of {profile}. {start}")).await? {
        return Err(failed(Failure::Other, format!("{profile} was not approved; nothing was written")));
    }
    Ok(())
}

/// The plan, and what it does to nodes and virtual machines.
fn shown(config: &VirtPlatformConfig, radius: &BlastRadius, now: Timestamp, width: usize) -> anyhow::Result<String> {
    let plan = PlanView::stored(config, now).context("the configuration has a plan")?;
    let headline = format!("{BOLD}Impact: {}{BOLD:#}", impact::text::headline(radius));
    let summary = if radius.reboots { impact::text::summary(radius) } else { String::new() };
    Ok(format!("{}\n{}{summary}", plan::text::body(&plan, width), outdented(&headline, width)))
}

/// Without a person at the terminal, everything has to be accepted on the command line.
fn are_accepted(args: &Args, digest: &str, open: &[Question]) -> anyhow::Result<()> {
    if open.is_empty() {
        return Ok(());
    }
    let told = |question: &Question| match question {
        Question::Rejection { reason } => format!("\n  {}", ask::rejection(reason.as_deref())),
        Question::Risk(NamedRisk { name, message, .. }) => format!("\n  {name}: {message}"),
        Question::Item { name, fields } => format!("\n  item {name}: changed by somebody since: {}", fields.join(", ")),
    };
    let option = |question: &Question| match question {
        Question::Rejection { .. } => " --despite-rejection".to_owned(),
        Question::Risk(risk) => format!(" --accept-risk {}", risk.name),
        Question::Item { name, .. } => format!(" --accept-item {name}"),
    };
    let (list, options): (String, String) = (open.iter().map(told).collect(), open.iter().map(option).collect());
    let given = args.given();
    let text = format!(
        "nothing was written, because these were not accepted:{list}\nTo accept them: {} approve {} --digest \
         {digest}{given}{options}",
        program::name(),
        args.plan.profile
    );
    Err(failed(Failure::RisksNotAccepted, text))
}

/// The name by which the API server knows whoever asks.
async fn user(reader: &Reader) -> anyhow::Result<String> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned();
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let doing = "asking for your user name".to_owned();
    let review = reader.api_server().send_body(http::Method::POST, path, "application/json", &body, doing).await?;
    let name = review.pointer("/status/userInfo/username").and_then(Value::as_str);
    name.map(str::to_owned).context("the API server does not say who you are")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn the_plan_is_shown_with_its_impact_and_each_risk_is_asked_about() {
        let config = golden::guests::waiting();
        let radius = golden::guests::radius(&config);
        golden::assert("approve", |width| shown(&config, &radius, golden::now(), width).unwrap());
        let questions = golden::guests::questions(&radius);
        let asked = |width| questions.iter().map(|question| ask::text(question, width) + "y\n").collect::<String>();
        golden::assert("approve_questions", asked);
    }

    /// The plan of the golden files without what reboots nodes.
    fn without_reboots() -> VirtPlatformConfig {
        let mut config = golden::configs().remove(2);
        let status = config.status.as_mut().unwrap();
        status.items.retain(|item| item.impact_detail.as_ref().is_none_or(|detail| !detail.reboot));
        config
    }

    #[test]
    fn a_plan_without_reboots_is_shown_without_a_table_of_guests() {
        let config = without_reboots();
        let status = config.status.clone().unwrap();
        let plan = blast_radius::PlanContents { items: &status.items, risks: &status.risks };
        let radius = blast_radius(plan, &blast_radius::ObservedCluster::default());
        let text = shown(&config, &radius, golden::now(), 80).unwrap();
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.ends_with("Impact: no node reboots, and no virtual machine notices\n"), "{text}");
        assert!(!text.contains("takes up to"), "{text}");
    }

    #[test]
    fn the_start_is_told_with_an_end_that_has_passed() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (config, now) = (golden::configs().remove(2), at("2026-03-02T12:00:00Z"));
        let passed = Times { passed: Some(at("2026-03-01T23:00:00Z")), ..Times::default() };
        assert_eq!(
            start(&config, &passed, now).unwrap(),
            "It starts now. The end of an earlier approval, 2026-03-01T23:00:00Z, has passed and is taken away."
        );
        let never = Times { not_after: Some(at("2026-03-02T12:00:00Z")), ..Times::default() };
        let error = start(&config, &never, now).unwrap_err().to_string();
        assert!(error.contains("would end, 2026-03-02T12:00:00Z, before the plan starts"), "{error}");
    }
}
