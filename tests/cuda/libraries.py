#!/usr/bin/env python3
"""The shared libraries as a program meets them: libdmxrt.so opens libdmxrt-cuda.so, which opens NVIDIA's driver or libdmxrt-cuda-sim.so.

Usage: libraries.py BIN LIBRARIES [DRIVER]. A bundle runs with all of them; what is said where one is missing. DRIVER: as models.py has it.
Each way is a process of its own, since libraries stay open. Exit 77 where numpy is not there."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "models"))

import numpy as np  # noqa: E402

import fixtures  # noqa: E402

MODEL = "tiny-mlp.script17"
# What a process of its own does: BUNDLE INPUT OUTPUT OPTION..
PROGRAM = """
import sys, numpy, dmxrt
try:
    with dmxrt.Session(sys.argv[1], device_options=sys.argv[4:]) as session:
        numpy.save(sys.argv[3], next(iter(session(numpy.load(sys.argv[2])).values())))
except dmxrt.Error as error:
    sys.exit(str(error))
"""
NO_DRIVER = "cuda.driver=/nowhere/libcuda.so.1"
SIM = "libdmxrt-cuda-sim.so"


class Place:
    def __init__(self, programs, libraries, folder):
        self.folder, self.libraries = folder, libraries
        fixtures.unpack(fixtures.FOLDER / f"{MODEL}.npz", folder)
        self.meta = json.loads((folder / "meta.json").read_text())
        with np.load(folder / "inputs_0.npz") as arrays:
            np.save(folder / "x.npy", arrays[arrays.files[0]])
        subprocess.run([programs / "dmxc", folder / "model.onnx", "-q", "-t", "cuda:sm_90a", "-o", folder / "m.bundle"], check=True)
        subprocess.run([programs / "dmx-run", folder / "m.bundle", "-q", "--input", f"{next(iter(self.meta['inputs']))}={folder}/x.npy",
                        "--output-dir", folder / "wanted", "--device-opt", "cuda.sim=on"], check=True)  # fmt: skip
        self.wanted = next((folder / "wanted").iterdir()).read_bytes()

    def run(self, names, *options):
        """What is said, with these libraries beside each other; "right" for the simulator's bits."""
        beside = self.folder / "lib"
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir()
        for name in ["libdmxrt.so", *names]:
            shutil.copy(self.libraries / name, beside)
        made = self.folder / "y.npy"
        made.unlink(missing_ok=True)
        environment = os.environ | {"DMXRT_LIBRARY": str(beside / "libdmxrt.so"), "PYTHONPATH": str(ROOT / "tools" / "python")}
        done = subprocess.run([sys.executable, "-c", PROGRAM, self.folder / "m.bundle", self.folder / "x.npy", made, *options],
                              capture_output=True, text=True, env=environment)  # fmt: skip
        if done.returncode == 0:
            return "right" if made.read_bytes() == self.wanted else "other bits"
        return done.stderr.strip().replace(str(beside), "LIB")


def main():
    programs, libraries, driver = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    both = ["libdmxrt-cuda.so", SIM]
    neither = (
        "there is neither a GPU to run on (NVIDIA's driver cannot be loaded (/nowhere/libcuda.so.1: cannot open shared object file: No such "
        f"file or directory)) nor a simulator of one (there is no 'LIB/{SIM}'; install it there); install the driver of such a GPU or the "
        "simulator's library, or compile the model for cpu"
    )
    ways = [
        (both, [NO_DRIVER], "run on the simulator (device option cuda.sim=on)"),
        (both, [NO_DRIVER, "cuda.sim=auto"], "right"),
        (both, ["cuda.sim=on", "cuda.sim_seed=5"], "right"),
        (both[:1], [NO_DRIVER, "cuda.sim=auto"], neither),
        (both[:1], ["cuda.sim=on"], f"there is no simulator of GPUs: there is no 'LIB/{SIM}'; install it there"),
        ([], [], "which this runtime has no device for: there is no 'LIB/libdmxrt-cuda.so'; install it there, or compile the model for cpu"),
        (both, [NO_DRIVER, "cuda.sim=off"], "; run on the simulator (device option cuda.sim=on), or compile the model for cpu"),
    ]
    if driver:
        ways.append((both[:1], [f"cuda.driver={driver[0]}"], "right"))
    bad = 0
    with tempfile.TemporaryDirectory(prefix="dmxc-libraries-") as folder:
        place = Place(programs, libraries, pathlib.Path(folder))
        for names, options, wanted in ways:
            said = place.run(names, *options)
            good = said == wanted if wanted == "right" else wanted in said
            bad += not good
            print(f"{'ok  ' if good else 'FAIL'} {names} {options}: {said}")
    return 1 if bad else 0


sys.exit(main())
