#!/usr/bin/env bash
# Runs one step in every module below the root; go's ./... stops at their borders.
#   tools/modules.sh [build|vet|test|lint|tidy]   without a step: build, vet and test
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# tools/ holds only lists of programs: nothing there to build or test.
# Go itself passes over testdata and over names that start with a dot or an underscore.
modules() {
  find . \( -path ./tools -o -name testdata -o -name '.?*' -o -name '_*' \) -prune -o \
    -name go.mod ! -path ./go.mod -print | sort
}

step() {
  case $1 in
    build) go build -o /dev/null ./... ;;
    vet) go vet ./... ;;
    test) go test -count=1 -timeout 15m ./... ;;
    lint)
      go tool -modfile="$root/tools/lint/go.mod" golangci-lint run \
        --config "$root/.golangci.yml" ./...
      ;;
    tidy) go mod tidy ;;
    *)
      echo "modules: no step $1" >&2
      return 2
      ;;
  esac
}

[ $# -gt 0 ] || set -- build vet test

# Every module is tried, so that one run shows all that is broken.
count=0
failed=()
while IFS= read -r file; do
  dir=${file%/go.mod}
  count=$((count + 1))
  for name in "$@"; do
    echo "== ${dir#./}: $name"
    if ! (cd "$dir" && step "$name" </dev/null); then
      failed+=("${dir#./}:$name")
      break
    fi
  done
done < <(modules)

echo "nested modules: $count, failed: ${#failed[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  printf '  %s\n' "${failed[@]}" >&2
  exit 1
fi
