#!/usr/bin/env python3
"""NVIDIA's assembler takes every kernel that is emitted, where it is found: PTXAS, the PATH, or below BIN's folder
(python3 -m venv build/ptxas-venv && build/ptxas-venv/bin/pip install nvidia-cuda-nvcc).

Usage: ptxas.py BIN. Exit 77 where there is none. A plain run takes a few models and every sixtieth of ONNX's node cases,
with DMXC_LONG=1 all of the fixtures and cases."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "models"), str(TESTS), str(TESTS / "cuda"), str(TESTS / "cuda" / "kernels")]

import numpy as np  # noqa: E402

import attention  # noqa: E402
import fixtures  # noqa: E402
import products as product  # noqa: E402
import speed  # noqa: E402
import tiles  # noqa: E402
from sampling import LONG, sample  # noqa: E402

SAMPLE = ["tiny-mlp.script17", "tiny-mlp.fp16"]
CASES = pathlib.Path("/usr/share/libonnx-testdata/data/node")
ENTRY = "code/cuda/sm_90a/kernels.ptx"


def find(programs):
    named = os.environ.get("PTXAS") or shutil.which("ptxas")
    found = sorted(programs.parent.glob("ptxas-venv/lib/*/site-packages/nvidia/*/bin/ptxas"))
    return named or (str(found[0]) if found else None)


def complaint(ptxas, programs, model, folder):
    """ "" or what is wrong with a model's kernels; how many they are; those whose registers do not suffice."""
    bundle = folder / "m.bundle"
    done = subprocess.run([programs / "dmxc", model, "-q", "-t", "cuda:sm_90a", "--bundle-format", "dir", "-o", bundle], capture_output=True, text=True)
    if done.returncode:
        return ("" if done.returncode == 1 else done.stderr), 0, []  # refused by the front end: another test's business
    kernels = bundle / ENTRY
    if not kernels.exists():
        return "", 0, []
    made = subprocess.run([ptxas, "-arch=sm_90a", "--warn-on-spills", kernels, "-o", folder / "k.cubin"], capture_output=True, text=True)
    count = kernels.read_text().count(".visible .entry")
    spills = re.findall(r"Registers are spilled to local memory in function '(\w+)'.*", made.stderr)
    others = [line for line in made.stderr.splitlines() if "warning" in line and "Registers are spilled" not in line]
    return (made.stderr if made.returncode else "\n".join(others)), count, spills


def products(ptxas, programs, place):
    """What the assembler says against products by tensor cores: registers that do not suffice, or C75.., that wgmma waits or warpgroups do not
    give each other registers; "" where nothing, and how many kernels it saw."""
    wrong, seen = [], 0
    for number, tile in enumerate(2 * product.TILES):
        folder = place / f"{number}-{tile}"
        folder.mkdir()
        right, epilogue = ["constant", "as it is", "turned"][number % 3], ["scale bias residual", "bias both"][number % 2]
        odd, copied = number % 2 == 0, number >= len(product.TILES)  # ends within a tile; operands that no tensor map can read
        case = product.Case("rounded", (), (300 if odd else 512, 520 if odd else 512, 257 if copied else 256), "as it is", right, True, epilogue, True, False, (tile, 3))
        if product.compile_case(folder, case, product.Subject(case, np.random.default_rng(1)).model()) != product.SPECIALISED:
            return f"the product of {case.label()} is not by tensor cores", seen
        made = subprocess.run([ptxas, "-arch=sm_90a", "-v", folder / "m.bundle" / ENTRY, "-o", folder / "k.cubin"], capture_output=True, text=True)
        seen += 1
        for line in made.stderr.splitlines():
            if made.returncode or "C75" in line or "warning" in line or re.search(r"[1-9]\d* bytes spill", line):
                wrong.append(f"{tile}: {line}")
    return "\n".join(wrong), seen


CONVOLUTIONS = [((1, 64, 24, 24), (96, 64, 3, 3), 1), ((1, 60, 23, 23), (40, 30, 3, 3), 2), ((1, 128, 14, 14), (128, 4, 3, 3), 32)]  # by every tile
PATCHED = [((1, 96, 28, 28), (96, 1, 5, 5), 96), ((1, 64, 56, 56), (64, 64, 3, 3), 1), ((1, 3, 64, 64), (32, 3, 7, 7), 1)]  # of f32, as they are by default


