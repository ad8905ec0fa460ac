# same-words.sh DIR COLS: DIR/placed.mlir, resumed by dmxc and stage by stage by dmx-opt, gives the words of DIR/direct.
set -eu
cd "$1"
dmxc placed.mlir --from schedule -t "aie:cols=$2" -o again.bundle --save-temps again
dmx-opt placed.mlir -aie-route -o routed.mlir
dmx-opt routed.mlir -aie-control -o control.mlir
dmx-opt control.mlir "--aie-encode=cdo=words.cdo insts=words.insts.txt" -o /dev/null
for way in placed.mlir routed.mlir; do
  dmx-opt $way -aie-route -aie-control "--aie-encode=cdo=$way.cdo insts=$way.insts.txt" -o /dev/null
done
for words in *.cdo; do cmp direct/*.cdo "$words"; done
for words in *.insts.txt; do cmp direct/*.insts.txt "$words"; done
cmp direct/*.cdo again/*.cdo
cmp direct/*.insts.txt again/*.insts.txt
