#!/bin/sh
# Writes a new golden bundle: make_golden.sh BUILD_DIR OUT.bundle
# Run once for a new format version, never to replace an existing file.
set -eu
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O1 -march=x86-64-v2 -shared -nostdlib -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector \
  -Wl,--build-id=none -I"$here/../../include" -o "$work/kernels.so" "$here/kernels-1.1.c"
strip "$work/kernels.so"
"$1/bin/make-golden" "$work/kernels.so" "$2"
