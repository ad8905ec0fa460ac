#!/bin/sh
# Runs a test that is too long for every day: long.sh COMMAND.. when DMXC_LONG is set (tools/test --long), else skips.
if [ -z "${DMXC_LONG:-}" ]; then
  echo "SKIPPED: a long test; tools/test --long runs it"
  exit 77
fi
exec "$@"
