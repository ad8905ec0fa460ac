#!/usr/bin/env python3
"""Sixteen small models, products of matrices and convolutions as models have them, on three machines: product_forms.py BIN [--update]

Of each is asked whether the whole graph is on the device and its product on the fast engine (tensor cores, the arrays of a card, the cores of an
array), and whether what it computes is right: against numpy in f64, of operands rounded as the machine rounds them, within what that costs.
Prints the table, which targets/OPERATORS.md is to have, with why of each that is not; --update writes it there. At least 40 of the 48 are to
be. Exit 77 where numpy is not installed."""
import math
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
import onnx_file as onnx  # noqa: E402

BIN = pathlib.Path(sys.argv[1])
PAGE = pathlib.Path(__file__).resolve().parents[3] / "targets/OPERATORS.md"
HEAD = """
## Products and convolutions as models have them

Written by `tests/cli/forms/product_forms.py BIN --update`; the test `cli.product-forms` keeps it fresh. `yes`: the whole graph is on the device, its
product by the fast engine (cuda's tensor cores with `--numerics bf16`, corsair's and aie's arrays).

"""
MACHINES = {"cuda": ["-t", "cuda:sm_90a", "--numerics", "bf16"], "corsair": ["-t", "corsair"], "aie": ["-t", "aie"]}
FAST = {"cuda": ("matmul-specialised", "conv-specialised"), "corsair": ("dmx-isa",), "aie": ("bf16 tiles",)}
LEAST = 40
# Of the largest element, for sums of 128 to 288 products: a bf16 has 8 bits, of a block of BFP16_64 the largest number has them.
TOLERANCES = {"cuda": 6e-3, "aie": 6e-3, "corsair": 2.5e-2}
SIZES = {"rows": 48, "n": 2}  # of dims that a run tells
erf = np.vectorize(math.erf)


def convolve(x, w, groups=1):
    """3 x 3 taps, one zero around."""
    x, each = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), w.shape[0] // groups
    height, width, channels = x.shape[2] - 2, x.shape[3] - 2, w.shape[1]
    y = np.zeros((x.shape[0], w.shape[0], height, width))
    for g in range(groups):
        for i, j in np.ndindex(3, 3):
            part = x[:, g * channels:(g + 1) * channels, i:i + height, j:j + width]
            y[:, g * each:(g + 1) * each] += np.einsum("nchw,oc->nohw", part, w[g * each:(g + 1) * each, :, i, j])
    return y


def forms():
    """(name, nodes, inputs by shape, constants by shape or number, what it computes of the values)"""
    matmul, conv = onnx.node("MatMul", "x w", "p"), onnx.node("Conv", "x k", "p", pads=[1] * 4)
    behind = lambda op, given: onnx.node(op, given, "y")
    last = lambda op, given, **more: [onnx.node(op, given, "y", **more)]
    x, w, image, k = [64, 128], [128, 96], [1, 32, 28, 28], [64, 32, 3, 3]
    gelu = [onnx.node("Div", "p root", "d"), onnx.node("Erf", "d", "e"), onnx.node("Add", "e one", "f"), onnx.node("Mul", "p f", "g"), behind("Mul", "g half")]
    return [
        ("product", last("MatMul", "x w"), {"x": x}, {"w": w}, lambda x, w: x @ w),
        ("product, bias", [matmul, behind("Add", "p b")], {"x": x}, {"w": w, "b": [96]}, lambda x, w, b: x @ w + b),
        ("product, relu", [matmul, behind("Relu", "p")], {"x": x}, {"w": w}, lambda x, w: np.maximum(x @ w, 0)),
        ("product, gelu", [matmul, *gelu], {"x": x}, {"w": w, "root": 2**0.5, "one": 1, "half": 0.5},
         lambda x, w, *_: x @ w * (1 + erf(x @ w / 2**0.5)) / 2),
        ("product, sigmoid", [matmul, behind("Sigmoid", "p")], {"x": x}, {"w": w}, lambda x, w: 1 / (1 + np.exp(-(x @ w)))),
        ("product, scale", [matmul, behind("Mul", "p s")], {"x": x}, {"w": w, "s": 0.125}, lambda x, w, s: x @ w * s),
        ("product, residual", [matmul, behind("Add", "p r")], {"x": x, "r": [64, 96]}, {"w": w}, lambda x, r, w: x @ w + r),
        ("product of two values", last("MatMul", "x v"), {"x": x, "v": w}, {}, lambda x, v: x @ v),
        ("products in a batch", last("MatMul", "x v"), {"x": [4, *x], "v": [4, *w]}, {}, lambda x, v: x @ v),
        ("product, open rows", last("MatMul", "x w"), {"x": ["rows", 128]}, {"w": w}, lambda x, w: x @ w),
        ("convolution", last("Conv", "x k", pads=[1] * 4), {"x": image}, {"k": k}, convolve),
        ("convolution, relu", [conv, behind("Relu", "p")], {"x": image}, {"k": k}, lambda x, k: np.maximum(convolve(x, k), 0)),
        ("convolution, clip", [conv, behind("Clip", "p lo hi")], {"x": image}, {"k": k, "lo": 0, "hi": 6},
         lambda x, k, lo, hi: np.clip(convolve(x, k), lo, hi)),
        ("convolution, residual", [conv, behind("Add", "p r")], {"x": image, "r": [1, 64, 28, 28]}, {"k": k}, lambda x, r, k: convolve(x, k) + r),
        ("convolution, depthwise", last("Conv", "x k", pads=[1] * 4, group=32), {"x": image}, {"k": [32, 1, 3, 3]}, lambda x, k: convolve(x, k, 32)),
        ("convolution, open batch", last("Conv", "x k", pads=[1] * 4), {"x": ["n", *image[1:]]}, {"k": k}, convolve),
    ]  # fmt: skip


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def save(place, form, random):
    """Inputs and what is expected."""
    _, nodes, inputs, constants, compute = form
    scale = lambda shape: 1 / math.sqrt(math.prod(shape[1:]) if len(shape) == 4 else shape[-2]) if len(shape) > 1 else 1
    draw = lambda shape: (random.standard_normal(shape) * scale(shape)).astype(np.float32)
    values = {name: random.standard_normal([SIZES.get(d, d) for d in shape]).astype(np.float32) for name, shape in inputs.items()}
    fixed = {name: draw(what) if isinstance(what, list) else np.float32(what) for name, what in constants.items()}
    weights = [onnx.tensor(name, onnx.FLOAT, list(value.shape), raw=value.tobytes()) for name, value in fixed.items()]
    (place / "m.onnx").write_bytes(onnx.model(nodes, [onnx.info(name, onnx.FLOAT, shape) for name, shape in inputs.items()],
                                              [onnx.info("y", onnx.FLOAT, None)], weights=weights))  # fmt: skip
    return values, compute(*(v.astype(np.float64) for v in [*values.values(), *fixed.values()]))


