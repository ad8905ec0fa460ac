#!/usr/bin/env python3
"""Models of the zoo with products and convolutions in bf16 (--numerics bf16) on the simulator of GPUs: how far their results are from the expected ones in f32,
and how much of their products tensor cores compute. The same bits for any order of blocks and warps.

Usage: rounded.py BIN ZOO. A plain run takes the two smallest models, with DMXC_LONG=1 all. Exit 77 where the zoo or numpy is not there."""

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

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1])]
from sampling import LONG  # noqa: E402

# How much of the operations of products and convolutions tensor cores have, at least, and the RMS of the difference, of the RMS of what is
# expected. The last products of bert_mini, vit_mini and the two nets of convolutions have one row; a tenth of mobilenet_v2 is depthwise. What torch
# gives with the same operands rounded: resnet18 6.7e-3, mobilenet_v2 4.5e-2.
MODELS = {"gpt2_mini_prefill": (1.0, 1.5e-2), "mobilenet_v2": (0.9, 4.7e-2), "resnet18": (0.999, 7e-3), "bert_mini": (0.99, 1.5e-2),
          "vit_mini": (0.99, 1.5e-2)}  # fmt: skip


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def share(text):
    """Of the operations of regions whose root is a product, those by tensor cores."""
    regions = re.findall(r'algorithm = "(?:matmul|conv)-(\w+)"[^\n]*? flops = (\d+)', text)
    return sum(int(flops) for by, flops in regions if by == "specialised") / sum(int(flops) for _, flops in regions)


def check(programs, model, least, most, place):
    target = ["-q", "-t", "cuda:sm_90a", "--numerics", "bf16", "--require-target", "cuda:100"]
    run(programs / "dmxc", model / "model.onnx", *target, "-o", place / "m.bundle")
    run(programs / "dmxc", model / "model.onnx", *target, "--emit", "partition", "-o", place / "p.mlir")
    by_tensor_cores = share((place / "p.mlir").read_text())
    if by_tensor_cores < least:
        raise RuntimeError(f"tensor cores have {by_tensor_cores:.1%} of the products, not {least:.0%}")
    meta = json.loads((model / "meta.json").read_text())
    words, bits = [], []
    for each in meta["inputs"]:
        words += ["--input", f"{each['name']}={model}/set0/in_{each['name']}.npy"]
    for seed in (1, 2):
        out = place / f"out{seed}"
        run(programs / "dmx-run", place / "m.bundle", "-q", *words, "--output-dir", out, "--device-opt", "cuda.sim=on",
            "--device-opt", f"cuda.sim_seed={seed}")  # fmt: skip
        bits.append({path.name: path.read_bytes() for path in out.iterdir()})
    if any(each != bits[0] for each in bits):
        raise RuntimeError("another order of blocks and warps gives other bits")
    worst = 0
    for path in sorted(out.iterdir()):
        wanted = np.load(model / "set0" / path.name).astype(np.float64)
        worst = max(worst, np.sqrt(((np.load(path) - wanted) ** 2).mean() / (wanted**2).mean()))
    if not worst <= most:
        raise RuntimeError(f"results differ by {worst:.2%} RMS")
    return f"{by_tensor_cores:.1%} of the products by tensor cores, results within {worst:.2%} RMS"


def main():
    programs, zoo = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    bad = done = 0
    for name, (least, most) in list(MODELS.items())[: None if LONG else 2]:
        if not (zoo / name / "model.onnx").exists():
            print(f"SKIPPED: {name} is not in {zoo}")
            continue
        done += 1
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
            try:
                print(f"ok   {name}: {check(programs, zoo / name, least, most, pathlib.Path(place))}", flush=True)
            except RuntimeError as error:
                bad += 1
                print(f"FAIL {name}: {error}", flush=True)
    return 1 if bad else 0 if done else 77


sys.exit(main())
