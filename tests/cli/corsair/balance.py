#!/usr/bin/env python3
"""Programs for the card's queues, of which one thing is taken out: each wait, each signal, each meeting, each copy (gathers are those to other
quads) and each task of an engine once. All are refused at compile time, by the group
and the rule (O1 to O6, include/dmxc/Dialect/DLIR/Order.h), or they run with the same bytes while quads start at other times.
Usage: balance.py BIN REPO; a plain run takes one of 16. Exit 77 where numpy is not installed."""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from sampling import sample

try:
    import numpy as np
except ImportError:
    sys.exit(77)

BIN, REPO = (pathlib.Path(arg).resolve() for arg in sys.argv[1:3])
ROWS, DEPTH, HIDDEN, HEADS = 130, 192, 320, 8


def numbers(shape):
    return (np.random.default_rng(len(shape) + shape[-1]).standard_normal(shape) / 8).astype(np.float32)


def constant(name, shape):
    return f"  {name} = dmir.constant dense<{numbers(shape).tolist()}> : tensor<{'x'.join(map(str, shape))}xf32>\n"


def mlp():
    """Two products with a bias and a function each."""
    x, h, y = (f"tensor<{ROWS}x{n}xf32>" for n in (DEPTH, HIDDEN, DEPTH))
    a, b, c = f"tensor<{DEPTH}x{HIDDEN}xf32>", f"tensor<{HIDDEN}x{DEPTH}xf32>", f"tensor<{HIDDEN}xf32>"
    return (f'func.func @main(%x: {x} {{dmir.name = "x"}}) -> ({y} {{dmir.name = "y"}}) {{\n'
            + constant("%a", (DEPTH, HIDDEN)) + constant("%b", (HIDDEN, DEPTH)) + constant("%c", (HIDDEN,)) +
            f"  %0 = dmir.matmul %x, %a : ({x}, {a}) -> {h}\n  %1 = dmir.add %0, %c : ({h}, {c}) -> {h}\n"
            f"  %2 = dmir.relu %1 : ({h}) -> {h}\n  %3 = dmir.matmul %2, %b : ({h}, {b}) -> {y}\n"
            f"  %4 = dmir.tanh %3 : ({y}) -> {y}\n  return %4 : {y}\n}}\n")


def attention():
    q, t, s = (f"tensor<{HEADS}x{m}x{n}xf32>" for m, n in ((ROWS, 64), (64, ROWS), (ROWS, ROWS)))
    names = ", ".join(f'%{name}: {q} {{dmir.name = "{name}"}}' for name in "qkv")
    return (f'func.func @main({names}) -> ({q} {{dmir.name = "y"}}) {{\n'
            f"  %t = dmir.transpose %k {{permutation = array<i64: 0, 2, 1>}} : ({q}) -> {t}\n  %s = dmir.matmul %q, %t : ({q}, {t}) -> {s}\n"
            f"  %p = dmir.softmax %s {{axis = 2 : i64}} : ({s}) -> {s}\n  %y = dmir.matmul %p, %v : ({s}, {q}) -> {q}\n"
            f"  return %y : {q}\n}}\n")


def changes(text):
    """(what, line, text without it) of each."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        def without(what, *instead):
            return what, at, "\n".join(lines[:at] + list(instead) + lines[at + 1:])
        if re.match(r"\s*dlir\.task_(group|barrier)", line):
            for kind in ("wait", "signal"):
                if not (found := re.search(rf" {kind}\(([^)]*)\)", line)):
                    continue
                tokens = found[1].split(", ")
                for i in range(len(tokens)):
                    left = tokens[:i] + tokens[i + 1:]
                    changed = line[:found.start()] + (f" {kind}({', '.join(left)})" if left else "") + line[found.end():]
                    keeps = "task_group" in line or re.search(r"wait\(|signal\(|over ", changed)
                    yield without(kind, *[changed] * bool(keeps))
            if " over " in line:
                yield without("meeting")
        elif re.match(r"\s*(dlir\.copy|corsair\.\w+) ", line):
            yield without("gather" if " peers[" in line else "copy" if "dlir.copy" in line else "engine")


def dmxc(*arguments):
    return subprocess.run([BIN / "dmxc", *map(str, arguments)], capture_output=True, text=True)


def outputs(bundle, inputs, folder, seed):
    """The bytes of a run whose quads start at times that the seed gives; or what went wrong."""
    given = [f"--input={name}={path}" for name, path in inputs]
    ran = subprocess.run([BIN / "dmx-run", bundle, *given, "--output-dir", folder, "--device-opt", f"corsair.skew_seed={seed}"],
                         capture_output=True, text=True)
    return ran.stderr if ran.returncode else [path.read_bytes() for path in sorted(folder.glob("*.npy"))]


def check(name, model, quads, inputs, folder, failures):
    text, bundle = folder / f"{name}.mlir", folder / "bundle"
    allowed = ("--allow-external-data", REPO / "tools/digits")
    level = f"corsair:quads={quads}"
    made = dmxc(model, *(("--dim", "batch=8") if model.suffix == ".onnx" else ()), "-t", level, "--emit", "schedule", "-o", text)
    assert made.returncode == 0, made.stderr
    assert dmxc("--from", "schedule", text, *allowed, "-t", level, "-o", bundle).returncode == 0, name
    whole = outputs(bundle, inputs, folder / "whole", 1)
    assert isinstance(whole, list) and whole, whole
    counts = collections.Counter()
    for what, line, changed in sample(changes(text.read_text()), 16):
        (folder / "changed.mlir").write_text(changed)
        ran = dmxc("--from", "schedule", folder / "changed.mlir", *allowed, "-t", level, "-o", bundle)
        refused = ran.returncode == 1 and re.search(r"\bO[1-6]: .*(group|result) ['\"]|is waited for, but nothing signals it", ran.stderr)
        same = ran.returncode == 0 and all(outputs(bundle, inputs, folder / f"run{seed}", seed) == whole for seed in (1, 2, 3))
        counts[what, "refused" if refused else "harmless" if same else "wrong"] += 1
        if not refused and not same:
            failures.append(f"{name}, line {line + 1}, without a {what}: exit {ran.returncode} {ran.stderr[-400:]}")
    print(name, quads, dict(counts), flush=True)


def main():
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        saved = {"image": np.load(REPO / "tools/digits/images.npy")[:8], "x": numbers((ROWS, DEPTH)),
                 **{name: numbers((HEADS, ROWS, 64)) for name in "qkv"}}
        for name, values in saved.items():
            np.save(folder / f"{name}.npy", values)
        inputs = lambda names: [(name, folder / f"{name}.npy") for name in names]
        for name, text in (("mlp", mlp()), ("attention", attention())):
            (folder / f"{name}-model.mlir").write_text(text)
        for name, model, quads, names in (("digits", REPO / "tools/digits/digits.onnx", 1, ["image"]),
                                          ("digits", REPO / "tools/digits/digits.onnx", 4, ["image"]),
                                          ("mlp", folder / "mlp-model.mlir", 1, ["x"]), ("mlp", folder / "mlp-model.mlir", 8, ["x"]),
                                          ("attention", folder / "attention-model.mlir", 2, "qkv"),
                                          ("attention", folder / "attention-model.mlir", 8, "qkv")):
            check(name, model, quads, inputs(names), folder, failures)
    print("\n".join(failures) or "all are refused or harmless")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
