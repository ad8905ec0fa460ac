"""What tests of kernels that users wrote for GPUs share: a model with a node for one, its kernel file, compiling, and running on the simulator. They are
called with BIN REPO [unittest arguments]; exit 77 without numpy."""
import json
import pathlib
import shutil
import sys

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "cli"), str(TESTS / "fuzz"), str(TESTS)]

from dmxc_case import BIN, REPO, Base  # noqa: E402, F401

import onnx_file as onnx  # noqa: E402

EXAMPLES = REPO / "tools/examples/kernels"


def argmax_model():
    """y = 3 * argmax(2 * x) along the last axis, x: f16[b, n]: the kernel between two of ours."""
    scalar = lambda name, dtype, raw: onnx.tensor(name, dtype, [], raw=raw)
    nodes = [onnx.node("Mul", "x two", "twice"), onnx.node("ArgMaxFast", "twice", "place", "com.acme"), onnx.node("Mul", "place three", "y")]
    weights = [scalar("two", onnx.FLOAT16, np.float16(2).tobytes()), scalar("three", onnx.INT64, np.int64(3).tobytes())]
    imports = onnx.field(8, onnx.message((1, "com.acme"), (2, 1)))
    return onnx.model(nodes, [onnx.info("x", onnx.FLOAT16, ["b", "n"])], [onnx.info("y", onnx.INT64, ["b"])], weights=weights, extra=imports)


class Case(Base):
    SIMULATED = ("--device-opt", "cuda.sim=on")

    def setUp(self):
        super().setUp()
        for file in EXAMPLES.iterdir():
            shutil.copy(file, self.dir)
        (self.dir / "m.onnx").write_bytes(argmax_model())

    def declare(self, example="argmax_gpu.json", launch=None, body=None, **changes):
        """An example's kernel with other values of it, of its first body and of that one's launch; None leaves a key out."""
        kernel = json.loads((EXAMPLES / example).read_text())["kernels"][0]
        first = kernel["bodies"][0]
        first["launch"].update(launch or {})
        for changed, values in ((kernel, changes), (first, body or {})):
            changed.update(values)
            for key in [key for key, value in changed.items() if value is None]:
                del changed[key]
        (self.dir / "k.json").write_text(json.dumps({"kernels": [kernel]}))
        return kernel

    def compile(self, *options, model="m.onnx", code=0, kernels="k.json", out="m.bundle"):
        given = ("--kernels", kernels) if kernels else ()
        return self.run_tool(model, *given, "-t", "cuda:sm_90a", "-o", out, *options, code=code)

    def run_bundle(self, values, *options, code=0):
        """The outputs by name; what is said, where it fails."""
        inputs = []
        for name, value in values.items():
            np.save(self.dir / f"{name}.npy", value)
            inputs += ["--input", f"{name}={name}.npy"]
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        done = self.run_tool("m.bundle", *inputs, "--output-dir", "out", *self.SIMULATED, *options, tool="dmx-run", code=code)
        return {file.stem.removeprefix("out_"): np.load(file) for file in (self.dir / "out").glob("*.npy")} if code == 0 else done.stderr

    def refused(self, clause, code=1, **options):
        said = self.compile(code=code, **options).stderr
        self.assertIn(clause, said)
        self.assertFalse((self.dir / "m.bundle").exists())
        return said


def find_ptxas():
    found = sorted(BIN.parent.glob("ptxas-venv/lib/*/site-packages/nvidia/*/bin/ptxas"))
    return shutil.which("ptxas") or (str(found[0]) if found else None)
