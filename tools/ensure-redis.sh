#!/usr/bin/env bash
# Makes sure that redis-server is on PATH and new enough, and installs it where that can be done.
# The tests start servers of their own on free ports, so the packaged service is not started.
set -euo pipefail

# ZMPOP, which every claim uses, came with 7.0.
readonly need=7.0

fail() {
  echo "ensure-redis: $*" >&2
  exit 1
}

install_with_apt() {
  # env alone keeps the commands below the same for root and for sudo.
  local as=(env)
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "redis-server is missing; as root: apt-get update && apt-get install redis-server"
    as=(sudo env)
    # Without a terminal a question for the password would hang.
    [ -t 0 ] || as=(sudo -n env)
  fi

  # Debian starts a service when it installs it, on the port that a user's own Redis may hold.
  # This file forbids that. One that is there already is the administrator's and stays.
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    # shellcheck disable=SC2064 # the values of now are meant: both are local.
    trap "${as[*]} rm -f $policy" EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as[@]}" tee "$policy" >/dev/null
    "${as[@]}" chmod 755 "$policy"
  fi

  # Another apt run on the machine is waited for, not failed on.
  "${as[@]}" apt-get -q -o DPkg::Lock::Timeout=120 update >&2
  "${as[@]}" DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 \
    install -y --no-install-recommends redis-server >&2
}

install_redis() {
  if command -v apt-get >/dev/null; then
    install_with_apt
  elif command -v brew >/dev/null; then
    brew install redis >&2
  elif [ "$(uname -s)" = Darwin ]; then
    fail "redis-server is missing; install Homebrew, then: brew install redis"
  else
    fail "redis-server is missing; install Redis $need or newer with the system's package manager"
  fi
}

# The words before "v=" differ between Redis and what descends from it.
version() {
  redis-server --version | sed -n 's/.* v=\([0-9][0-9.]*\).*/\1/p'
}

command -v redis-server >/dev/null || install_redis
# The shell remembers where it did not find a command.
hash -r
command -v redis-server >/dev/null || fail "redis-server was installed but is not on PATH"

have=$(version)
[ -n "$have" ] || fail "cannot read a version from: redis-server --version"
[ "${have%%.*}" -ge "${need%%.*}" ] ||
  fail "$(command -v redis-server) is $have, needed is $need or newer"
echo "redis-server $have"
