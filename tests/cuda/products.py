#!/usr/bin/env python3
"""Random products on the simulator of GPUs against numpy: rounded to bf16 (--numerics bf16), of bf16 and of f16, batches, operands in either
order, constant or brought by a run, and what is computed of a product in its kernel. Usage: products.py BIN.

Sums of multiples of 1/8 are exact in f32 in any order, so every other case wants the same bits; the others K * 2^-22 * sum |a| |b|.
A plain run takes 12 cases, with DMXC_LONG=1 200. Exit 77 where numpy is not there."""

import dataclasses
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / part) for part in ("fuzz", "cuda", ".")]
import onnx_file as onnx  # noqa: E402
from models import machine  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "").resolve()
SPAN = 2.0**-22
HALVES = {"bf16": onnx.BFLOAT16, "f16": onnx.FLOAT16}
TILES = ["64x64", "64x128", "64x256", "128x64", "128x128", "128x256"]
SPECIALISED = "matmul-specialised"
SCHEDULE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %p = transform.dmx.match {algorithm = "matmul-specialised"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %p {rows = ROWS, columns = COLUMNS, stages = STAGES} : !transform.any_op
    transform.yield
  }
}
"""
EPILOGUES = ["", "bias", "bias relu", "scale bias residual", "residual bias", "bias both"]


def bf16(x):
    """To the nearest bf16, as f32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


NUMBERS = {"f32": lambda x: np.asarray(x, np.float32), "rounded": bf16, "bf16": bf16, "f16": lambda x: np.asarray(x, np.float32).astype(np.float16).astype(np.float32)}


@dataclasses.dataclass
class Case:
    numbers: str  # "rounded": f32, --numerics bf16; "f32", "bf16", "f16": of the product
    batch: tuple  # of the left operand
    sizes: tuple  # M, N, K
    left: str  # "as it is" or "turned"
    right: str  # the same; "constant", "constant turned": one matrix
    shared: bool  # one right matrix for the whole batch
    epilogue: str
    exact: bool
    open: bool  # the rows have a name
    tile: tuple = None  # decided by a schedule, with stages; for tensor cores

    def label(self):
        tile = f", tile {self.tile[0]} with {self.tile[1]} stages" if self.tile else ""
        return (f"{self.numbers} {'x'.join(map(str, (*self.batch, *self.sizes)))} left {self.left}, right {self.right}{' shared' * self.shared}"
                f"{', ' * bool(self.epilogue)}{self.epilogue}{', exact' * self.exact}{', open rows' * self.open}{tile}")  # fmt: skip


