#!/bin/sh
# Generates the zoo's models once (they are large) and runs the conformance test on them.
# zoo.sh CONFORMANCE MAKE_ZOO.py FOLDER MODEL,MODEL.. SCRATCH [MORE,MODELS that other tests run]
set -eu
runner=$1 script=$2 folder=$3 models=$4 scratch=$5 more=${6:-}
if [ ! -f "$script" ]; then
  echo "SKIPPED: $script is not there"
  exit 77
fi
if ! /usr/bin/python3 -c "import torch, torchvision, onnx" 2>/dev/null; then
  echo "SKIPPED: python3-torch, python3-torchvision and python3-onnx are not installed (tools/setup --bench)"
  exit 77
fi
missing=""
for model in $(echo "$models,$more" | tr , ' '); do
  [ -f "$folder/$model/meta.json" ] || missing="$missing,$model"
done
if [ -n "$missing" ]; then
  /usr/bin/python3 "$script" --out "$folder" --only "${missing#,}"
fi
# shellcheck disable=SC2046
/usr/bin/python3 "$(dirname "$0")/zoo_sets.py" "$script" "$folder" $(echo "$models" | tr , ' ')
# The references are computed in float64; float32 sums of thousands of terms differ from them by more than their
# relative tolerance where the result is near zero.
exec "$runner" "$folder" --all-pass --dims open --only "$models" --rtol 1e-3 --atol 1e-4 --timeout 1200 --scratch "$scratch" --csv "$folder/results.csv"
