#!/usr/bin/env python3
"""Random products and convolutions of f32 by tiles in shared memory, on the simulator of GPUs against numpy: every tile, ends within it, batches, groups,
windows, open sizes, what follows them; the same bits for any order of turns. By the clock they take at most a third of what plain ones do.

Usage: tiles.py BIN. A plain run takes 5 cases, with DMXC_LONG=1 200. Exit 77 where numpy is not there."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import products  # noqa: E402  exits where numpy is not there
from attempts import Attempts  # noqa: E402
import convolutions  # noqa: E402
from few import bits  # noqa: E402
from models import machine  # noqa: E402
from products import Case, np, onnx, run  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

LEAST_TIMES = 3
SCHEDULE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %p = transform.dmx.match {op = "OP"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %p {DECIDED} : !transform.any_op
    transform.yield
  }
}
"""


def write_schedule(place, op, algorithm, decided):
    (place / "s.mlir").write_text(SCHEDULE.replace("OP", op).replace("DECIDED", f'algorithm = "{algorithm}"{decided}'))


def compile_model(place, op, algorithm, decided=""):
    """By that algorithm, with what is decided of its tile."""
    write_schedule(place, op, algorithm, decided)
    run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--require-target", "cuda:100", "--placement-report", place / "r.tsv", "--schedule",
        place / "s.mlir", "-o", place / "m.bundle")  # fmt: skip
    found = next(line.split("\t")[4] for line in (place / "r.tsv").read_text().splitlines() if f"\t{op}\t" in line)
    if found != algorithm:
        raise RuntimeError(f"it is {found}")


def tile_of(random):
    return f", rows = {[8, 16, 32, 64, 128][random.integers(5)]}, columns = {[64, 128][random.integers(2)]}"


def random_product(random, number):
    batch = [(), (), (3,), (2, 2)][random.integers(4)]
    sizes = [int(random.integers(1, 150 if not batch else 60)) for _ in range(3)]
    if random.random() < 0.5:  # rows that stores of 16 bytes may fill
        sizes[1] = max(4, sizes[1] // 4 * 4)
    right = ["as it is", "turned", "constant", "constant turned"][random.integers(4)]
    return Case("f32", batch, tuple(sizes), ["as it is", "as it is", "turned"][random.integers(3)], right, right.startswith("constant") or random.random() < 0.3,
                products.EPILOGUES[random.integers(len(products.EPILOGUES))], bool(number % 2), random.random() < 0.25)  # fmt: skip


def twice(check):
    """The same bits."""
    first = check()
    if check() != first:
        raise RuntimeError("another order of turns gives other bits")


def check_product(place, case, random):
    subject = products.Subject(case, random)
    (place / "m.onnx").write_bytes(subject.model())
    compile_model(place, "dmir.matmul", "matmul-by-tiles", tile_of(random))

    def once():
        products.check_run(place, subject, random)
        return bits(place, subject)

    twice(once)


def check_convolution(place, case, random):
    (place / "m.onnx").write_bytes(case.build())
    compile_model(place, "dmir.conv", "conv-by-tiles", tile_of(random))
    check_runs(place, case, random)


def check_runs(place, case, random):
    words = []
    for name, value in case.inputs.items():
        np.save(place / f"{name}.npy", value)
        words += ["--input", f"{name}={place}/{name}.npy"]

    def once():
        run("dmx-run", place / "m.bundle", "-q", *words, "--output", f"{case.name}={place}/out.npy", *machine([]), "--device-opt",
            f"cuda.sim_seed={random.integers(1000)}")  # fmt: skip
        got = np.load(place / "out.npy")
        if got.shape != case.value.shape or not (np.abs(got.astype(np.float64) - case.value) <= case.bound).all():
            raise RuntimeError(f"it differs by {np.abs(got - case.value).max()}")
        return got.tobytes()

    twice(once)


def clocks(place, op, algorithm):
    compile_model(place, op, algorithm)
    run("dmx-run", place / "m.bundle", "-q", "--random-inputs", 1, *machine([]), "--device-opt", f"cuda.report={place}/r.json", "--device-opt",
        "cuda.sim_blocks=2", "--device-opt", "cuda.sim_checks=0")  # fmt: skip
    return sum(kernel["main"]["seconds"] for kernel in json.loads((place / "r.json").read_text())["last"] if "model_macs" in kernel["main"])


def check_clocks(place, node, op, given, weights, least=LEAST_TIMES, way=None):
    weight = onnx.tensor("w", onnx.FLOAT, weights, raw=np.ones(weights, np.float32).tobytes())
    (place / "m.onnx").write_bytes(onnx.model([node], [onnx.info("x", onnx.FLOAT, given)], [onnx.info("y", onnx.FLOAT, None)], weights=[weight]))
    kind = op.split(".")[1]
    fast, plain = clocks(place, op, way or f"{kind}-by-tiles"), clocks(place, op, f"{kind}-plain")
    print(f"{kind} of {given} by {weights}: {fast * 1e6:.1f} us, plain {plain * 1e6:.1f}", flush=True)
    if not plain >= least * fast:
        raise RuntimeError(f"plain takes {plain / fast:.1f} times as long")


TIMED = {
    "a product": (onnx.node("MatMul", "x w", "y"), "dmir.matmul", [512, 512], (512, 512)),
    "a convolution": (onnx.node("Conv", "x w", "y", pads=[1, 1, 1, 1]), "dmir.conv", [4, 64, 28, 28], (64, 64, 3, 3)),
    "a convolution of groups": (onnx.node("Conv", "x w", "y", pads=[1, 1, 1, 1], group=8), "dmir.conv", [8, 128, 28, 28], (128, 16, 3, 3)),
}


def main():
    attempts = Attempts()
    for number in range(200 if LONG else 5):
        random = np.random.default_rng([0 if LONG else SEED, number])
        if number % 2:
            case = convolutions.Case(random, number)
            case.numbers = "f32"
            attempts.run(f"f32, else {case.label}", check_convolution, case, random)
        else:
            case = random_product(random, number)
            attempts.run(case.label(), check_product, case, random)
    for name, case in TIMED.items() if LONG else [list(TIMED.items())[SEED % len(TIMED)]]:
        attempts.run(f"{name} by the clock", check_clocks, *case)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
