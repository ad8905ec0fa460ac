#!/usr/bin/env python3
"""Random products and convolutions of bytes by ONNX's definitions, in numpy's 64-bit integers: equal in every bit at every level that
this machine runs. Signs, zero points (of a run or known, one for all, a row or a column, at both ends of their range), terms up to
32768 and beyond, extents of 0 and 1, open dims; whole and after DynamicQuantizeLinear. 200 cases at all levels with DMXC_LONG=1, else
a fifth of them, another one each day, half of it at every other level. Usage: random_quantised.py BIN [--cases FIRST-LAST].
Exit 77 where numpy is not installed."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fuzz"), str(HERE / "extents")]
import onnx_file as onnx
from levels import levels_here
from sampling import LONG, SEED

CASES, SHARE = 200, 5
OPS = ["MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "ConvInteger", "MatMulInteger", "ConvInteger",
       "MatMulInteger"]
KINDS = {np.uint8: onnx.UINT8, np.int8: onnx.INT8, np.float32: onnx.FLOAT, np.int32: onnx.INT32}


def extremes(random, kind, shape):
    """Bytes, every third of which is one of the two ends."""
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    values = random.integers(low, high + 1, shape).astype(kind)
    ends = random.choice([low, high], shape)
    return np.where(random.random(shape) < 1 / 3, ends, values).astype(kind)


def zero_points(random, kind, shape):
    """All at one end, or anything."""
    ends = [np.iinfo(kind).min, np.iinfo(kind).max]
    which = random.integers(0, 4)
    return extremes(random, kind, shape) if which > 1 else np.full(shape, ends[which], kind)


def wrapped(sums):
    return sums.astype(np.int32)  # from 64 bits: the lowest 32


def convolve(x, w, pads, strides, dilations, groups):
    """Sums of x [n, c, h, w], padded with zeros."""
    x = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    each, taps = w.shape[1], w.shape[2:]
    out = [(x.shape[i + 2] - dilations[i] * (taps[i] - 1) - 1) // strides[i] + 1 for i in range(2)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    for o, i, j in np.ndindex(w.shape[0], *taps):
        first = o // (w.shape[0] // groups) * each
        window = x[:, first:first + each, i * dilations[0]:, j * dilations[1]:][:, :, ::strides[0], ::strides[1]]
        y[:, o] += np.einsum("nchw,c->nhw", window[:, :, :out[0], :out[1]], w[o, :, i, j])
    return y


class Case:
    """One node. `operands`: name -> a constant, or what a run brings as function of (random, sizes); `shapes`: of the latter, with
    names of open dims; `sizes`: a binding of these for each run; `wanted(values)` the result."""

    def __init__(self, number):
        self.name, self.random = f"c{number}", np.random.default_rng(number)
        self.operands, self.shapes, self.kinds, self.attributes, self.domain = {}, {}, {}, {}, ""
        self.sizes, self.result = [{}, {}], np.int32
        kinds = (np.uint8, np.int8)
        self.left, self.right = (kinds[i] for i in self.random.integers(0, 2, 2))
        self.op = OPS[number % len(OPS)]
        self.convolution() if self.op == "ConvInteger" else self.product(number)

    def of_run(self, name, kind, shape, make):
        self.operands[name], self.shapes[name], self.kinds[name] = make, shape, kind

    def byte(self, name, kind, shape):
        at = lambda sizes: [sizes.get(d, d) for d in shape]
        self.of_run(name, kind, shape, lambda random, sizes: extremes(random, kind, at(sizes)))

    def zero(self, name, kind, shape):
        """Left out, known, or of a run."""
        which = self.random.integers(0, 4)
        if which == 0:
            self.operands[name] = None
        elif which == 1:
            self.operands[name] = zero_points(self.random, kind, shape)
        else:
            self.of_run(name, kind, shape, lambda random, sizes: zero_points(random, kind, shape))

    def columns(self, name, count):
        """Zero points of constant weights: none, one, or one a column."""
        shape = [None, [], [count]][self.random.integers(0, 3)]
        self.operands[name] = None if shape is None else zero_points(self.random, self.right, shape)

    #--- Products -----------------------------------------------------------------------------------------------------------
    def product(self, number):
        r = self.random
        m, n, k = int(r.choice([0, 1, 1, 2, 5, 13, 33])), int(r.choice([0, 1, 2, 17, 40, 70, 70, 17, 40])), int(r.integers(1, 140))
        k = {0: 32768, 8: 32769, 16: 34000, 24: 0, 2: 32768, 10: 32769}.get(number % 40, k)  # 0 8 16 24 2 10: all remainders by 5
        rows = [m, int(r.choice([1, 2]))][:int(r.integers(1, 3))][::-1]
        rows_open = bool(r.integers(0, 2))
        if rows_open:
            names = [f"{self.name}d{i}" for i in range(len(rows))]
            self.sizes = [dict(zip(names, s)) for s in (rows, [int(x) for x in r.choice([0, 1, 3, 9], len(rows))])]
            rows = names
        w = extremes(r, self.right, [k, n])
        few = bool(r.integers(0, 3) == 0)  # of a narrow range, as symmetric quantisation makes them
        if few:
            w = (w // 2).astype(self.right)
        getattr(self, {"MatMulInteger": "matmul_integer", "DynamicQuantizeMatMul": "dynamic", "MatMulIntegerToFloat": "to_float"}[self.op])(
            [*rows, k], w, rows_open)

    def matmul_integer(self, shape, w, rows_open):
        self.byte("a", self.left, shape)
        self.operands["b"] = w
        a_row = not rows_open and len(shape) == 2 and self.random.integers(0, 4) == 0
        self.zero("az", self.left, [shape[0]] if a_row else [[], [1]][self.random.integers(0, 2)])
        self.columns("bz", w.shape[1])
        self.wanted = lambda v: wrapped(self.sums(v))

    def sums(self, v):
        a, b = v["a"].astype(np.int64), v["b"].astype(np.int64)
        if v["az"] is not None:
            az = v["az"].astype(np.int64)
            a = a - (az.reshape(-1, 1) if az.size != 1 else az.reshape(()))
        if v["bz"] is not None:
            b = b - v["bz"].astype(np.int64)
        return a @ b

    def scale(self, name, shape):
        make = lambda random, sizes=None: random.uniform(0.01, 0.05, shape).astype(np.float32)
        if self.random.integers(0, 2):
            self.operands[name] = make(self.random)
        else:
            self.of_run(name, np.float32, shape, make)

    def bias(self, name, count):
        self.operands[name] = self.random.uniform(-3, 3, count).astype(np.float32) if self.random.integers(0, 2) else None

    def to_float(self, shape, w, rows_open):
        self.domain, self.result = "com.microsoft", np.float32
        self.byte("a", self.left, shape)
        self.operands["b"] = w
        self.scale("as", [])
        self.scale("bs", [[], [w.shape[1]]][self.random.integers(0, 2)])
        self.zero("az", self.left, [])
        self.columns("bz", w.shape[1])
        self.bias("c", w.shape[1])
        self.wanted = lambda v: self.real(self.sums(v), v["as"] * v["bs"], v["c"])

    @staticmethod
    def real(sums, scale, bias):
        y = wrapped(sums).astype(np.float32) * scale
        return y if bias is None else y + bias

    def dynamic(self, shape, w, rows_open):
        self.domain, self.result = "com.microsoft", np.float32
        low, high = ((-1, 3), (-4, -1), (0.5, 2), (0, 0))[self.random.integers(0, 4)]
        self.of_run("a", np.float32, shape,
                    lambda random, sizes: random.uniform(low, high, [sizes.get(d, d) for d in shape]).astype(np.float32))
        self.operands["b"] = w
        self.scale("bs", [[], [w.shape[1]]][self.random.integers(0, 2)])
        self.columns("bz", w.shape[1])
        self.bias("c", w.shape[1])

        def wanted(v):
            codes, scale, zero = dynamic_codes(v["a"])
            return self.real(self.sums({**v, "a": codes, "az": zero}), scale * v["bs"], v["c"])
        self.wanted = wanted

    #--- Convolutions -------------------------------------------------------------------------------------------------------
    def convolution(self):
        r = self.random
        groups = int(r.choice([1, 1, 1, 1, 1, 1, 2, 3]))
        each, outs = int(r.choice([1, 3, 8, 20])), int(r.choice([1, 8, 13, 24]))
        if groups == 2 and r.integers(0, 2):
            each = outs = 16
        kernel, strides, dilations = ([int(x) for x in r.choice(choice, 2)] for choice in ([1, 2, 3], [1, 2], [1, 1, 2]))
        pads = [int(x) for x in r.choice([0, 0, 1, 2], 4)] if r.integers(0, 3) else [0] * 4
        image = [int(x) for x in r.integers(5, 13, 2)]
        batch = int(r.choice([0, 1, 1, 2]))
        if r.integers(0, 5) == 0:
            names = [f"{self.name}d{i}" for i in range(3)]
            self.sizes = [dict(zip(names, s)) for s in ([batch, *image], [2, 7, 6])]
            batch, *image = names
        self.byte("x", self.left, [batch, each * groups, *image])
        self.operands["w"] = extremes(r, self.right, [outs * groups, each, *kernel])
        self.zero("xz", self.left, [])
        self.columns("wz", outs * groups)
        self.attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}

        def wanted(v):
            x, w = v["x"].astype(np.int64), v["w"].astype(np.int64)
            x = x if v["xz"] is None else x - v["xz"].astype(np.int64)
            w = w if v["wz"] is None else w - v["wz"].astype(np.int64).reshape(-1, 1, 1, 1)
            return wrapped(convolve(x, w, pads, strides, dilations, groups))
        self.wanted = wanted

    #--- The node and its runs ------------------------------------------------------------------------------------------------
    def named(self, operand):
        return "" if self.operands[operand] is None else f"{self.name}{operand}"

    def node(self):
        return onnx.node_of(self.op, [self.named(o) for o in self.operands], f"{self.name}y", domain=self.domain, **self.attributes)

    def inputs(self):
        return [onnx.info(self.named(o), KINDS[self.kinds[o]], shape) for o, shape in self.shapes.items()]

    def weights(self):
        return [onnx.tensor(self.named(o), KINDS[v.dtype.type], v.shape, raw=v.tobytes()) for o, v in self.operands.items()
                if isinstance(v, np.ndarray)]

    def run(self, number):
        """What the run is given, and the result."""
        random = np.random.default_rng([int(self.name[1:]), number])
        values = {o: make(random, self.sizes[number]) if callable(make) else make for o, make in self.operands.items()}
        return {self.named(o): values[o] for o in self.shapes}, self.wanted(values)

    def __str__(self):
        return (f"{self.name} {self.op} {self.left.__name__} x {self.right.__name__} {self.attributes or ''} " +
                ", ".join(f"{o} {self.shapes[o] if callable(v) else f'const {list(v.shape)}'}" for o, v in self.operands.items() if v is not None))


def dynamic_codes(x):
    """What DynamicQuantizeLinear makes of x, in f32."""
    high, low = (np.float32(f(x, initial=0)) for f in (np.max, np.min))
    scale = np.float32(1) if high == low else (high - low) / np.float32(255)
    zero = np.clip(np.rint((0 - low) / scale), 0, 255).astype(np.uint8)
    return np.clip(np.rint(x / scale) + np.float32(zero), 0, 255).astype(np.uint8), scale, zero


def model(cases):
    microsoft = onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1)))
    return onnx.model([c.node() for c in cases], [i for c in cases for i in c.inputs()],
                      [onnx.info(f"{c.name}y", KINDS[c.result], None) for c in cases], 21, microsoft,
                      weights=[w for c in cases for w in c.weights()])


def check(bin_, cases, levels):
    with tempfile.TemporaryDirectory(prefix="dmxc-quantised-") as folder:
        return check_in(pathlib.Path(folder), bin_, cases, levels)


def check_in(folder, bin_, cases, levels):
    """Compiles all cases at once and runs them at these levels; what differs."""
    (folder / "m.onnx").write_bytes(model(cases))
    done = subprocess.run([bin_ / "dmxc", folder / "m.onnx", "-q", "-t", "cpu:" + "+".join(levels), "-o", folder / "m.bundle"],
                          capture_output=True, text=True)
    if done.returncode:
        return [f"dmxc: {done.stderr}"]
    wrong = []
    for number in range(2):
        given, out = folder / f"in{number}", folder / "out"
        given.mkdir()
        runs = [case.run(number) for case in cases]
        for values, _ in runs:
            for name, value in values.items():
                np.save(given / f"in_{name}.npy", value)
        for level in levels:
            done = subprocess.run([bin_ / "dmx-run", folder / "m.bundle", "-q", "--isa", level, "--inputs", given, "--output-dir", out],
                                  capture_output=True, text=True)
            if done.returncode:
                return [f"dmx-run: {done.stderr}"]
            for case, (_, wanted) in zip(cases, runs):
                got = np.load(out / f"out_{case.name}y.npy")
                if got.shape != wanted.shape or got.dtype != wanted.dtype or not np.array_equal(got, wanted):
                    count = int((got != wanted).sum()) if got.shape == wanted.shape else f"{got.dtype} {got.shape}, not {wanted.dtype} {wanted.shape}:"
                    wrong.append(f"{case} at {level}, {case.sizes[number]}: {count} of {wanted.size} differ")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--cases", help="FIRST-LAST")
    options = parser.parse_args()
    whole, numbers = LONG, range(CASES) if LONG else range(SEED % SHARE, CASES, SHARE)
    if options.cases:
        first, _, last = options.cases.partition("-")
        numbers, whole = range(int(first), int(last or first) + 1), True
    cases, levels, bin_ = [Case(number) for number in numbers], levels_here() + ["host"], options.bin.resolve()
    if whole:
        wrong = check(bin_, cases, levels)
    else:
        first = SEED // SHARE % 2
        wrong = check(bin_, cases[::2], levels[first::2]) + check(bin_, cases[1::2], levels[1 - first::2])
    print(*wrong, sep="\n")
    print(f"{len(cases)} cases ({numbers}), levels {' '.join(levels)}{'' if whole else f', half of each, DMXC_SAMPLE={SEED}'}: {len(wrong)} differ")
    return 1 if wrong else 0


sys.exit(main())
