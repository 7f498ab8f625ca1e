#!/usr/bin/env bash
# Runs a command with Valkey in place of redis-server, from the distribution's packages:
#   tools/valkey.sh go test ./integration/...
# The packages are unpacked into a directory of their own, and nothing on the machine is changed. Where no package
# source has one, it says so and runs nothing: exit status 3.
set -euo pipefail

# Debian has it among its backports; the machine's own sources tell from where.
fetch() {
  local into=$1 line uri codename
  line=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null | grep -v -e security -e updates | head -1)
  read -r uri codename <<<"$line"
  [ -n "${codename:-}" ] || return 1
  mkdir -p "$into/lists/partial" "$into/cache/archives/partial"
  echo "deb $uri ${codename%-backports}-backports main" >"$into/sources.list"
  local own=(-q -o "Dir::Etc::sourcelist=$into/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$into/lists" -o "Dir::Cache=$into/cache" -o APT::Get::List-Cleanup=0)
  apt-get "${own[@]}" update >&2 || return 1
  (cd "$into" && apt-get "${own[@]}" download valkey-server valkey-tools >&2) || return 1
  for package in "$into"/*.deb; do dpkg -x "$package" "$into/root"; done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

server=$(command -v valkey-server || true)
if [ -z "$server" ]; then
  command -v apt-get >/dev/null && fetch "$work" || true
  server=$work/root/usr/bin/valkey-server
fi
if ! version=$("$server" --version 2>/dev/null); then
  echo "valkey: no package source of this machine has valkey-server" >&2
  exit 3
fi
echo "$version"
ZQ_REDIS_SERVER=$server "$@"
