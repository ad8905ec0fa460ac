#!/usr/bin/env python3
"""Each of these changes to a convolution by tensor cores, whose windows threads copy tap by tap, or by patches of the image, is found by the simulator's
checks or in the result, as in mutants.py. Usage: convolution_mutants.py BIN. Exit 77 where numpy is not there."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import mutants  # noqa: E402  exits where numpy is not there
import convolutions  # noqa: E402
import tiles  # noqa: E402
from products import np, onnx, run  # noqa: E402

# Groups of four outputs, 16 of which are a matrix: nine steps of a tap each through two slots, tiles that end behind the result.
TAPS = (2, 64, 9, 9), (64, 4, 3, 3), 16, "conv-specialised", ", rows = 64, columns = 64, stages = 2", "bf16"
# Twelve channels, some a step; a rectangle that ends behind the result, turns of copies that not all threads have.
PATCHES = (1, 12, 11, 13), (6, 12, 3, 3), 1, "conv-by-patches", ", columns = 8, rows = 8, parts = 2, outputs = 2, own = 2", "strict"
LOAD = r"(ld\.global(?:\.nc)?\.b16 \t?%rs\d+, \[%rd\d+)(\+\d+)?\]"
TAP_MUTANTS = [
    ("nothing shows products what threads stored", r"fence\.proxy\.async;", "", -1),
    ("units of a row do not change places", r"(\txor\.b64 \t?%rd\d+, %rd\d+), %rd\d+;", r"\1, 0;", -1),
    ("a neighbour is taken for what is outside", r"selp\.b16 (\t?%rs\d+), (%rs\d+), 0, %p\d+;", r"mov.b16 \1, \2;", -1),
    ("a channel is read for its neighbour", LOAD, r"\1+162]", -1),
    ("a term is left out", r"mov\.b32 (\t?%r\d+), \{(%rs\d+), %rs\d+\};", r"mov.b32 \1, {\2, \2};", -1),
    ("stores fill another place", r"(st\.shared\.v4\.b32 \t?\[%rd\d+)(\+\d+)?\]", r"\1+16]", -1),
    ("copies wait for no phase", r"(try_wait\.parity\.shared\.b64 \t?P1, \[%r\d+\]), %r\d+,", r"\1, 1,", -1),
    ("a slot is full without the threads", r"(mov\.b32 \t?%r\d+), 5;", r"\1, 1;", 0),
    ("the table has a longer pitch of the weights", r'"strides":\[1152', '"strides":[1168', 0),
    ("the table has fewer steps of the weights", r'"sizes":\[576,', '"sizes":[512,', 0),
]
PATCH_MUTANTS = [
    ("threads do not meet before they read", r"bar\.sync \t?0;", "", 1),
    ("threads do not meet behind a step", r"bar\.sync \t?0;", "", -1),
    ("a pixel goes to its neighbour's place", r"(st\.shared\.b32 \t?\[%rd\d+)(\+\d+)?\]", r"\1+4]", 0),
    ("what is outside is taken", r"selp\.(f32|b32) (\t?%[rf]\d+), (%[rf]\d+), (?:0f00000000|0), %p\d+;", r"mov.\1 \2, \3;", 0),
    ("a tap is read for its neighbour", r"(ld\.shared\.b32 \t?%[rf]\d+, \[%rd\d+\+)(\d+)\]", r"\g<1>4]", 4),
    ("sums are of the first term twice", r"(fma\.rn\.f32 \t?%[rf]\d+, %[rf]\d+), (%[rf]\d+), %[rf]\d+;", r"\1, \2, \2;", -1),
    ("the other buffer is the same", r"(sub\.s32 \t?%r\d+), \d+, %r\d+;", r"\1, 0, 0;", 0),
    ("blocks have fewer threads", r'"block":64', '"block":32', 0),
    ("there is less shared memory", r'"shared":\d+', '"shared":1024', 0),
]


class Convolution(mutants.Bundle):
    def __init__(self, programs, place, shape, weights, groups, way, decided, numerics):
        super().__init__(programs, place)
        random = np.random.default_rng(1)
        x, w = ((random.integers(-8, 9, each) / 8).astype(np.float32) for each in (shape, weights))
        model = onnx.model([onnx.node("Conv", "x w", "y", pads=[1] * 4, group=groups)], [onnx.info("x", onnx.FLOAT, shape)],
                           [onnx.info("y", onnx.FLOAT, None)], weights=[onnx.tensor("w", onnx.FLOAT, weights, raw=w.tobytes())])  # fmt: skip
        (place / "m.onnx").write_bytes(model)
        tiles.write_schedule(place, "dmir.conv", way, decided)
        run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", numerics, "--require-target", "cuda:100", "--schedule", place / "s.mlir",
            "--bundle-format", "dir", "-o", self.bundle)  # fmt: skip
        np.save(place / "x.npy", x)
        self.words += ["--input", f"x={place}/x.npy"]
        self.expect("y.npy", convolutions.convolve(x, w, [1, 1], [1, 1], [1, 1], [1, 1], groups)[0].astype(np.float32))
        self.take()
        if way.replace("-", "_") not in self.text:
            raise RuntimeError(f"the convolution is not {way}")


def main():
    bad = 0
    for case, changes in (TAPS, TAP_MUTANTS), (PATCHES, PATCH_MUTANTS):
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
            subject = Convolution(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place), *case)
            bad += mutants.judge_mutants(subject, changes, seeds=4)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