def cell(place, machine, values, expected):
    """How the machine computes it, and why not all of it by its fast engine; "" where it does."""
    command = [BIN / "dmxc", place / "m.onnx", "-q", *MACHINES[machine]]
    run(*command, "--placement-report", place / "r.tsv", "-o", place / "m.bundle")
    words = []
    for name, value in values.items():
        np.save(place / f"{name}.npy", value)
        words += ["--input", f"{name}={place}/{name}.npy"]
    run(BIN / "dmx-run", place / "m.bundle", "-q", *words, "--output", f"y={place}/y.npy")
    error = np.abs(np.load(place / "y.npy") - expected).max() / np.abs(expected).max()
    if not error <= TOLERANCES[machine]:
        raise RuntimeError(f"is {error:.1e} of the largest element away from numpy's")
    rows = [line.split("\t") for line in (place / "r.tsv").read_text().splitlines() if not line.startswith(("#", "node\t"))]
    product = next(row for row in rows if row[1] in ("dmir.matmul", "dmir.conv"))
    away = next((row for row in [product, *rows] if row[2] not in (machine, "-", "")), None)
    if away:
        return f"{away[1]} on {away[2]}", f"`{away[1]}` on {away[2]}: {away[5].removeprefix(machine + ': ')}"
    if product[4].startswith(FAST[machine]):
        return product[4], ""
    run(*command, "--emit", "partition", "-o", place / "p.mlir")
    why = re.search(r'why_plain = "(.*?)"', (place / "p.mlir").read_text())
    own = "in the numbers of its tensors, which tensor cores do not take" if product[6] == "-" else product[6]
    return product[4], f"`{product[4]}`: {why[1] if why else own}"


def table(reasons):
    """The page's part of {(form, machine): why not}."""
    notes = list(dict.fromkeys(why for why in reasons.values() if why))
    text = HEAD + f"| form | {' | '.join(MACHINES)} |\n|---|{'---|' * len(MACHINES)}\n"
    for form in dict.fromkeys(form for form, _ in reasons):
        cells = [reasons[form, machine] for machine in MACHINES]
        text += f"| {form} | {' | '.join(f'no ({notes.index(why) + 1})' if why else 'yes' for why in cells)} |\n"
    return text + "\n" + "".join(f"{number}. {why}\n" for number, why in enumerate(notes, 1))


def main():
    random, bad, reasons = np.random.default_rng(1), 0, {}
    with tempfile.TemporaryDirectory(prefix="dmxc-forms-") as folder:
        place = pathlib.Path(folder)
        for form in forms():
            values, expected = save(place, form, random)
            for machine in MACHINES:
                try:
                    what, reasons[form[0], machine] = cell(place, machine, values, expected)
                    print(f"{'no ' if reasons[form[0], machine] else 'yes'} {form[0]:24} {machine:8} {what}", flush=True)
                except RuntimeError as error:
                    bad += 1
                    print(f"FAIL {form[0]}, {machine}: {error}", flush=True)
    good = list(reasons.values()).count("")
    print(f"{good} of 48 whole on the device, by its fast engine; at least {LEAST} are to be")
    if bad or good < LEAST:
        return 1
    page = PAGE.read_text()
    fresh = page.split(HEAD.lstrip().splitlines()[0])[0].rstrip("\n") + "\n" + table(reasons)
    if "--update" in sys.argv:
        PAGE.write_text(fresh)
    elif page != fresh:
        print(f"targets/OPERATORS.md has another table; run: tests/cli/forms/product_forms.py {BIN} --update")
        return 1
    return 0


sys.exit(main())
