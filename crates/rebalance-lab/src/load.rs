//! `rebalance-lab load`: changes what VMs of a running lab use, at once or by a scenario as time goes by.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use api::VirtualMachine;
use kube::{Api, Client, ResourceExt, api::ListParams};
use lab::{
    play::{Nodes, set_dirty_rates},
    up::{self, Doors, Follower},
};
use sim::{ClusterModel, units::Span};

use crate::{
    lab_name::LabName, part::time_scale, record::RunningLab, records::Records, sim::scenario, status::runtime,
    terminal::print,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A scenario that comes with the program, a file, FILE:NAME for one of several, or - for standard input. Its VMs are
    /// created where they start
    #[arg(required_unless_present_any = ["cpu", "memory"], conflicts_with_all = ["cpu", "memory", "vms"])]
    scenario: Option<String>,
    /// How many times faster than the clock the scenario goes [default: as fast as the lab]
    #[arg(long, value_name = "FACTOR", value_parser = time_scale, conflicts_with_all = ["cpu", "memory"])]
    speed: Option<f64>,
    /// Fixes what is drawn at random
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Instead of a scenario: the share of their cores that VMs use from now on
    #[arg(long, value_name = "SHARE", value_parser = share)]
    cpu: Option<f64>,
    /// Instead of a scenario: the share of their memory that VMs use from now on
    #[arg(long, value_name = "SHARE", value_parser = share)]
    memory: Option<f64>,
    /// Whose: a name in which * is any text and ? any character
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    vms: String,
    #[command(flatten)]
    name: LabName,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, such as 0.9".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let lab = Records::of_this_user().find(&args.name.name)?;
    runtime()?.block_on(async {
        let client = lab.client().await?;
        match &args.scenario {
            Some(scenario) => play(args, scenario, &lab, &client).await,
            None => set(args, &client).await,
        }
    })
}

async fn set(args: &Args, client: &Client) -> anyhow::Result<()> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let all = vms.list(&ListParams::default()).await.context("listing VirtualMachines")?;
    let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    let meant: Vec<String> = names.iter().filter(|name| up::matches(&args.vms, name)).cloned().collect();
    let example = names.first().map(|name| format!(", such as {name}")).unwrap_or_default();
    ensure!(!meant.is_empty(), "no VM is called {}; there are {} with other names{example}", args.vms, names.len());
    let count = meant.len();
    up::edit(client, meant.into_iter().map(|name| (name, [args.cpu, args.memory])).collect()).await?;
    print(&format!("{count} VMs changed.\n"))
}

async fn play(args: &Args, source: &str, lab: &RunningLab, client: &Client) -> anyhow::Result<()> {
    let scenario = scenario(source)?;
    let world = ClusterModel::new(&scenario).with_context(|| source.to_owned())?;
    let mut follower = Follower::new(&world, args.seed);
    let placement = follower.placement(&up::rooms(client).await?)?;
    let mut nodes = Nodes::of(&world, client).await?;
    let (count, speed) = (placement.0.len(), args.speed.unwrap_or(lab.info.time_scale));
    print(&format!("Scenario {}: {count} VMs\n", world.name()))?;
    let doors = Doors::of(client).await?;
    let created = tokio::select! {
        created = placement.join(client) => created?,
        _ = tokio::signal::ctrl_c() => {
            // Some are closed because VMs were being placed.
            doors.open().await?;
            return print("\nThe VMs that were created stay.\n");
        }
    };
    print(&format!("{created} created and running, {} there already\n", count - created))?;
    let told = set_dirty_rates(client, &world).await?;
    if told > 0 {
        print(&format!("{told} write to their memory at a rate of their own\n"))?;
    }
    if world.is_steady() && !nodes.is_eventful() {
        return print("Its load does not change.\n");
    }
    let length = Duration::from_secs(world.steps() * world.step_seconds()).div_f64(speed);
    print(&format!("Following it for {}, {speed} times as fast as the clock; Ctrl-C ends that\n", time(length)))?;
    tokio::select! {
        followed = follow(&world, &mut follower, &mut nodes, speed, lab, client) => followed?,
        _ = tokio::signal::ctrl_c() => {
            for deed in nodes.amends() {
                deed.perform(client).await?;
            }
            return print("\nAll nodes are open and there. The VMs go on with the load that they have now.\n");
        }
    }
    print("The scenario is over; the VMs go on with the load that they have now.\n")?;
    for (what, names) in ["closed", "lost"].into_iter().zip(nodes.left_behind()).filter(|(_, names)| !names.is_empty())
    {
        print(&format!("Nodes that it left {what}: {}\n", names.join(", ")))?;
    }
    Ok(())
}

async fn follow(
    world: &ClusterModel,
    follower: &mut Follower<'_>,
    nodes: &mut Nodes<'_>,
    speed: f64,
    lab: &RunningLab,
    client: &Client,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let step_length = Duration::from_secs(world.step_seconds()).div_f64(speed);
    let mut step = 0;
    happen(world, nodes, step, client).await?;
    while step < world.steps() {
        // Steps that were missed are left out: load follows the clock.
        step = step_at(began.elapsed(), step_length).max(step + 1).min(world.steps());
        let due = began + step_length.mul_f64(step as f64);
        tokio::time::sleep_until(due.into()).await;
        if !lab.process.is_alive() {
            bail!("lab {} has ended", lab.name);
        }
        happen(world, nodes, step, client).await?;
        let changes = follower.changes(step);
        if !changes.is_empty() {
            tell(world, step, &format!("{} VMs changed", changes.len()))?;
            let uses = changes.into_iter().map(|(name, [cpu, memory])| (name, [Some(cpu), Some(memory)]));
            up::edit(client, uses.collect()).await?;
        }
    }
    Ok(())
}

async fn happen(world: &ClusterModel, nodes: &mut Nodes<'_>, step: u64, client: &Client) -> anyhow::Result<()> {
    for deed in nodes.due(step) {
        if deed.perform(client).await? {
            tell(world, step, &deed.to_string())?;
        }
    }
    Ok(())
}

fn tell(world: &ClusterModel, step: u64, what: &str) -> anyhow::Result<()> {
    let time = Span(step * world.step_seconds()).to_string();
    print(&format!("{time:>8}  {what}\n"))
}

/// The last step that has begun.
fn step_at(elapsed: Duration, step: Duration) -> u64 {
    (elapsed.as_secs_f64() / step.as_secs_f64().max(f64::MIN_POSITIVE)) as u64
}

fn time(time: Duration) -> Span {
    Span(time.as_secs_f64().ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::parse;

    #[test]
    fn it_is_a_scenario_or_a_share() {
        let is_good = |line: &str| parse::<Args>(line).is_ok();
        for good in ["hotspot", "hotspot --speed 10 --seed 3", "--cpu 0.9", "--memory 1 --vms a*", "--cpu 0 --memory 0"]
        {
            assert!(is_good(good), "{good}");
        }
        for bad in
            ["", "--vms a", "hotspot --cpu 0.1", "--cpu 1.1", "--cpu -1", "--cpu 0.1 --speed 2", "hotspot --vms a"]
        {
            assert!(!is_good(bad), "{bad}");
        }
    }

    #[test]
    fn steps_follow_the_clock() {
        let step = Duration::from_millis(1500);
        for (elapsed, expected) in [(0, 0), (1499, 0), (1500, 1), (15_001, 10)] {
            assert_eq!(step_at(Duration::from_millis(elapsed), step), expected);
        }
    }
}
