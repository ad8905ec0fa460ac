# same-words.sh DIR LEVELS: DIR/grid.mlir and DIR/placed.mlir, resumed by dmxc, the second stage by stage by dmx-opt, and the
# program before it give the words of DIR/direct.
set -eu
cd "$1"
dmxc placed.mlir --from schedule -t "aie:$2" -o again.bundle --save-temps again
dmxc grid.mlir --from schedule.grid -t "aie:$2" -o before.bundle --save-temps before
dmx-opt direct/*.dlir.mlir -o dlir.mlir
dmx-opt placed.mlir -aie-route -o routed.mlir
dmx-opt routed.mlir -aie-control -o control.mlir
for way in dlir placed routed control; do
  dmx-opt $way.mlir -aie-place -aie-route -aie-control "--aie-encode=cdo=$way.cdo insts=$way.insts.txt" -o /dev/null
  cmp direct/*.cdo $way.cdo
  cmp direct/*.insts.txt $way.insts.txt
done
for way in before again; do
  cmp direct/*.cdo $way/*.cdo
  cmp direct/*.insts.txt $way/*.insts.txt
done
