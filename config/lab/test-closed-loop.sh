#!/usr/bin/env bash
# Tests that the lab is well and that it balances: parts answer, metrics flow, rules are evaluated, and a skew, if there is
# one, gets smaller through migrations.
#
#   ./test-closed-loop.sh
#
#   PROMETHEUS_URL, EXPORTER_URL   where they are, if not at http://localhost:9090 and http://localhost:8000
#   CONTEXT                        of the kubeconfig; kind-node-classifier-sim if there is such a one
#   PARTS=processes                the parts are no pods: `rebalance-lab up`
#   TIMEOUT                       in seconds, how long to wait for what takes its time (300)
set -euo pipefail

readonly PROMETHEUS_URL=${PROMETHEUS_URL:-http://localhost:9090}
readonly EXPORTER_URL=${EXPORTER_URL:-http://localhost:8000}
readonly PARTS=${PARTS:-pods}
readonly TIMEOUT=${TIMEOUT:-300}
readonly SCORE=descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m

say() { printf '== %s\n' "$*"; }
good() { printf '   ok: %s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
fetch() { curl --silent --show-error --fail --max-time 10 "$@"; }
kube() { kubectl ${CONTEXT:+--context "$CONTEXT"} "$@"; }

# Tries again until it succeeds: eventually WHAT COMMAND...
eventually() {
  local what=$1 deadline=$((SECONDS + TIMEOUT))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || fail "did not happen within $TIMEOUT s: $what"
    sleep 1
  done
  good "$what"
}

query() { fetch --get --data-urlencode "query=$1" "$PROMETHEUS_URL/api/v1/query" | jq -r '.data.result[].value[1]'; }
prometheus_is_well() { fetch "$PROMETHEUS_URL/-/healthy" >/dev/null 2>&1; }
exporter_is_well() { [[ $(fetch "$EXPORTER_URL/health" 2>/dev/null | jq -r .status) == healthy ]]; }
targets_are_up() {
  [[ $(fetch "$PROMETHEUS_URL/api/v1/targets" 2>/dev/null |
    jq '[.data.activeTargets[] | select(.labels.job == "lab-exporter") | .health] == ["up"]') == true ]]
}
rules_are_well() {
  [[ $(fetch "$PROMETHEUS_URL/api/v1/rules" 2>/dev/null |
    jq '[.data.groups[].rules[].health] | length > 0 and all(. == "ok")') == true ]]
}
nodes() { kube get nodes -l kubevirt.io/schedulable=true -o name | wc -l; }
every_node_has() { (($(query "$1" 2>/dev/null | wc -l) == NODES)); }
deployment_is_ready() { [[ $(kube -n "$1" get deployment "$2" -o 'jsonpath={.status.readyReplicas}' 2>/dev/null) == 1 ]]; }
moved() { kube get vm -o json | jq '[.items[] | select(any(.status.conditions[]?; .type == "Migrated" and .status == "True"))] | length'; }
by_descheduler() { kube get vm -o json | jq '[.items[] | select(.metadata.annotations["kubevirt.io/eviction-source"] == "descheduler")] | length'; }
spread() { query 'stddev(node_cpu_usage_ratio)'; }
is_less() { jq -ne --argjson left "$1" --argjson right "$2" '$left < $right' >/dev/null; }
a_vm_moved() { (($(moved) > 0)) && (($(by_descheduler) > 0)); }
spread_has_fallen() { is_less "$(spread)" "$(jq -n --argjson before "$BEFORE" '0.75 * $before')"; }

for tool in curl jq kubectl; do
  command -v "$tool" >/dev/null 2>&1 || fail "$tool is not installed"
done
if [[ -z ${CONTEXT:-} ]] && kubectl config get-contexts kind-node-classifier-sim >/dev/null 2>&1; then
  CONTEXT=kind-node-classifier-sim
fi

say "parts"
eventually "Prometheus is well" prometheus_is_well
eventually "the metrics exporter is well" exporter_is_well
if [[ $PARTS == pods ]]; then
  eventually "vm-controller is ready" deployment_is_ready default vm-controller
  eventually "eviction-webhook is ready" deployment_is_ready default eviction-webhook
  eventually "metrics-exporter is ready" deployment_is_ready monitoring metrics-exporter
  if kube get namespace kube-descheduler >/dev/null 2>&1; then
    eventually "descheduler is ready" deployment_is_ready kube-descheduler descheduler
    eventually "soft-tainter is ready" deployment_is_ready kube-descheduler soft-tainter
  else
    eventually "descheduler-operator is ready" deployment_is_ready openshift-kube-descheduler-operator descheduler-operator
    eventually "soft-tainter is ready" deployment_is_ready openshift-kube-descheduler-operator soft-tainter
  fi
fi

say "metrics"
NODES=$(nodes)
((NODES > 0)) || fail "no node is labeled kubevirt.io/schedulable=true"
eventually "Prometheus scrapes the exporter" targets_are_up
for series in node_cpu_usage_ratio node_memory_usage_ratio node_cpu_pressure_psi node_memory_pressure_psi; do
  eventually "all $NODES nodes have $series" every_node_has "$series"
done
eventually "the rules are evaluated" rules_are_well
eventually "all $NODES nodes have a score" every_node_has "$SCORE"

say "the loop"
vms=$(kube get vm -o name | wc -l)
((vms > 0)) || fail "there are no VMs: kubectl apply -f example-vms.yaml"
good "$vms VMs"
BEFORE=$(spread)
if (($(moved) == 0)) && is_less "$BEFORE" 0.05; then
  good "nothing to balance: the spread of CPU use is $BEFORE"
else
  eventually "VMs were moved for the descheduler" a_vm_moved
  if is_less 0.15 "$BEFORE"; then
    eventually "the spread of CPU use has fallen by a quarter from $BEFORE" spread_has_fallen
  fi
fi
say "all is well"
