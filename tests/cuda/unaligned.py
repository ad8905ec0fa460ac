#!/usr/bin/env python3
"""A product whose operands a caller binds at odd addresses: tensor maps begin at multiples of 16 bytes, and a GPU has a copy that does.

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


def main():
    random = np.random.default_rng(1)
    a, b = (at_odd_address((random.integers(-8, 9, (SIZE, SIZE)) / 8).astype(np.float16)) for _ in range(2))
    shape = lambda name: onnx.info(name, onnx.FLOAT16, [SIZE, SIZE])
    driver = [word for word in sys.argv[3:] if word]
    options = ["cuda.sim=off", f"cuda.driver={driver[0]}"] if driver else ["cuda.sim=on"]
    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
        model, bundle = pathlib.Path(place) / "m.onnx", pathlib.Path(place) / "m.bundle"
        model.write_bytes(onnx.model([onnx.node("MatMul", "a b", "y")], [shape("a"), shape("b")], [shape("y")]))
        subprocess.run([pathlib.Path(sys.argv[1]) / "dmxc", model, "-q", "-t", "cuda:sm_90a", "-o", bundle], check=True)
        if b"matmul_specialised" not in bundle.read_bytes():
            print("FAIL the product is not by tensor cores")
            return 1
        with dmxrt.Session(str(bundle), device_options=options) as session:
            y = next(iter(session(a, b).values()))
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    print("ok" if (y == wanted).all() else f"FAIL it differs by {np.abs(y - wanted).max()}")
    return 0 if (y == wanted).all() else 1


sys.exit(main())
