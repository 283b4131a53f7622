//! `rebalance-lab load`: changes what VMs of a running lab use, at once or by a scenario as time goes by.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use api::VirtualMachine;
use kube::{Api, Client, ResourceExt, api::ListParams};
use lab::play::{Ending, Player, matches, set_utilization};
use process::Shutdown;
use sim::{ClusterModel, units::Span};
use terminal::print;

use crate::{
    lab_file::RunningLab, lab_files::LabFiles, lab_name::LabName, part::time_scale, sim::scenario, status::runtime,
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
    let lab = LabFiles::of_this_user().find(&args.name.name)?;
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
    let meant: Vec<String> = names.iter().filter(|name| matches(&args.vms, name)).cloned().collect();
    let example = names.first().map(|name| format!(", such as {name}")).unwrap_or_default();
    ensure!(!meant.is_empty(), "no VM is called {}; there are {} with other names{example}", args.vms, names.len());
    let count = meant.len();
    set_utilization(client, meant.into_iter().map(|name| (name, [args.cpu, args.memory])).collect()).await?;
    print(&format!("{count} VMs changed.\n"))
}

async fn play(args: &Args, source: &str, lab: &RunningLab, client: &Client) -> anyhow::Result<()> {
    let scenario = scenario(source)?;
    let model = ClusterModel::new(&scenario).with_context(|| source.to_owned())?;
    let speed = args.speed.unwrap_or(lab.info.time_scale);
    let (mut player, placement) = Player::new(client, &model, args.seed, speed).await?;
    let mut shutdown = Shutdown::or_hangup().context("listening for signals")?;
    let count = placement.0.len();
    print(&format!("Scenario {}: {count} VMs\n", model.name()))?;
    let Some(created) = player.create_vms(placement, shutdown.wait()).await? else {
        return print("\nThe VMs that were created stay.\n");
    };
    print(&format!("{created} created and running, {} there already\n", count - created))?;
    let changed = player.set_dirty_rates().await?;
    if changed > 0 {
        print(&format!("{changed} write to their memory at a rate of their own\n"))?;
    }
    if player.is_steady() {
        return print("Its load does not change.\n");
    }
    let length = time(player.duration());
    print(&format!("Following it for {length}, {speed} times as fast as the clock; Ctrl-C ends that\n"))?;
    let report = |seconds, text: &str| print(&format!("{:>8}  {text}\n", Span(seconds).to_string()));
    tokio::select! {
        ending = player.run(|| lab.process.is_alive(), report) => if ending? == Ending::LabEnded {
            bail!("lab {} has ended", lab.name);
        },
        () = shutdown.wait() => {
            player.restore_nodes().await?;
            return print("\nAll nodes are open and there. The VMs go on with the load that they have now.\n");
        }
    }
    print("The scenario is over; the VMs go on with the load that they have now.\n")?;
    let left = ["closed", "lost"].into_iter().zip(player.left_behind());
    for (what, names) in left.filter(|(_, names)| !names.is_empty()) {
        print(&format!("Nodes that it left {what}: {}\n", names.join(", ")))?;
    }
    Ok(())
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
}
