#!/usr/bin/env python3
"""Three gigabytes of external weights, six with DMXC_LONG=1 (a sparse file): compiled within the memory bound, run, and right.
Usage: large_weights.py BIN [unittest arguments]. Exit 77 where a package, the disk space or the memory is missing."""
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError:
    print("SKIPPED: numpy or onnx is not installed (python3-numpy python3-onnx)")
    sys.exit(77)

BIN = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import LONG  # noqa: E402

WIDTH, LAYERS = 16384, 6 if LONG else 3  # a gigabyte each
LAYER_BYTES = WIDTH * WIDTH * 4
DISK_GB, MEMORY_GB = 2 * LAYERS, LAYERS + 3

with open("/proc/meminfo") as info:
    available = next(int(line.split()[1]) << 10 for line in info if line.startswith("MemAvailable"))
if shutil.disk_usage(tempfile.gettempdir()).free < DISK_GB << 30 or available < MEMORY_GB << 30:
    print(f"SKIPPED: needs {DISK_GB} GB of disk in {tempfile.gettempdir()} and {MEMORY_GB} GB of memory")
    sys.exit(77)


class LargeWeights(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-large-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def write_model(self, path):
        """A chain of products; `path[i]` to `path[i + 1]` is the one element of layer i that is not 0."""
        nodes, weights = [], []
        with open(self.dir / "weights.bin", "wb") as data:
            data.truncate(LAYERS * LAYER_BYTES)
            for i in range(LAYERS):
                data.seek(i * LAYER_BYTES + (path[i] * WIDTH + path[i + 1]) * 4)
                data.write(struct.pack("<f", i + 1.5))
                weight = TensorProto(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], data_location=TensorProto.EXTERNAL)
                for key, value in (("location", "weights.bin"), ("offset", str(i * LAYER_BYTES)), ("length", str(LAYER_BYTES))):
                    weight.external_data.add(key=key, value=value)
                weights.append(weight)
                nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]))
        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, WIDTH])
        graph = helper.make_graph(nodes, "large", [value("x0")], [value(f"x{LAYERS}")], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (self.dir / "model.onnx").write_bytes(model.SerializeToString())

    def test_compiles_and_runs(self):
        path = [5, 16383, 0, 8191, 77, 12345, 16382][:LAYERS + 1]
        self.write_model(path)
        bundle = self.dir / "model.bundle"
        done = subprocess.run([BIN / "dmxc", self.dir / "model.onnx", "-o", bundle, "-j2"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        self.assertLess(peak, 1.2 * LAYERS * LAYER_BYTES + (1 << 30))
        x = np.zeros((1, WIDTH), np.float32)
        x[0, path[0]] = 2
        want = np.zeros_like(x)
        want[0, path[-1]] = 2 * np.prod(np.arange(LAYERS) + 1.5)
        np.save(self.dir / "x.npy", x)
        done = subprocess.run([BIN / "dmx-run", bundle, "--input", f"x0={self.dir / 'x.npy'}", "--output", f"x{LAYERS}={self.dir / 'y.npy'}"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_array_equal(np.load(self.dir / "y.npy"), want)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
