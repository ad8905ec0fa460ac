#!/usr/bin/env python3
"""Kernels that are made worse on purpose show it in the figure of cuda.report that is meant, and compute what they did: PTX that a compile wrote,
changed, or the text of its pipeline. The figures are the same for every seed of turns.

Usage: worse.py BIN. Exit 77 where numpy is not there."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fuzz"), str(TESTS / "cuda")]
import onnx_file as onnx  # noqa: E402
from mutants import Bundle  # noqa: E402
from products import schedule_of, Case  # noqa: E402

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "").resolve()
SEEDS = (3, 11)

# ---- text that is put into the PTX of y = max(x, 0), a thread an element, 128 a block ----

# Lanes of a warp 8 words apart: a warp touches 16 sectors of which it wants 8 bytes each.
APART = r"""\g<0>
	{
	.reg .b32 %q<2>;
	and.b32 %q0, \1, 15;
	shl.b32 %q0, %q0, 3;
	shr.u32 %q1, \1, 4;
	or.b32 \1, %q0, %q1;
	}"""


def through_shared(places):
    """Behind the comparison: each thread's value by way of 16 bytes of its own in shared memory; `places` puts their address into %q1."""
    return rf"""\g<0>
	{{
	.reg .b32 %q<6>;
	mov.u32 %q0, %tid.x;
	mov.b32 %q1, room;
	{places}
	st.shared.v4.b32 [%q1], {{\1, \1, \1, \1}};
	ld.shared.v4.b32 {{\1, %q3, %q4, %q5}}, [%q1];
	}}"""


ROOM = "\t.shared .align 16 .b8 room[%d];\n"
STRAIGHT = "mad.lo.u32 %q1, %q0, 16, %q1;"
DOWN = "mad.lo.u32 %q1, %q0, 128, %q1;"  # each lane a row of 128 bytes: the same banks
SWIZZLED = DOWN + "\n\tand.b32 %q2, %q0, 7;\n\tmad.lo.u32 %q1, %q2, 16, %q1;"
TID, VALUE = r"mov\.u32\s+(%r\d+), %tid\.x;", r"selp\.f32\s+(%r\d+), [^;]*;"

# A row of 1,024 by the first thread of its block.
BY_ONE = r"""
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %d<8>;
	ld.param.b64 %d0, [NAME_param_0];
	ld.param.b64 %d1, [NAME_param_1];
	mov.u32 %r0, %tid.x;
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra $end;
	mov.u32 %r1, %ctaid.x;
	mul.wide.u32 %d2, %r1, 4096;
	add.s64 %d2, %d0, %d2;
	mov.b32 %r2, 0f00000000;
	mov.b32 %r3, 0;
$again:
	ld.global.b32 %r4, [%d2];
	add.rn.f32 %r2, %r2, %r4;
	add.s64 %d2, %d2, 4;
	add.s32 %r3, %r3, 1;
	setp.lt.u32 %p1, %r3, 1024;
	@%p1 bra $again;
	mul.wide.u32 %d3, %r1, 4;
	add.s64 %d3, %d1, %d3;
	st.global.b32 [%d3], %r2;
$end:
	ret;
"""


def registers(text):
    """160 values that live from a kernel's begin to its end."""
    begin = "".join(f"\tmov.u32 %z{i}, %tid.x;\n" for i in range(160))
    end = "".join(f"\txor.b32 %z0, %z0, %z{i};\n" for i in range(1, 160))
    text = re.sub(r"(\.reg \.b64[^\n]*\n)", r"\1\t.reg .b32 %z<160>;\n" + begin, text, count=1)
    return text.replace("\tret;", end + "\tret;")


