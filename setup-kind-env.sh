#!/usr/bin/env bash
# Makes a cluster with kind and installs the lab in it. The script itself, with its options: config/lab/setup-kind-env.sh --help
exec "$(dirname "${BASH_SOURCE[0]}")/config/lab/setup-kind-env.sh" "$@"
