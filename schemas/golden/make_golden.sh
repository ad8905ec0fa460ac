#!/bin/sh
# Writes a new golden bundle: make_golden.sh BUILD_DIR OUT.bundle
# Run once for a new format version, never to replace an existing file.
set -eu
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for part in own common; do
  define=$([ $part = common ] && echo -DCOMMON || true)
  cc -O1 -march=x86-64-v2 -shared -nostdlib -ffreestanding -fPIC -fvisibility=hidden -fno-stack-protector $define \
    -Wl,--build-id=none -I"$here/../../include" -o "$work/$part.so" "$here/kernels-1.2.c"
  strip "$work/$part.so"
done
"$1/bin/make-golden" "$work/own.so" "$work/common.so" "$2"