def convolutions(ptxas, programs, place):
    """The same of convolutions by tensor cores and by patches."""
    kinds = [(case, "conv-specialised", f', rows = {rows}, columns = {columns}') for case in CONVOLUTIONS for rows, columns in (t.split("x") for t in product.TILES)]
    wrong = []
    for number, ((shape, weights, groups), way, decided) in enumerate([*kinds, *((case, "conv-by-patches", "") for case in PATCHED)]):
        folder = place / f"conv{number}"
        folder.mkdir()
        onnx = product.onnx
        weight = onnx.tensor("w", onnx.FLOAT, weights, raw=np.ones(weights, np.float32).tobytes())
        (folder / "m.onnx").write_bytes(onnx.model([onnx.node("Conv", "x w", "y", pads=[weights[-1] // 2] * 4, group=groups)],
                                                   [onnx.info("x", onnx.FLOAT, shape)], [onnx.info("y", onnx.FLOAT, None)], weights=[weight]))  # fmt: skip
        tiles.write_schedule(folder, "dmir.conv", way, decided)
        product.run("dmxc", folder / "m.onnx", "-q", "-t", "cuda:sm_90a", "--numerics", "bf16" if decided else "strict", "--schedule", folder / "s.mlir",
                    "--bundle-format", "dir", "-o", folder / "m.bundle")  # fmt: skip
        made = subprocess.run([ptxas, "-arch=sm_90a", "-v", folder / "m.bundle" / ENTRY, "-o", folder / "k.cubin"], capture_output=True, text=True)
        for line in made.stderr.splitlines():
            if made.returncode or "C75" in line or "warning" in line or re.search(r"[1-9]\d* bytes spill", line):
                wrong.append(f"{shape} {weights} {way} {decided}: {line}")
    return "\n".join(wrong), len(kinds) + len(PATCHED)


def attentions(ptxas, programs, place):
    """The same of attention by tensor cores: keys by maps and by threads, masks that are rules."""
    wrong, cases = [], [attention.Case(4, 2, 300, 300, depth, depth, rule, fill, open) for depth in (64, 128, 256) for rule, fill, open in
                        (("", -np.inf, ""), ("causal", -np.inf, ""), ("padded causal", attention.LEAST, "open"), ("blocks", -1e4, ""))]  # fmt: skip
    for number, case in enumerate(sample(cases, 4)):
        folder = place / f"attention{number}"
        folder.mkdir()
        attention.compile_case(folder, case, "--bundle-format", "dir")
        made = subprocess.run([ptxas, "-arch=sm_90a", "-v", folder / "m.bundle" / ENTRY, "-o", folder / "k.cubin"], capture_output=True, text=True)
        for line in made.stderr.splitlines():
            if made.returncode or "C75" in line or "warning" in line or re.search(r"[1-9]\d* bytes spill", line):
                wrong.append(f"{case.label()}: {line}")
    return "\n".join(wrong), len(cases)


def rows(ptxas, programs, place):
    """The same of kernels whose rows are shared by threads of a block, or by the blocks of a cluster; "" where nothing is wrong."""
    cases = [*speed.LARGE.values(), speed.top([64, 1024], 8), *(make([1, 32000]) for make in speed.LONG.values())]
    wrong = []
    for number, case in enumerate(cases):
        folder = place / f"rows{number}"
        folder.mkdir()
        (folder / "m.onnx").write_bytes(speed.model(case))
        said, kernels, spills = complaint(ptxas, programs, folder / "m.onnx", folder)
        if said or spills or kernels != 1:
            wrong.append(f"{case[1]}: {said.strip()[:400]} {spills}")
    return "\n".join(wrong), len(cases)


def shown(ptxas, programs, place):
    """ "" or what dmx-inspect lacks that finds the assembler on the PATH."""
    folder = place / "shown"
    folder.mkdir()
    fixtures.unpack(fixtures.FOLDER / f"{SAMPLE[0]}.npz", folder)
    bundle = folder / "m.bundle"
    subprocess.run([programs / "dmxc", folder / "model.onnx", "-q", "-t", "cuda:sm_90a", "-o", bundle], check=True)
    for path, wanted in (pathlib.Path(ptxas).parent, True), (folder, False):
        done = subprocess.run([programs / "dmx-inspect", bundle, "--what", "kernels", "--kernel", "k0_matmul_plain"],
                              capture_output=True, text=True, env=os.environ | {"PATH": str(path)})  # fmt: skip
        said = re.search(r"^// ptxas: Used \d+ registers", done.stdout, re.MULTILINE)
        if done.returncode or ".entry k0_matmul_plain" not in done.stdout or bool(said) != wanted:
            return f"dmx-inspect with ptxas {'' if wanted else 'not '}on the PATH: {done.stdout[:300]} {done.stderr}"
    return ""


def pasted(ptxas, programs, place):
    """ "" or what is wrong with the assembler's lines of --show-invoked-commands: one a kernel where it is on the PATH, which make code of each."""
    folder = place / "pasted"
    folder.mkdir()
    fixtures.unpack(fixtures.FOLDER / f"{SAMPLE[0]}.npz", folder)
    command = [programs / "dmxc", "model.onnx", "-t", "cuda:sm_90a", "--save-temps", "st", "--show-invoked-commands", "-o", "m.bundle"]
    for path, wanted in (pathlib.Path(ptxas).parent, True), (folder, False):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PATH": str(path)})
        lines = [line for line in done.stdout.splitlines() if "-arch=sm_90a" in line]
        kernels = sorted((folder / "st").glob("**/*.ptx"))
        if done.returncode or not kernels or len(lines) != (len(kernels) if wanted else 0):
            return f"{len(lines)} lines of ptxas for {len(kernels)} kernels, with one {'' if wanted else 'not '}on the PATH: {done.stdout[-600:]} {done.stderr}"
        made = subprocess.run(["/bin/sh", "-e"], input="\n".join(lines), cwd=folder, capture_output=True, text=True)
        for kernel in kernels if wanted else ():
            code = kernel.with_suffix(".cubin")
            if made.returncode or code.read_bytes()[:4] != b"\x7fELF" or f".text.{kernel.stem}".encode() not in code.read_bytes():
                return f"the line of {kernel.stem}: {made.stderr}"
            code.unlink()
    return ""


def models(place):
    """Files of models, with a folder for each: fixtures, and ONNX's node cases where they are."""
    for path in sorted(fixtures.FOLDER.glob("*.npz")):
        if LONG or path.stem in SAMPLE:
            folder = place / path.stem
            folder.mkdir()
            fixtures.unpack(path, folder)
            yield path.stem, next(each for each in folder.iterdir() if each.name in ("model.onnx", "model.pt2")), folder
    for path in sorted(CASES.glob("test_*/model.onnx"))[:: 1 if LONG else 60]:
        folder = place / path.parent.name
        folder.mkdir()
        yield path.parent.name, path, folder


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    ptxas = find(programs)
    if not ptxas:
        print("SKIPPED: no ptxas")
        return 77
    bad = kernels = count = 0
    spilling = []
    with tempfile.TemporaryDirectory(prefix="dmxc-ptxas-") as place:
        if wrong := shown(ptxas, programs, pathlib.Path(place)) or pasted(ptxas, programs, pathlib.Path(place)):
            bad += 1
            print(f"FAIL {wrong}")
        wrong, seen = products(ptxas, programs, pathlib.Path(place))
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {seen} products by tensor cores {wrong}")
        wrong, seen = convolutions(ptxas, programs, pathlib.Path(place))
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {seen} convolutions {wrong}")
        wrong, seen = attentions(ptxas, programs, pathlib.Path(place))
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {seen} attentions by tensor cores {wrong}")
        wrong, seen = rows(ptxas, programs, pathlib.Path(place))
        bad += bool(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {seen} kernels of rows {wrong}")
        for name, model, folder in models(pathlib.Path(place)):
            wrong, found, spills = complaint(ptxas, programs, model, folder)
            shutil.rmtree(folder)
            kernels += found
            count += 1
            spilling += [f"{name} {kernel}" for kernel in spills]
            if wrong:
                bad += 1
                print(f"FAIL {name}: {wrong.strip()[:600]}", flush=True)
    print(f"{kernels} kernels of {count} models, {bad} models with a complaint")
    if spilling:
        print(f"registers do not suffice in {len(spilling)}: {', '.join(spilling)}")
    return 1 if bad or not kernels else 0


sys.exit(main())
