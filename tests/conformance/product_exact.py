#!/usr/bin/env python3
"""The 512 x 512 x 512 product through dmxc and the simulated card: the bits of bfp_ref.py's arithmetic under the plan of the
program (num_imc 8, ppr_mode 3), whatever the skew of the quads and the host's threads. Needs numpy.

product_exact.py BIN BFP_REF.py"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

BIN, REFERENCE, SIZE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), 512
try:
    import numpy
except ImportError:
    print("SKIPPED: numpy is not there")
    sys.exit(77)
if not REFERENCE.exists():
    print(f"SKIPPED: {REFERENCE} is not there")
    sys.exit(77)
spec = importlib.util.spec_from_file_location("bfp_ref", REFERENCE)
ref = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ref)


def tool(name, *arguments):
    return subprocess.run([str(part) for part in (BIN / name, *arguments)], check=True, capture_output=True, text=True).stdout


def blocks(row):
    return [ref.quant_block([float(x) for x in row[first:first + 64]]) for first in range(0, SIZE, 64)]


def tile(a, w, row, column):
    """64 x 64 results, as f16."""
    rows, columns = [blocks(a[row + i]) for i in range(64)], [blocks(w[:, column + j]) for j in range(64)]
    return numpy.array([[float(ref.f16(ref.ppr([ref.dimc_dot(*x, *y) for x, y in zip(r, c)], 3))) for c in columns] for r in rows])


def main(scratch):
    # The device rounds inputs to f16 first: these are of f16 already. Weights are quantised from f32.
    a = numpy.array(ref.gen(1, SIZE * SIZE, SIZE), numpy.float32).reshape(SIZE, SIZE).astype(numpy.float16).astype(numpy.float32)
    w = numpy.array(ref.gen(2, SIZE * SIZE, SIZE), numpy.float32).reshape(SIZE, SIZE)
    numpy.save(scratch / "x.npy", a)
    square = f"tensor<{SIZE}x{SIZE}xf32>"
    (scratch / "m.mlir").write_text(
        f'func.func @main(%x: {square} {{dmir.name = "x"}}) -> ({square} {{dmir.name = "y"}}) {{\n'
        f'  %w = dmir.constant dense<"0x{w.astype("<f4").tobytes().hex()}"> : {square}\n'
        f"  %y = dmir.matmul %x, %w : ({square}, {square}) -> {square}\n  return %y : {square}\n}}\n")
    first = None
    for quads in (1, 4, 8):
        bundle = scratch / "m.bundle"
        tool("dmxc", scratch / "m.mlir", "-q", "-t", f"corsair:quads={quads}", "-o", bundle)
        if "imc=8 ppr=3" not in tool("dmx-inspect", bundle, "--what", "kernels"):
            print("FAIL: the plan is not num_imc 8, ppr_mode 3")
            return 1
        for skew in range(100 if quads == 8 else 4):
            tool("dmx-run", bundle, "--input", f"x={scratch / 'x.npy'}", "--output", f"y={scratch / 'y.npy'}", "--device-opt",
                 f"skew_seed={skew}", "--threads", 1 + skew % 2)
            now = (scratch / "y.npy").read_bytes()
            first = first or now
            if now != first:
                print(f"FAIL: {quads} quads, skew {skew}: other bytes")
                return 1
    y = numpy.load(scratch / "y.npy")
    for row, column in ((0, 0), (192, 320), (448, 448)):
        if not numpy.array_equal(y[row:row + 64, column:column + 64], tile(a, w, row, column)):
            print(f"FAIL: tile at {row}, {column}")
            return 1
    print("3 tiles equal bfp_ref.py's bits; 1, 4 and 8 quads, 100 skews and 1 or 2 threads give the same bytes")
    return 0


with tempfile.TemporaryDirectory(prefix="dmxc-product-") as folder:
    sys.exit(main(pathlib.Path(folder)))
