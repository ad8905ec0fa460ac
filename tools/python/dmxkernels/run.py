"""Compiling a kernel with dmxc, and running it: on a GPU where there is one, else on the simulator."""
import json
import os
import pathlib
import subprocess
import tempfile

from .values import KernelError


class Run:
    def __init__(self, outputs, clocks, ptx, said):
        self.outputs, self.clocks, self.ptx, self.said = outputs, clocks, ptx, said

    def __getitem__(self, name):
        return self.outputs[name]


def tool(name):
    """dmxc and dmx-run: below DMXC_BIN, or in the PATH."""
    return str(pathlib.Path(os.environ["DMXC_BIN"]) / name) if "DMXC_BIN" in os.environ else name


def call(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    except FileNotFoundError as missing:
        raise KernelError(f"{command[0]} is not there; put it into the PATH, or give its folder as DMXC_BIN") from missing
    if done.returncode:
        raise KernelError(done.stderr.strip())
    return done


def compile_kernel(name, text, folder=None):
    """The folder with NAME.mlir, NAME.bundle and NAME.ptx."""
    folder = pathlib.Path(folder or tempfile.mkdtemp(prefix=f"{name}-"))
    (folder / f"{name}.mlir").write_text(text)
    call(tool("dmxc"), folder / f"{name}.mlir", "-q", "-t", "cuda:sm_90a", "--bundle-format", "dir", "-o", folder / f"{name}.bundle")
    (folder / f"{name}.ptx").write_text((folder / f"{name}.bundle/code/cuda/sm_90a/kernels.ptx").read_text())
    return folder


def run_bundle(kernel, folder, inputs, seed, blocks):
    import numpy as np

    options = [f"cuda.sim={os.environ.get('DMXK_SIM', 'auto')}", f"cuda.sim_seed={seed}", f"cuda.report={folder / 'report.json'}"]
    options += [f"cuda.sim_blocks={blocks}"] if blocks else []
    command = [tool("dmx-run"), folder / f"{kernel.name}.bundle", "--output-dir", folder / "out"]
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder / name}.npy"]
    for option in options:
        command += ["--device-opt", option]
    call(*command)
    outputs = {file.stem.removeprefix("out_"): np.load(file) for file in (folder / "out").glob("*.npy")}
    report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else {}
    said = kernel.printed(outputs.pop("said")) if kernel.records else []
    return Run(outputs, clocks_of(report), (folder / f"{kernel.name}.ptx").read_text(), said)


def clocks_of(report):
    """Of all launches of a run, estimated; None on a GPU, whose report has none."""
    found = [launch["main"]["clocks"] for launch in report.get("first", []) if "main" in launch]
    return sum(found) if found else None
