#!/usr/bin/env python3
"""Random convolutions by patches of the image, on the simulator of GPUs against numpy: f32, bf16 and f16, depthwise and other groups, one to three axes,
strides, dilations, padding, open batches and images, what follows them, however they are cut; the same bits for any order of turns. By the clock
depthwise ones and those of small groups take at most half of what plain ones do, others a third.

Usage: patches.py BIN. A plain run takes 2 small cases, with DMXC_LONG=1 150. Exit 77 where numpy is not there."""

import itertools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import products  # noqa: E402, F401  exits where numpy is not there
from attempts import Attempts  # noqa: E402
import convolutions  # noqa: E402
import tiles  # noqa: E402
from products import np, onnx, run  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

WAY = "conv-by-patches"
MOST_MACS = 2 * 10**6  # of a plain run
FIELDS = "columns", "rows", "parts", "outputs", "own"


class Case(convolutions.Case):
    """Half of them of groups of few channels; nothing is rounded that the model has in f32."""

    def __init__(self, random, number):
        super().__init__(random, number)
        self.numbers = {"rounded": "f32"}.get(self.numbers, self.numbers)
        if random.random() < 0.6:
            self.groups, few = int(random.integers(1, 70)), [1, 1, 2, 4]
            channels, outputs = few[random.integers(4)], few[random.integers(4)]
            self.x = self.values((self.images, channels * self.groups, *self.image))
            self.w = self.values((outputs * self.groups, channels, *self.w.shape[2:]))
        self.label = f"{self.numbers}, {self.x.shape} by {self.w.shape}, groups {self.groups}, else {self.label}"

    def rounds(self, pixels):
        return self.numbers in ("bf16", "f16")


def tile_of(place, random):
    """A tile, field by field of what is left."""
    decided = ""
    for field in FIELDS:
        tiles.write_schedule(place, "dmir.conv", WAY, decided)
        said = run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--schedule", place / "s.mlir", "--explain-decisions", "--emit", "partition", "-o",
                   place / "p.mlir")  # fmt: skip
        if found := re.search(rf"^  {field} = .* of ([0-9, ]+);", said, re.M):
            values = found[1].split(", ")
            decided += f", {field} = {values[random.integers(len(values))]}"
    return decided


def check(place, case, random):
    (place / "m.onnx").write_bytes(case.build())
    tiles.compile_model(place, "dmir.conv", WAY, tile_of(place, random))
    tiles.check_runs(place, case, random)


TIMED = {
    "1 x 56 x 56": ([1, 64, 56, 56], (64, 64, 3, 3), 1, 1, 3),
    "32 groups of 4": ([1, 128, 56, 56], (128, 4, 3, 3), 32, 1, 3),
    "32 groups of 8": ([1, 256, 28, 28], (256, 8, 3, 3), 32, 1, 3),
    "depthwise": ([1, 144, 56, 56], (144, 1, 3, 3), 144, 1, 2),
    "depthwise of 5 x 5": ([8, 144, 28, 28], (144, 1, 5, 5), 144, 1, 2),
}


def check_clocks(place, given, weights, groups, stride, least):
    """The default against what a schedule makes plain."""
    node = onnx.node("Conv", "x w", "y", pads=[weights[-1] // 2] * 4, group=groups, strides=[stride] * 2)
    tiles.check_clocks(place, node, "dmir.conv", given, weights, least, WAY)


def main():
    attempts, left = Attempts(), 150 if LONG else 2
    for number in itertools.count():
        random = np.random.default_rng([0 if LONG else SEED, number])
        case = Case(random, number)
        if not LONG and case.x.size * case.w[: case.w.shape[0] // case.groups].size > MOST_MACS:
            continue
        attempts.run(case.label, check, case, random)
        left -= 1
        if not left:
            break
    for name, case in TIMED.items() if LONG else [list(TIMED.items())[SEED % len(TIMED)]]:
        attempts.run(f"{name} by the clock", check_clocks, *case)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
