#!/usr/bin/env bash
set -euo pipefail

PARTLABEL="CNV_SWAP"
DEVICE="/dev/disk/by-partlabel/${PARTLABEL}"

if [[ ! -e "$DEVICE" ]]; then
  echo "Swap partition with PARTLABEL=${PARTLABEL} not found" >&2
  exit 1
fi

if swapon --show=NAME | grep -q "$DEVICE"; then
  echo "Swap already enabled on $DEVICE" >&2
  exit 1
fi

echo "Enabling swap on $DEVICE" >&2
swapon "$DEVICE"
touch /var/tmp/swapfile
