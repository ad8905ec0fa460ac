#!/usr/bin/env python3
"""Operands that a caller binds at odd addresses: tensor maps begin at multiples of 16 bytes, and a GPU has a copy that does; elementwise kernels that take
16 bytes at a time take less of such tensors.

Usage: unaligned.py BIN LIBRARY [DRIVER]. LIBRARY: libdmxrt.so; DRIVER: as models.py has it. Exit 77 where numpy is not there."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "fuzz"), str(ROOT / "tools" / "python")]
import onnx_file as onnx  # noqa: E402

os.environ["DMXRT_LIBRARY"] = sys.argv[2]
import dmxrt  # noqa: E402

SIZE = 64


def at_odd_address(values):
    """The same values in an array that begins two bytes behind a multiple of 16."""
    room = np.zeros(values.size + 16, values.dtype)
    first = next(i for i in range(16) if room[i:].ctypes.data % 16 == 2)
    own = room[first : first + values.size].reshape(values.shape)
    own[:] = values
    return own


def computed(place, nodes, operands, wanted_in_bundle):
    """What a model of these operands computes, or what its bundle lacks."""
    names = ["a", "b"][: len(operands)]
    driver = [word for word in sys.argv[3:] if word]
    options = ["cuda.sim=off", f"cuda.driver={driver[0]}"] if driver else ["cuda.sim=on"]
    info = lambda name: onnx.info(name, onnx.FLOAT16, list(operands[0].shape))
    model, bundle = place / "m.onnx", place / "m.bundle"
    model.write_bytes(onnx.model(nodes, [info(name) for name in names], [info("y")]))
    subprocess.run([pathlib.Path(sys.argv[1]) / "dmxc", model, "-q", "-t", "cuda:sm_90a", "-o", bundle], check=True)
    if wanted_in_bundle not in bundle.read_bytes():
        return f"the bundle has no {wanted_in_bundle.decode()}"
    with dmxrt.Session(str(bundle), device_options=options) as session:
        return next(iter(session(*operands).values()))


def main():
    random, bad = np.random.default_rng(1), 0
    a, b = (at_odd_address((random.integers(-8, 9, (SIZE, SIZE)) / 8).astype(np.float16)) for _ in range(2))
    wide = at_odd_address((random.integers(-8, 9, (1024, 1024)) / 8).astype(np.float16))
    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
        for nodes, operands, text, wanted in (
            ([onnx.node("MatMul", "a b", "y")], (a, b), b"matmul_specialised", (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)),
            ([onnx.node("Relu", "a", "y")], (wide,), b"ld.global.v4.b32", np.maximum(wide, 0)),
        ):
            y = computed(pathlib.Path(place), nodes, operands, text)
            wrong = y if isinstance(y, str) else "" if (y == wanted).all() else f"it differs by {np.abs(y - wanted).max()}"
            bad += bool(wrong)
            print(f"FAIL {wrong}" if wrong else "ok", flush=True)
    return 1 if bad else 0


sys.exit(main())
