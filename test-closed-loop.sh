#!/usr/bin/env bash
# Tests that a running lab is well and that it balances. The script itself, with its settings: config/lab/test-closed-loop.sh
exec "$(dirname "${BASH_SOURCE[0]}")/config/lab/test-closed-loop.sh" "$@"
