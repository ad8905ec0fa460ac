#!/bin/sh
# Compiles by way of ccache so that every clone that builds into a folder of the same name shares the cache, objects made with a
# precompiled header too.
#   compile_cached.sh CCACHE SOURCE_DIR BUILD_DIR COMPILER ARGUMENTS...
#
# An argument below BUILD_DIR becomes a path relative to it, which is where ninja compiles: ccache does that with what it knows
# (CCACHE_BASEDIR), not with what stands behind -Xclang. clang's .pch names the clone that made it, so it is made anew in each one, and
# a file beside it, NAME.pch.sum, stands for it in ccache's hash (CCACHE_PCH_EXTSUM): of the flags, the compiler's version and the
# contents of all that the header includes, ours and the system's.
set -eu
ccache=$1 source=$2 build=$3 compiler=$4
shift 4

header="" depfile="" output="" last=""
count=$#
while [ "$count" -gt 0 ]; do
  argument=$1
  shift
  count=$((count - 1))
  case $argument in
  "$build"/*) argument=${argument#"$build"/} ;;
  -I"$build"/*) argument=-I${argument#-I"$build"/} ;;
  -emit-pch) header=1 ;;
  esac
  case $last in
  -o) output=$argument ;;
  -MF) depfile=$argument ;;
  esac
  last=$argument
  set -- "$@" "$argument"
done

if [ -z "$header" ] || [ -z "$depfile" ]; then
  CCACHE_BASEDIR=$source CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros
  export CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_PCH_EXTSUM CCACHE_SLOPPINESS
  exec "$ccache" "$compiler" "$@"
fi

rm -f "$output.sum"
"$compiler" "$@"
# The names in the list are left out: they hold the clone's folder; a file that is moved or renamed changes one that includes it.
{
  "$compiler" --version
  printf '%s\n' "$@" | sed "s|$source|.|g"
  sed -e 's/^[^:]*: *//' -e 's/\\$//' "$depfile" | tr -s ' ' '\n' | grep . | xargs cat | sha256sum
} | sha256sum > "$output.sum.new"
mv "$output.sum.new" "$output.sum"