class Subject(Bundle):
    """A model of one node with values that have exact sums; figures of its last kernel."""

    def __init__(self, place, name, model, inputs, expected, options=()):
        super().__init__(BIN, place / name)
        self.place.mkdir()
        (self.place / "m.onnx").write_bytes(model)
        for key, value in inputs.items():
            np.save(self.place / f"{key}.npy", value)
            self.words += ["--input", f"{key}={self.place}/{key}.npy"]
        self.expect("y.npy", expected)
        self.options = ["-q", "-t", "cuda:sm_90a", "--numerics", "bf16"]
        self.chosen = options
        self.compile(self.place / "m.onnx", *options)
        self.words += ["--expect", self.place / "expect"]

    def compile(self, source, *more):
        self.run("dmxc", source, *self.options, "--bundle-format", "dir", "-o", self.bundle, *more)
        self.text = (self.bundle / "code" / "cuda" / "sm_90a" / "kernels.ptx").read_text()

    def pipeline(self, change):
        """Compiled by way of the text of its pipeline, changed."""
        text = self.place / "p.mlir"
        self.run("dmxc", self.place / "m.onnx", *self.options, *self.chosen, "--emit", "schedule.pipeline", "-o", text)
        before = text.read_text()
        text.write_text(change(before))
        assert text.read_text() != before
        self.compile(text, "--from", "schedule.pipeline")

    def figures(self, text=None):
        """Of a run with this text, which gives what is expected; the same for every seed."""
        got = []
        for seed in SEEDS:
            report = self.place / f"{seed}.json"
            code, said = self.answer(text or self.text, "-q", "--device-opt", f"cuda.sim_seed={seed}", "--device-opt", f"cuda.report={report}", steps=None)
            if code:
                raise RuntimeError(f"dmx-run ended with {code}: {said[-500:]}")
            got.append(json.loads(report.read_text())["last"])
        if got[0] != got[1]:
            raise RuntimeError("the figures are others with another seed")
        return got[0][-1]["main"]


def elementwise(place):
    x = np.random.default_rng(5).standard_normal((2112, 32)).astype(np.float32)
    model = onnx.model([onnx.node("Relu", "x", "y")], [onnx.info("x", onnx.FLOAT, x.shape)], [onnx.info("y", onnx.FLOAT, None)])
    return Subject(place, "relu", model, {"x": x}, np.maximum(x, 0))


def product(place, name, tile=None):
    random = np.random.default_rng(6)
    x, w = (random.integers(-16, 17, (512, 512)).astype(np.float32) / 8 for _ in range(2))
    model = onnx.model([onnx.node("MatMul", "x w", "y")], [onnx.info("x", onnx.FLOAT, x.shape)], [onnx.info("y", onnx.FLOAT, None)],
                       weights=[onnx.tensor("w", onnx.FLOAT, w.shape, raw=w.tobytes())])  # fmt: skip
    options = []
    if tile:
        script = place / f"{name}.script.mlir"
        script.write_text(schedule_of(Case("rounded", (), x.shape, "", "", True, "", True, False, tile)))
        options = ["--schedule", script]
    return Subject(place, name, model, {"x": x}, x @ w, options)


def sums(place):
    x = np.random.default_rng(7).integers(-16, 17, (264, 1024)).astype(np.float32) / 8
    model = onnx.model([onnx.node("ReduceSum", "x a", "y", keepdims=0)], [onnx.info("x", onnx.FLOAT, x.shape)], [onnx.info("y", onnx.FLOAT, None)],
                       weights=[onnx.tensor("a", onnx.INT64, [1], raw=np.int64([1]).tobytes())])  # fmt: skip
    return Subject(place, "sums", model, {"x": x}, x.sum(1))


def changed(subject, *changes):
    text = subject.text
    for pattern, instead in changes:
        text, count = re.subn(pattern, instead, text, count=1)
        assert count == 1, pattern
    return text


