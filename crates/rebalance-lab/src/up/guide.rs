//! What `rebalance-lab up` prints when the lab is up: where its parts are, and commands to try.

use anstyle::Style;

use crate::lab_name::option;

const TITLE: Style = Style::new().bold();

/// What the commands refer to.
pub(super) struct Places<'a> {
    pub(super) name: &'a str,
    pub(super) kubeconfig: &'a str,
    pub(super) prometheus: &'a str,
    pub(super) exporter: &'a str,
    pub(super) descheduler: &'a str,
    pub(super) score: &'a str,
    pub(super) advisor: bool,
}

/// The commands of the reference's guide, with ours where it asks for pods that are processes here.
pub(super) fn guide(places: &Places<'_>) -> String {
    let Places { name, kubeconfig, prometheus, exporter, descheduler, score, advisor } = places;
    let which = option(name);
    let advice = if *advisor {
        format!(
            "
{TITLE}The advisor{TITLE:#} brings the KubeDescheduler:
  virt-advisor operator                                  in another terminal, with that KUBECONFIG
  kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{{\"spec\": {{\"action\": \"DryRun\"}}}}'
"
        )
    } else {
        String::new()
    };
    format!(
        "
{TITLE}The lab is up.{TITLE:#} It ends with Ctrl-C, or with `rebalance-lab down{which}`.

  Prometheus           {prometheus}
  Metrics exporter     {exporter}
  Descheduler metrics  {descheduler}/metrics
  kubectl              export KUBECONFIG={kubeconfig}
{advice}
{TITLE}Watch it{TITLE:#}
  rebalance-lab watch{which}                                    parts, nodes and migrations, live
  rebalance-lab status{which}                                   the same, once; -o json for programs
  rebalance-lab logs{which} descheduler -f                      what the descheduler does
  rebalance-lab logs{which} descheduler | grep -i evict         recent evictions
  rebalance-lab logs{which} eviction-webhook -f                 what becomes of them; also vm-controller, metrics-exporter

{TITLE}VMs and pods{TITLE:#}
  kubectl get vm -o wide                                 VMs with their nodes; -w to watch
  kubectl describe vm <vm-name>
  kubectl get pods -l app=virt-launcher                  the pods that play them
  kubectl get pod <pod-name> -o jsonpath='{{.metadata.annotations}}'
  kubectl get nodes -l kubevirt.io/schedulable=true      the nodes that take part

{TITLE}Change the load{TITLE:#}
  rebalance-lab load{which} --cpu 0.9 --vms 'vm-00*'            of some VMs, now
  rebalance-lab load{which} FILE                                by a scenario, as time goes by

{TITLE}Metrics{TITLE:#}
  curl {prometheus}/-/healthy
  curl {exporter}/health
  curl {prometheus}/api/v1/targets
  curl {prometheus}/api/v1/rules
  curl '{prometheus}/api/v1/query?query={score}'
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_names_what_is_there() {
        let places = Places {
            name: "second",
            kubeconfig: "/k",
            prometheus: "http://127.0.0.1:9090",
            exporter: "http://127.0.0.1:8000",
            descheduler: "http://127.0.0.1:8443",
            score: "descheduler:node:x:avg1m",
            advisor: false,
        };
        let text = guide(&places);
        for line in [
            "export KUBECONFIG=/k",
            "http://127.0.0.1:8443/metrics",
            "rebalance-lab logs --name second descheduler -f",
            "rebalance-lab down --name second",
            "curl 'http://127.0.0.1:9090/api/v1/query?query=descheduler:node:x:avg1m'",
            "-o jsonpath='{.metadata.annotations}'",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("virt-advisor operator"));
        assert!(guide(&Places { advisor: true, ..places }).contains(r#"-p '{"spec": {"action": "DryRun"}}'"#));
    }
}
