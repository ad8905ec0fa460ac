#!/bin/bash
# same-bits.sh ON OFF - two bundles of masked-attention.mlir give the same bits at each level and number of threads.
set -e
for entry in causal window blind chunks right left; do
  for isa in x86-64-v2 x86-64-v3 host; do
    for threads in 1 2; do
      for bundle in "$1" "$2"; do
        dmx-run "$bundle" --entry $entry --isa $isa --threads $threads --random-inputs 3 --output "r=$bundle.npy" -q
      done
      cmp "$1.npy" "$2.npy"
    done
  done
done