def random_case(random, number):
    batch = [(), (), (3,), (2, 2)][random.integers(4)]
    most = 300 if not batch else 90
    sizes = [int(random.integers(1, most + 1)) for _ in range(3)]
    for i in (1, 2):  # what tensor maps can read, mostly
        if random.random() < 0.75:
            sizes[i] = max(8, sizes[i] // 8 * 8)
    right = ["as it is", "turned", "constant", "constant turned"][random.integers(4)]
    return Case(["rounded", "bf16", "f16"][random.integers(3)], batch, tuple(sizes), ["as it is", "as it is", "turned"][random.integers(3)], right,
                right.startswith("constant") or random.random() < 0.3, EPILOGUES[random.integers(len(EPILOGUES))], bool(number % 2),
                random.random() < 0.25, [None, (TILES[random.integers(len(TILES))], int(random.integers(2, 5)))][random.integers(2)])  # fmt: skip


# More tiles than multiprocessors, and each way round of both operands in batches.
FIXED = [
    Case("rounded", (), (712, 776, 72), "as it is", "constant", True, "bias residual", True, False, ("64x64", 2)),
    Case("bf16", (3, 48), (40, 56, 72), "turned", "as it is", False, "bias relu", True, False, ("64x64", 3)),
    Case("f16", (2, 3), (72, 104, 64), "turned", "turned", False, "", True, False),
]


# For a GPU: each tile with operands that maps read and with one that threads copy.
EXACT = [Case("rounded", (), (200, 264, terms), "as it is", right, True, "scale bias residual", True, False, (tile, 3))
         for terms in (200, 201) for tile, right in zip(TILES, 2 * ["constant", "as it is", "turned"])] + FIXED + [
             Case("f32", (), (200, 264, 200), "as it is", "as it is", True, "scale bias residual", True, False),  # by tiles in shared memory
             Case("f32", (2, 3), (66, 75, 130), "turned", "turned", False, "bias both", True, False),
             Case("rounded", (), (3, 264, 512), "as it is", "constant", True, "bias relu", True, False),  # by warps
             Case("f32", (), (1, 260, 200), "as it is", "constant", True, "bias both", True, False),
             Case("rounded", (), (16, 150, 518), "as it is", "constant turned", True, "scale residual", True, False),
         ]  # fmt: skip


class Subject:
    """A case's model, values of a run, and what numpy makes of them."""

    def __init__(self, case, random):
        self.case, self.random, self.inputs, self.weights, self.nodes = case, random, {}, [], []
        self.given = []
        m, n, k = case.sizes
        self.rows = "rows" if case.open else m
        a = self.operand("a", case.batch, (m, k), case.left, "rows" if case.open else None)
        b = self.operand("b", () if case.shared else case.batch, (k, n), case.right, None)
        self.nodes.append(onnx.node("MatMul", f"{a[0]} {b[0]}", "p"))
        self.sum = a[1].astype(np.float64) @ b[1]
        self.bound = SPAN * k * (np.abs(a[1]).astype(np.float64) @ np.abs(b[1])) * (not case.exact)
        self.value, self.name = self.number(self.sum), "p"
        if case.numbers == "f16":
            self.bound = self.bound + 2.0**-10 * np.abs(self.sum) * (not case.exact)
        if case.numbers == "bf16":
            self.bound = self.bound + 2.0**-7 * np.abs(self.sum) * (not case.exact)
        if case.numbers in HALVES:
            self.nodes.append(onnx.node("Cast", "p", "pf", to=onnx.FLOAT))
            self.name = "pf"
        self.outputs = {}
        self.finish()

    def is_kept(self):
        """Products of few rows and what is no constant are not rounded."""
        if self.case.right.startswith("constant"):
            return False
        rows = self.case.sizes[0] * int(np.prod(self.case.batch if self.case.shared else ()))
        return self.case.numbers == "rounded" and not self.case.open and rows <= 4

    def number(self, x):
        """What the product is kept as."""
        return NUMBERS[self.case.numbers if self.case.numbers in HALVES else "f32"](x)

    def values(self, shape):
        x = self.random.integers(-16, 17, shape) / 8 if self.case.exact else self.random.standard_normal(shape)
        return x.astype(np.float32)

    def operand(self, name, batch, shape, how, symbol):
        """(name, values as they are multiplied)"""
        x = self.values((*batch, *shape))
        turned = how.endswith("turned")
        stored = np.ascontiguousarray(np.swapaxes(x, -1, -2)) if turned else x
        dims = list(stored.shape)
        if symbol:
            dims[-1 if turned else -2] = symbol
        if how.startswith("constant"):
            self.weights.append(onnx.tensor(name, onnx.FLOAT, dims, raw=stored.tobytes()))
        else:
            self.inputs[name] = stored
            self.given.append(onnx.info(name, onnx.FLOAT, dims))
        if self.case.numbers in HALVES:
            self.nodes.append(onnx.node("Cast", name, name + "c", to=HALVES[self.case.numbers]))
            name += "c"
        if turned:
            order = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
            self.nodes.append(onnx.node("Transpose", name, name + "t", perm=order))
            name += "t"
        return name, x if self.is_kept() else NUMBERS[self.case.numbers](x)

    def finish(self):
        """What follows the product, in f32; outputs are what has no reader."""
        m, n, _ = self.case.sizes
        for step in self.case.epilogue.split():
            before, self.name = self.name, self.name + step[0]
            if step == "relu":
                self.nodes.append(onnx.node("Relu", before, self.name))
                self.value = np.maximum(self.value, 0)
            elif step == "both":
                self.outputs[before] = (self.value, self.bound)
                self.nodes.append(onnx.node("Neg", before, self.name))
                self.value = -self.value
            elif step == "residual":
                x = self.values((*self.case.batch, m, n))
                self.inputs["r"] = x
                self.given.append(onnx.info("r", onnx.FLOAT, [*self.case.batch, self.rows, n]))
                self.step("Add", before, "r", x, np.add)
            else:
                x = self.values((n,))
                self.weights.append(onnx.tensor(step, onnx.FLOAT, [n], raw=x.tobytes()))
                self.step("Add" if step == "bias" else "Mul", before, step, x, np.add if step == "bias" else np.multiply)
                if step == "scale":
                    self.bound = self.bound * np.abs(x)
        self.outputs[self.name] = (self.value, self.bound)

    def step(self, op, before, name, x, compute):
        self.nodes.append(onnx.node(op, f"{before} {name}", self.name))
        self.value = compute(self.value, x)
        self.bound = self.bound + 2.0**-23 * np.abs(self.value) * (not self.case.exact)

    def model(self):
        return onnx.model(self.nodes, self.given, [onnx.info(name, onnx.FLOAT, None) for name in self.outputs], weights=self.weights)


def run(program, *arguments):
    done = subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def schedule_of(case):
    rows, columns = case.tile[0].split("x")
    return SCHEDULE.replace("ROWS", rows).replace("COLUMNS", columns).replace("STAGES", str(case.tile[1]))


def compile_case(place, case, model, target="cuda:sm_90a"):
    """The algorithm by which the product is computed; with the case's tile, where it has one."""
    (place / "m.onnx").write_bytes(model)
    command = ["dmxc", place / "m.onnx", "-q", "-t", target, "--numerics", "bf16" if case.numbers == "rounded" else "strict",
               "--require-target", "cuda:100", "--placement-report", place / "r.tsv", "--bundle-format", "dir", "-o", place / "m.bundle"]  # fmt: skip
    run(*command)
    algorithm = next(line.split("\t")[4] for line in (place / "r.tsv").read_text().splitlines() if "\tdmir.matmul\t" in line)
    if case.tile and algorithm == SPECIALISED:
        (place / "s.mlir").write_text(schedule_of(case))
        shutil.rmtree(place / "m.bundle")
        run(*command, "--schedule", place / "s.mlir")
    return algorithm


def check(place, case, random, target="cuda:sm_90a"):
    """The algorithm by which the product was computed."""
    subject = Subject(case, random)
    algorithm = compile_case(place, case, subject.model(), target)
    check_run(place, subject, random)
    return algorithm


def check_run(place, subject, random):
    """Runs the bundle there; what it gives is near what numpy does."""
    words = []
    for name, value in subject.inputs.items():
        np.save(place / f"{name}.npy", value)
        words += ["--input", f"{name}={place}/{name}.npy"]
    for name in subject.outputs:
        words += ["--output", f"{name}={place}/{name}.out.npy"]
    answers = []
    for _ in range(2 if LONG else 1):
        run("dmx-run", place / "m.bundle", "-q", *words, *machine([]), "--device-opt", f"cuda.sim_seed={random.integers(1000)}")
        answers.append({name: np.load(place / f"{name}.out.npy") for name in subject.outputs})
    if any(answers[0][name].tobytes() != got.tobytes() for name, got in answers[-1].items()):
        raise RuntimeError("another order of turns gives other bits")
    for name, (value, bound) in subject.outputs.items():
        got = answers[0][name]
        off = np.abs(got.astype(np.float64) - value)
        if got.shape != value.shape or not (off <= bound).all():
            raise RuntimeError(f"{name} differs by {off.max()}, {(off > bound).sum()} of {off.size} elements by more than the bound")


def check_open_terms(place):
    """A product of which a run says how many terms there are, none too."""
    shape = lambda name, dims: onnx.info(name, onnx.FLOAT, dims)
    nodes = [onnx.node("MatMul", "a b", "y")]
    (place / "m.onnx").write_bytes(onnx.model(nodes, [shape("a", [70, "terms"]), shape("b", ["terms", 40])], [shape("y", None)]))
    run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "--require-target", "cuda:100", "-o", place / "m.bundle")
    if b"matmul_specialised" not in (place / "m.bundle").read_bytes():
        raise RuntimeError("it is not by tensor cores")
    for terms in (0, 9, 129):
        a, b = (np.random.default_rng(terms).integers(-16, 17, shape).astype(np.float32) / 8 for shape in ((70, terms), (terms, 40)))
        np.save(place / "a.npy", a)
        np.save(place / "b.npy", b)
        run("dmx-run", place / "m.bundle", "-q", "--input", f"a={place}/a.npy", "--input", f"b={place}/b.npy", "--output", f"y={place}/y.npy", *machine([]))
        if not (np.load(place / "y.npy") == a @ b).all():
            raise RuntimeError(f"{terms} terms give something else")


def main():
    bad, by = 0, {}
    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as folder:
        try:
            check_open_terms(pathlib.Path(folder))
            print("ok   an open number of terms")
        except RuntimeError as error:
            bad += 1
            print(f"FAIL an open number of terms: {error}")
    for number in range(-len(FIXED), 300 if LONG else 12):
        seed = SEED * 1000 + len(FIXED) + number
        random = np.random.default_rng(seed)
        case = random_case(random, number) if number >= 0 else FIXED[number]
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as folder:
            try:
                algorithm = check(pathlib.Path(folder), case, random)
                by[algorithm] = by.get(algorithm, 0) + 1
                print(f"ok   {seed} {case.label()}: {algorithm}", flush=True)
            except RuntimeError as error:
                bad += 1
                print(f"FAIL {seed} {case.label()}: {error}", flush=True)
    print(", ".join(f"{count} by {algorithm}" for algorithm, count in sorted(by.items())))
    return 1 if bad or not by.get(SPECIALISED) else 0


if __name__ == "__main__":
    sys.exit(main())
