#!/usr/bin/env python3
"""Random products of up to 16 rows with a constant matrix, by warps that share terms, on the simulator of GPUs against numpy: f32, rounded to bf16
(--numerics bf16), bf16, f16, every way to cut them, ends within a load, a step and a block, what follows the product; the same bits for any order of turns.

Usage: few.py BIN. A plain run takes 6 cases, with DMXC_LONG=1 300. Exit 77 where numpy is not there."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import products  # noqa: E402  exits where numpy is not there
from attempts import Attempts  # noqa: E402
from products import Case, np  # noqa: E402
from sampling import LONG, SEED  # noqa: E402

BY_WARPS = "matmul-by-warps"
SCHEDULE = """module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %p = transform.dmx.match {op = "dmir.matmul"} in %m : !transform.any_op -> !transform.any_op
    transform.dmx.decide %p {algorithm = "matmul-by-warps", DECIDED} : !transform.any_op
    transform.yield
  }
}
"""


def random_case(random, number):
    batch = [(), (), (2,), (2, 3)][random.integers(4)]
    rows = int(random.integers(1, 17 if not batch else 4))
    columns, terms = int(random.integers(1, 80)), int(random.integers(1, [70, 600, 2200][random.integers(3)]))
    return Case(["f32", "rounded", "bf16", "f16"][random.integers(4)], batch, (rows, columns, terms), ["as it is", "as it is", "turned"][random.integers(3)],
                ["constant", "constant turned"][random.integers(2)], True, products.EPILOGUES[random.integers(len(products.EPILOGUES))], bool(number % 2),
                random.random() < 0.25)  # fmt: skip


def cut(random):
    """A tile within its domains."""
    rows, warps = (int(2 ** random.integers(5)) for _ in range(2))
    columns = min(int(2 ** random.integers(4)), 64 // rows)
    together = min(int(2 ** random.integers(5)), warps, 64 // rows)
    tile = {"rows": rows, "columns": columns, "warps": warps}
    return tile | {"together": together} if warps > 1 else tile  # else there is no choice


def compile_case(place, case, model, tile):
    (place / "m.onnx").write_bytes(model)
    (place / "s.mlir").write_text(SCHEDULE.replace("DECIDED", ", ".join(f"{key} = {value}" for key, value in tile.items())))
    products.run("dmxc", place / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16" if case.numbers == "rounded" else "strict", "--require-target",
                 "cuda:100", "--placement-report", place / "r.tsv", "--schedule", place / "s.mlir", "-o", place / "m.bundle")  # fmt: skip
    algorithm = next(line.split("\t")[4] for line in (place / "r.tsv").read_text().splitlines() if "\tdmir.matmul\t" in line)
    if algorithm != BY_WARPS:
        raise RuntimeError(f"it is {algorithm}")


def bits(place, subject):
    return [(place / f"{name}.out.npy").read_bytes() for name in subject.outputs]


def check(place, case, tile, random):
    subject = products.Subject(case, random)
    compile_case(place, case, subject.model(), tile)
    products.check_run(place, subject, random)
    first = bits(place, subject)
    products.check_run(place, subject, random)
    if bits(place, subject) != first:
        raise RuntimeError("another order of turns gives other bits")


def main():
    attempts = Attempts()
    for number in range(300 if LONG else 6):
        random = np.random.default_rng([0 if LONG else SEED, number])
        case, tile = random_case(random, number), cut(random)
        label = f"{case.label()}, {', '.join(f'{key} {value}' for key, value in tile.items())}"
        attempts.run(label, check, case, tile, random)
    return attempts.status()


if __name__ == "__main__":
    sys.exit(main())
