#!/usr/bin/env python3
"""Sizes that a run brings, on the array: programs for a bound, smaller sizes in fewer clocks, texts that carry it, what is said where
a bound is missing, does not fit, or is passed. Usage: open.py BIN. Exit 77 where numpy is not installed.

Results are numpy's to the bit: sums of integers modulo 2^32, and of bf16 with k ascending (floats.py has that rule)."""
import json
import pathlib
import re
import sys
import tempfile

from checks import BIN, expect, failures, np, onnx_file as onnx, run, sampling

RANDOM = np.random.default_rng(sampling.SEED)


def integers(*shape):
    return RANDOM.integers(-(2**31), 2**31, shape).astype(np.int32)


def small(*shape):
    """f32 whose products and sums are exact in any order."""
    return RANDOM.integers(-8, 9, shape).astype(np.float32)


def product(a, b):
    return (a.astype(np.int64).astype(np.uint64) @ b.astype(np.int64).astype(np.uint64)).astype(np.uint32).astype(np.int32)


def image(x, w, stride, pad):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    sizes = [(have - taps) // stride + 1 for have, taps in zip(x.shape[2:], w.shape[2:])]
    y = np.zeros((x.shape[0], w.shape[0], *sizes), np.float32)
    for row in range(w.shape[2]):
        for column in range(w.shape[3]):
            part = x[:, :, row : row + stride * (sizes[0] - 1) + 1 : stride, column : column + stride * (sizes[1] - 1) + 1 : stride]
            y += np.einsum("nchw,oc->nohw", part, w[:, :, row, column])
    return y


class Model:
    """Nodes with inputs whose dims are words where a run brings them, the bounds of these, sizes to try, and what they give."""

    def __init__(self, name, kind, nodes, inputs, output, bounds, tries, make, compute, weights=None):
        self.name, self.kind, self.nodes, self.inputs, self.output = name, kind, nodes, inputs, output
        self.bounds, self.tries, self.make, self.compute, self.weights = bounds, tries, make, compute, weights or {}

    def write(self, path):
        path.write_bytes(onnx.model(
            self.nodes, [onnx.info(key, self.kind, dims) for key, dims in self.inputs.items()], [onnx.info("o", self.kind, self.output)],
            weights=[onnx.tensor(key, self.kind, list(value.shape), raw=value.tobytes()) for key, value in self.weights.items()]))

    def dims(self):
        return [word for key, bound in self.bounds.items() for word in ("--dim", f"{key}=1..{bound}")]


def models():
    node = onnx.node
    b, r = integers(70, 90), integers(90)
    yield Model("rows", onnx.INT32, [node("MatMul", "a b", "p"), node("Add", "p r", "s"), node("Relu", "s", "o")], {"a": ["rows", 70]},
                ["rows", 90], {"rows": 600}, [{"rows": n} for n in (600, 1, 128, 129)], integers,
                lambda a: np.maximum(product(a, b) + r, 0), {"b": b, "r": r})
    c = integers(33, 300)
    yield Model("batch and length", onnx.INT32, [node("MatMul", "a b", "o")], {"a": ["batch", "length", 33]}, ["batch", "length", 300],
                {"batch": 5, "length": 140}, [{"batch": 5, "length": 140}, {"batch": 2, "length": 97}, {"batch": 1, "length": 1}], integers,
                lambda a: product(a, c), {"b": c})
    yield Model("scores", onnx.INT32, [node("MatMul", "a b", "o")], {"a": ["batch", 3, "length", 20], "b": ["batch", 3, 20, "keys"]},
                ["batch", 3, "length", "keys"], {"batch": 3, "length": 150, "keys": 140},
                [{"batch": 3, "length": 150, "keys": 140}, {"batch": 1, "length": 3, "keys": 139}, {"batch": 2, "length": 130, "keys": 1}],
                integers, product)
    yield Model("values", onnx.INT32, [node("MatMul", "a b", "o")], {"a": [2, "length", "keys"], "b": [2, "keys", 24]}, [2, "length", 24],
                {"length": 20, "keys": 400}, [{"length": 20, "keys": 400}, {"length": 20, "keys": 64}, {"length": 7, "keys": 65}], integers,
                product)
    w, q = small(20, 5, 3, 3), small(20)
    yield Model("images", onnx.FLOAT, [node("Conv", "x w q", "s", strides=[2, 2], pads=[1] * 4), node("Relu", "s", "o")],
                {"x": ["batch", 5, "height", "width"]}, ["batch", 20, None, None], {"batch": 8, "height": 60, "width": 43},
                [{"batch": 8, "height": 60, "width": 43}, {"batch": 1, "height": 60, "width": 43}, {"batch": 3, "height": 9, "width": 8}], small,
                lambda x: np.maximum(image(x, w, 2, 1) + q.reshape(-1, 1, 1), 0), {"w": w, "q": q})


def clocks(report):
    return sum(kernel["main"]["clocks"] for kernel in json.loads(report.read_text())["last"])


def check_sizes(folder, model):
    """All sizes in one bundle, right, and the smaller ones in fewer clocks."""
    file, bundle, report = folder / "m.onnx", folder / "m.bundle", folder / "r.json"
    model.write(file)
    said = run(BIN / "dmxc", file, "-t", "aie", *model.dims(), "--require-target", "aie:100", "-o", bundle)
    expect("in 1 task" in said, f"{model.name}: {said}")
    run(BIN / "dmx-inspect", bundle, "--verify")
    taken = []
    for number, sizes in enumerate(model.tries):
        inputs = {key: model.make(*[sizes.get(dim, dim) for dim in dims]) for key, dims in model.inputs.items()}
        data = folder / f"{model.name}-{number}"
        data.mkdir()
        for key, value in inputs.items():
            np.save(data / f"in_{key}.npy", value)
        np.save(data / "out_o.npy", model.compute(*inputs.values()))
        for seed in (0, 1 + number):
            run(BIN / "dmx-run", bundle, "--inputs", data, "--expect", data, "--rtol", "0", "--atol", "0", "--device-opt", f"report={report}",
                "--device-opt", f"skew_seed={seed}")
            if seed == 0:
                taken.append(clocks(report))
    print(f"{model.name}: " + ", ".join(f"{sizes} {count} clocks" for sizes, count in zip(model.tries, taken)))
    expect(all(count < taken[0] for count in taken[1:]), f"{model.name}: smaller sizes take {taken}")


def kernels(bundle):
    return run(BIN / "dmx-inspect", bundle, "--what", "kernels")


def check_texts(folder, model):
    """Each text goes on to the same words; sizes that are none of the program's are refused by their op."""
    file, bundle, text = folder / "t.onnx", folder / "t.bundle", folder / "t.mlir"
    model.write(file)
    run(BIN / "dmxc", file, "-t", "aie", *model.dims(), "-o", bundle)
    shown = kernels(bundle)
    for stage, changes in (("schedule.grid", (("dlir.dims = #dmir.dims<", "dlir.dims = #dmir.dims<\"9\", ", "'dim_registers' for"),
                                              ("count[%r0 * 2]", "count[%r0 * 3]", "is filled 2 times where it is drained 3"),
                                              ("count[%r0 * 2]", "count[%r0 * 2 + 1]", "other bytes in a run"))),
                           ("schedule", (("aiex.when dims [", "aiex.when dims [9, ", "op has 2 sizes and 1 numbers"), ("factor = 2 : i64", "factor = 3 : i64", "of which its number is no multiple"),
                                         (re.search(r"{dim = \d+ : i64", run(BIN / "dmxc", file, "-t", "aie", *model.dims(), "--emit", "schedule", "-o", "-")).group(), "{dim = 77 : i64", "takes size 77")))):
        run(BIN / "dmxc", file, "-t", "aie", *model.dims(), "--emit", stage, "-o", text)
        good = text.read_text()
        run(BIN / "dmxc", text, "--from", stage, "-t", "aie", "-o", bundle)
        expect(kernels(bundle) == shown, f"{model.name}: other words from {stage}")
        for old, new, why in changes:
            expect(old in good, f"{stage} has no '{old}'")
            text.write_text(good.replace(old, new, 1))
            said = run(BIN / "dmxc", text, "--from", stage, "-t", "aie", "-o", bundle, code=1)
            expect(why in said, f"{stage}, {new}: {said}")


def check_refusals(folder, model):
    """No bound, one that does not fit, a size beyond it: what, why, and what to do."""
    file, bundle = folder / "u.onnx", folder / "u.bundle"
    model.write(file)
    for dims, why in (((), "have a bound, and rows has none: --dim rows=1..N says one"), (("--dim", "rows=1..9000000"), "holds 4096, where sizes are as large as --dim lets them be: smaller bounds may fit")):
        said = run(BIN / "dmxc", file, "-t", "aie", *dims, "-o", bundle, "--placement-report", "-")
        expect(re.search(rf"MatMul_0\tdmir.matmul\tcpu\t.*{re.escape(why)}", said), f"{dims}: {said}")
    run(BIN / "dmxc", file, "-t", "aie", *model.dims(), "-o", bundle)
    np.save(folder / "far.npy", integers(model.bounds["rows"] + 1, 70))
    said = run(BIN / "dmx-run", bundle, "--input", f"a={folder / 'far.npy'}", code=2)
    expect("axis 0 ('rows') is 601, expected 1 to 600" in said, f"a size beyond its bound: {said}")


with tempfile.TemporaryDirectory(prefix="dmxc-aie-") as scratch:
    all_models = {each.name: each for each in models()}
    for each in all_models.values():
        check_sizes(pathlib.Path(scratch), each)
    check_texts(pathlib.Path(scratch), all_models["values"])
    check_refusals(pathlib.Path(scratch), all_models["rows"])
sys.exit(1 if failures else 0)
