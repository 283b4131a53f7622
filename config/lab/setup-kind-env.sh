#!/usr/bin/env bash
# Makes a cluster with kind, on Docker or Podman, and installs the lab in it.
#
#   ./setup-kind-env.sh [--operator] [--no-vms]
#
#   --operator   a KubeDescheduler gives the orders, through a stand-in for the descheduler operator,
#                instead of the policy in descheduler-policy.yaml
#   --no-vms     no example VMs
#
#   KIND_EXPERIMENTAL_PROVIDER=podman|docker   which engine to use; found out if it is not set
#   SKIP_CLUSTER_RECREATE=true                 keep a cluster that is there, without asking
#   SKIP_IMAGE_BUILD=true                      take the image as it is
set -euo pipefail

readonly CLUSTER=node-classifier-sim
readonly CONTEXT=kind-$CLUSTER
readonly NODE_IMAGE=kindest/node:v1.34.0
readonly IMAGE=kubevirt.io/rebalance-lab:v0.1.0
readonly KIND_MINIMUM=0.20.0
readonly KIND_RECOMMENDED=0.30.0
readonly TIMEOUT=180s

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
readonly HERE ROOT

say() { printf '== %s\n' "$*"; }
warn() { printf 'warning: %s\n' "$*" >&2; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
kube() { kubectl --context "$CONTEXT" "$@"; }

# Whether the first version is older than the second. Both are numbers with dots.
is_older() {
  local -a left right
  local at
  IFS=. read -r -a left <<<"$1"
  IFS=. read -r -a right <<<"$2"
  for at in 0 1 2; do
    if ((10#${left[at]:-0} != 10#${right[at]:-0})); then
      ((10#${left[at]:-0} < 10#${right[at]:-0}))
      return
    fi
  done
  return 1
}

find_engine() {
  case "${KIND_EXPERIMENTAL_PROVIDER:-}" in
    docker | podman)
      ENGINE=$KIND_EXPERIMENTAL_PROVIDER
      has "$ENGINE" || fail "KIND_EXPERIMENTAL_PROVIDER is $ENGINE, which is not installed"
      "$ENGINE" ps >/dev/null 2>&1 || fail "$ENGINE is installed but does not answer; \`$ENGINE ps\` says why"
      ;;
    '')
      if has docker && docker ps >/dev/null 2>&1; then
        ENGINE=docker
      elif has podman && podman ps >/dev/null 2>&1; then
        ENGINE=podman
      else
        fail "neither docker nor podman answers: install one, or start it (\`podman machine start\` on macOS)"
      fi
      ;;
    *) fail "KIND_EXPERIMENTAL_PROVIDER is $KIND_EXPERIMENTAL_PROVIDER; docker and podman are supported" ;;
  esac
  export KIND_EXPERIMENTAL_PROVIDER=$ENGINE
  say "container engine: $ENGINE"
}

check_tools() {
  has kind || fail "kind is not installed: see https://kind.sigs.k8s.io/docs/user/quick-start/#installation"
  [[ ${SKIP_IMAGE_BUILD:-} == true ]] || has make || fail "make is not installed, which builds the image"
  has kubectl || fail "kubectl is not installed: see https://kubernetes.io/docs/tasks/tools/"
  local version
  version=$(kind version | sed -n 's/^kind v\([0-9][0-9.]*\).*/\1/p')
  [[ -n $version ]] || fail "cannot tell the version of kind from \`kind version\`: $(kind version)"
  if is_older "$version" "$KIND_MINIMUM"; then
    fail "kind v$version is too old: v$KIND_MINIMUM is needed, v$KIND_RECOMMENDED recommended"
  fi
  if is_older "$version" "$KIND_RECOMMENDED"; then
    warn "kind v$version may not know $NODE_IMAGE: v$KIND_RECOMMENDED or later is recommended"
  fi
  say "kind: v$version"
}

make_cluster() {
  if kind get clusters 2>/dev/null | grep -qx "$CLUSTER"; then
    local answer=keep
    if [[ ${SKIP_CLUSTER_RECREATE:-} != true && -t 0 ]]; then
      read -r -p "There is a cluster $CLUSTER. Delete it and make a new one? [y/N] " answer
    fi
    if [[ $answer != [yY]* ]]; then
      say "cluster: $CLUSTER, as it is"
      kind export kubeconfig --name "$CLUSTER"
      return
    fi
    kind delete cluster --name "$CLUSTER"
  fi
  say "cluster: $CLUSTER"
  kind create cluster --name "$CLUSTER" --image "$NODE_IMAGE" --config "$HERE/kind-config.yaml" --wait "$TIMEOUT"
}

load_image() {
  if [[ ${SKIP_IMAGE_BUILD:-} != true ]]; then
    say "image: $IMAGE"
    make -C "$ROOT" --no-print-directory lab-image IMG="$IMAGE" CONTAINER_TOOL="$ENGINE"
  fi
  if [[ $ENGINE == docker ]]; then
    kind load docker-image "$IMAGE" --name "$CLUSTER"
    return
  fi
  # kind cannot take images out of Podman by name.
  local archive
  archive=$(mktemp -d)
  # shellcheck disable=SC2064 # the name of now is meant
  trap "rm -rf '$archive'" EXIT
  podman save --output "$archive/image.tar" "$IMAGE"
  kind load image-archive "$archive/image.tar" --name "$CLUSTER"
}

apply() { kube apply --server-side --force-conflicts -f "$HERE/$1"; }

# What runs on every node would otherwise be pretended to run on KWOK's.
keep_daemons_off_pretended_nodes() {
  local off='{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"type","operator":"NotIn","values":["kwok"]}]}]}}}}}}}'
  local name
  for name in kindnet kube-proxy; do
    kube -n kube-system patch daemonset "$name" --type merge -p "$off" ||
      warn "DaemonSet $name is not there; nothing depends on that"
  done
}

install() {
  say "parts"
  apply virtualmachine-crd.yaml
  kube wait --for condition=Established --timeout "$TIMEOUT" crd/virtualmachines.simulation.node-classifier.io
  keep_daemons_off_pretended_nodes
  apply kwok-nodes.yaml
  kube label nodes -l type=kwok kubevirt.io/schedulable=true --overwrite
  apply prometheus.yaml
  apply prometheus-rules.yaml
  apply metrics-exporter.yaml
  apply vm-controller.yaml
  apply eviction-webhook.yaml
  if [[ $WITH_OPERATOR == true ]]; then
    kube apply --server-side --force-conflicts -f "$ROOT/config/crd/third-party/kubedescheduler-5.1.yaml"
    apply descheduler-operator.yaml
  else
    apply descheduler.yaml
    apply descheduler-policy.yaml
  fi
}

await() {
  say "waiting for all of it"
  kube wait --for condition=Ready --timeout "$TIMEOUT" nodes -l type=kwok
  kube -n kube-system rollout status --timeout "$TIMEOUT" deployment/kwok-controller
  kube -n monitoring rollout status --timeout "$TIMEOUT" deployment/prometheus
  kube -n monitoring rollout status --timeout "$TIMEOUT" deployment/metrics-exporter
  kube -n default rollout status --timeout "$TIMEOUT" deployment/vm-controller
  kube -n default rollout status --timeout "$TIMEOUT" deployment/eviction-webhook
  if [[ $WITH_OPERATOR == true ]]; then
    kube -n openshift-kube-descheduler-operator rollout status --timeout "$TIMEOUT" deployment/descheduler-operator
    kube -n openshift-kube-descheduler-operator rollout status --timeout "$TIMEOUT" deployment/soft-tainter
  else
    kube -n kube-descheduler rollout status --timeout "$TIMEOUT" deployment/descheduler
    kube -n kube-descheduler rollout status --timeout "$TIMEOUT" deployment/soft-tainter
  fi
}

# The scheduler would spread them evenly, so all nodes but two are closed meanwhile.
create_vms() {
  say "example VMs"
  kube cordon kwok-node-3 kwok-node-4 kwok-node-5
  trap 'kube uncordon kwok-node-3 kwok-node-4 kwok-node-5' ERR
  apply example-vms.yaml
  kube -n default wait --for jsonpath='{.status.phase}'=Running --timeout "$TIMEOUT" vm --all
  trap - ERR
  kube uncordon kwok-node-3 kwok-node-4 kwok-node-5
}

tell() {
  local namespace=kube-descheduler name=descheduler
  if [[ $WITH_OPERATOR == true ]]; then
    namespace=openshift-kube-descheduler-operator name=descheduler-operator
  fi
  cat <<END

The lab is up.

  Prometheus            http://localhost:9090
  metrics exporter      http://localhost:8000/metrics
  descheduler metrics   http://localhost:8443/metrics

  kubectl get vm -w
  kubectl get pods -l app=virt-launcher
  kubectl logs -n $namespace deployment/$name -f
  $HERE/test-closed-loop.sh
  kind delete cluster --name $CLUSTER
END
}

main() {
  WITH_OPERATOR=false
  local with_vms=true
  while (($# > 0)); do
    case $1 in
      --operator) WITH_OPERATOR=true ;;
      --no-vms) with_vms=false ;;
      -h | --help)
        sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"
        return
        ;;
      *) fail "unknown option $1; --help lists them" ;;
    esac
    shift
  done
  find_engine
  check_tools
  make_cluster
  load_image
  install
  await
  if [[ $with_vms == true ]]; then
    create_vms
  fi
  tell
}

main "$@"
