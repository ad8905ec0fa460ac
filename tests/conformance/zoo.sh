#!/bin/sh
# Makes the zoo's models once (they are large), with data sets of several sizes for those whose sizes are open.
# zoo.sh MAKE_ZOO.py FOLDER MODEL,MODEL.. [MORE,MODELS]
set -eu
script=$1 folder=$2 models=$3${4:+,$4}
if [ ! -f "$script" ]; then
  echo "SKIPPED: $script is not there"
  exit 77
fi
if ! /usr/bin/python3 -c "import torch, torchvision, onnx" 2>/dev/null; then
  echo "SKIPPED: python3-torch, python3-torchvision and python3-onnx are not installed (tools/setup --bench)"
  exit 77
fi
missing=""
for model in $(echo "$models" | tr , ' '); do
  [ -f "$folder/$model/meta.json" ] || missing="$missing,$model"
done
if [ -n "$missing" ]; then
  /usr/bin/python3 "$script" --out "$folder" --only "${missing#,}"
fi
# shellcheck disable=SC2046
/usr/bin/python3 "$(dirname "$0")/zoo_sets.py" "$script" "$folder" $(echo "$models" | tr , ' ')
