#!/usr/bin/env python3
"""What the compile of many small products takes: 188 of as many shapes, 2.4 MB of weights, as segmenters of words have that are networks of
characters. Sizes are whole blocks, and two kinds of layers take turns, so that many kernels differ in numbers only; with --any sizes are
any numbers and layers of eight kinds, so that hardly any do.

    small_products.py --build BUILD [--any] [--count 188] [--bytes 2400000] [--runs 3] [--flags='-t cpu:x86-64-v3'] [--json FILE]

Prints CPU seconds of a compile (user and system, all its threads), the least of the runs, without a cache, with one that is empty and with
one that is full, and the bundle's size. Needs numpy and onnx. README.md beside this file says what is asked."""
import argparse
import json
import pathlib
import random
import resource
import shlex
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

ROWS = [1, 21, 64]


def sizes(count, total, any_size=False):
    """A (rows, inner, columns) a product, all of them different; the weights have about `total` bytes as f32."""
    draw, found = random.Random(188), {}
    mean, (inner_block, column_block) = total / 4 / count, (1, 1) if any_size else (8, 16)
    while len(found) < count:
        inner = draw.randint(max(1, 8 // inner_block), int(2 * mean ** 0.5) // inner_block) * inner_block
        columns = max(1, round(mean / inner * draw.uniform(0.5, 1.5) / column_block)) * column_block
        found[(draw.choice(ROWS), inner, columns)] = None
    return list(found)


def network(count, total, any_size=False):
    """Products of a graph's inputs, by MatMul and by Gemm."""
    activations = ["Relu", "Sigmoid", "Tanh", None] if any_size else ["Relu"]
    draw = np.random.default_rng(188)
    nodes, weights, inputs, outputs = [], [], [], []
    port = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    for i, (rows, inner, columns) in enumerate(sizes(count, total, any_size)):
        weights.append(numpy_helper.from_array(draw.standard_normal((inner, columns), dtype=np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(draw.standard_normal(columns, dtype=np.float32), f"b{i}"))
        inputs.append(port(f"x{i}", [rows, inner]))
        outputs.append(port(f"y{i}", [rows, columns]))
        activation = activations[i // 2 % len(activations)]
        last = f"s{i}" if activation else f"y{i}"
        if i % 2:
            nodes.append(helper.make_node("Gemm", [f"x{i}", f"w{i}", f"b{i}"], [last], name=f"gemm{i}"))
        else:
            nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"m{i}"], name=f"matmul{i}"))
            nodes.append(helper.make_node("Add", [f"m{i}", f"b{i}"], [last], name=f"add{i}"))
        if activation:
            nodes.append(helper.make_node(activation, [last], [f"y{i}"], name=f"activation{i}"))
    graph = helper.make_graph(nodes, "small_products", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--any", action="store_true", help="sizes that are no whole blocks, layers of eight kinds")
    parser.add_argument("--count", type=int, default=188)
    parser.add_argument("--bytes", type=int, default=2_400_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--flags", default="", help="more flags of dmxc")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    figures = {"products": args.count, "cpu_s": [], "filling_s": [], "cached_s": []}
    with tempfile.TemporaryDirectory(prefix="dmxc-small-") as folder:
        folder = pathlib.Path(folder)
        model, bundle = folder / "model.onnx", folder / "model.bundle"
        save(network(args.count, args.bytes, args.any), model)
        command = [args.build / "bin/dmxc", model, "-o", bundle, "-q", "--progress", "none", *shlex.split(args.flags)]
        for run in range(args.runs):
            cache = ["--cache", folder / f"cache{run}"]
            figures["cpu_s"].append(cpu_seconds(command))
            plain = bundle.read_bytes()
            for name in ("filling_s", "cached_s"):
                figures[name].append(cpu_seconds([*command, *cache]))
                if bundle.read_bytes() != plain:
                    sys.exit("small_products.py: the bundle is another one with a cache")
        figures |= {"model_bytes": model.stat().st_size, "bundle_bytes": bundle.stat().st_size}
    least = {name: min(figures[name]) for name in ("cpu_s", "filling_s", "cached_s")}
    print(f"{args.count} products, {figures['model_bytes']} bytes: {least['cpu_s']:.1f} CPU s, with an empty cache {least['filling_s']:.1f}, "
          f"with a full one {least['cached_s']:.1f} ({least['cached_s'] / least['cpu_s']:.0%}); bundle {figures['bundle_bytes']} bytes")
    if args.json:
        args.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
