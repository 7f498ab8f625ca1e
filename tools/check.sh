#!/usr/bin/env bash
# All that CI runs, the quick checks first. It stops at the first that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

# task need not be installed: go builds it as tools/go.mod says.
task() { go tool -modfile=tools/go.mod task "$@"; }

step() {
  local began=$SECONDS
  echo "== $*"
  "$@"
  echo "== $*: $((SECONDS - began)) s"
}

step task fmt:check
step task vet
step task tree
step task test
# Only now: in a new cache nothing is there to verify before.
step go mod verify
step task lint
step task mutants
step task test:race
step task modules
