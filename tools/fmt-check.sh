#!/usr/bin/env bash
# Names the Go files that gofmt would change, in every module, and fails when there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

# A file that does not parse makes gofmt itself fail, and so this script.
found=$(gofmt -l .)
if [ -n "$found" ]; then
  printf 'gofmt would change:\n%s\n' "$found" >&2
  exit 1
fi
