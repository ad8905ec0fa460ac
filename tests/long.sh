#!/bin/sh
# Runs a test that is too long for every day: when DMXC_LONG is set (tools/test --long), or when one of the named paths differs from
# what it was N (20) commits ago. Else it says that it skips.
# long.sh [--commits N] [--changed PATH,PATH..] COMMAND..
set -eu
commits=20 paths=""
if [ "$1" = --commits ]; then
  commits=$2
  shift 2
fi
if [ "$1" = --changed ]; then
  paths=$(echo "$2" | tr , ' ')
  shift 2
fi
changed() {
  [ -n "$paths" ] || return 1
  before=$(git rev-list -n 1 "--skip=$commits" HEAD 2>/dev/null) && [ -n "$before" ] || return 1
  # shellcheck disable=SC2086
  ! git diff --quiet "$before" -- $paths
}
case "${DMXC_LONG:-0}" in 0) long=;; *) long=1;; esac
if [ -z "$long" ] && ! (cd "$(dirname "$0")/.." && changed); then
  echo "SKIPPED: a long test; tools/test --long runs it${paths:+, and so do changes of $paths}"
  exit 77
fi
exec "$@"