def cases(place):
    """(what is worse, figures before, figures behind, what they are to be)"""
    relu = elementwise(place)
    good = relu.figures()
    declared = lambda bytes: (r"\.reg \.pred", ROOM % bytes + r"\g<0>")
    yield ("uncoalesced", good, relu.figures(changed(relu, (TID, APART))),
           lambda a, b: a["coalescing"] == 1 and b["coalescing"] == 0.25 and b["sectors_read"] == 4 * a["sectors_read"])  # fmt: skip
    shared = {where: relu.figures(changed(relu, declared(16384), (VALUE, through_shared(where)))) for where in (STRAIGHT, DOWN, SWIZZLED)}
    wavefronts = 2112 * 2 * 4  # of each warp's 16 bytes a lane: 4 to store them, 4 to load them
    yield ("bank conflicts", shared[STRAIGHT], shared[DOWN],
           lambda a, b: (a["shared_wavefronts"], a["bank_conflicts"]) == (wavefronts, 0) and b["bank_conflicts"] == 7 * wavefronts and b["clocks"] > a["clocks"])  # fmt: skip
    yield "no swizzle", shared[SWIZZLED], shared[DOWN], lambda a, b: a["bank_conflicts"] == 0 and b["bank_conflicts"] == 7 * wavefronts
    yield ("registers", good, relu.figures(registers(relu.text)),
           lambda a, b: b["registers"] >= 168 and a["blocks_at_a_time"] == 16 and b["blocks_at_a_time"] == 65536 // (128 * b["registers"]))  # fmt: skip
    yield ("shared memory", good, relu.figures(changed(relu, declared(45056), (VALUE, through_shared(STRAIGHT)))),
           lambda a, b: b["blocks_at_a_time"] == 233472 // (45056 + 1024) and b["occupancy"] == b["blocks_at_a_time"] * 128 / 2048)  # fmt: skip
    whole = product(place, "whole", ("128x128", 4))
    best = whole.figures()
    whole.pipeline(lambda text: text.replace("slots 4", "slots 2"))
    yield ("half the stages", best, whole.figures(),
           lambda a, b: b["clocks"] > 1.1 * a["clocks"] and b["utilisation"]["tensor"] < 0.95 * a["utilisation"]["tensor"] and b["L2"] == a["L2"])  # fmt: skip
    small = product(place, "small", ("64x64", 4)).figures()
    # Bytes of all tiles: as many as there are, by their rows and columns, by 512 terms of 2 bytes.
    yield ("a smaller tile", best, small,
           lambda a, b: a["tma_bytes_read"] == 16 * 256 * 1024 and b["tma_bytes_read"] == 64 * 128 * 1024)  # fmt: skip
    few = product(place, "few", ("64x64", 4))
    yield ("few blocks", small, few.figures(changed(few, (r'"grid":64', '"grid":8'))),
           lambda a, b: (a["multiprocessors"], b["multiprocessors"]) == (64, 8) and b["clocks"] > 3 * a["clocks"] and b["mac_peak_share"] < a["mac_peak_share"] / 3)  # fmt: skip
    rows = sums(place)
    name = re.search(r"\.entry (\w+)\(", rows.text).group(1)
    body = re.sub(r"(\.reqntid [^\n]*\n\{).*\}", lambda found: found.group(1) + BY_ONE.replace("NAME", name) + "}", rows.text, flags=re.DOTALL)
    yield ("a thread a row", rows.figures(), rows.figures(body),
           lambda a, b: a["coalescing"] > 0.99 and b["coalescing"] == 4 / 32 and b["bound"] == "latency" and b["clocks"] > 10 * a["clocks"])  # fmt: skip


def main():
    bad = count = 0
    with tempfile.TemporaryDirectory(prefix="dmxc-worse-") as place:
        for name, before, behind, holds in cases(pathlib.Path(place)):
            before["L2"], behind["L2"] = before["read_bytes"]["L2"], behind["read_bytes"]["L2"]
            good = holds(before, behind)
            bad, count = bad + (not good), count + 1
            print(f"{'ok  ' if good else 'FAIL'} {name}: {before['clocks']} clocks bound by {before['bound']}, then {behind['clocks']} by {behind['bound']}", flush=True)
            if not good:
                print(f"     {before}\n     {behind}")
    print(f"{count - bad} of {count} are seen in the figure that is meant")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
