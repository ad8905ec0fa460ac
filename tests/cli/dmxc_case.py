"""What tests of the command line of dmxc share: small models and running tools. They are called with BIN REPO [unittest arguments]."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

BIN = pathlib.Path(sys.argv[1]).resolve()
REPO = pathlib.Path(sys.argv[2]).resolve()
DIGITS = REPO / "tools/digits/digits.onnx"
ITS_DATA = ("--allow-external-data", str(DIGITS.parent))  # for its texts, which lie elsewhere
DATA = pathlib.Path("/usr/share/libonnx-testdata/data/node")

SMALL = """func.func @main(%x: tensor<4x8xf32> {dmir.name = "x"}) -> (tensor<4x8xf32> {dmir.name = "y"}) {
  %0 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("body/exp")
  %1 = dmir.softmax %0 {axis = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("body/softmax")
  return %1 : tensor<4x8xf32>
}
"""

# A sum of one number needs no vectors, the exponentials do.
SCALAR_AND_VECTOR = """func.func @main(%x: tensor<4x8xf32> {dmir.name = "x"}, %n: tensor<1xi64> {dmir.name = "n"}) -> (tensor<4x8xf32> {dmir.name = "y"}, tensor<1xi64> {dmir.name = "m"}) {
  %0 = dmir.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("exp")
  %1 = dmir.add %n, %n : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64> loc("twice")
  return %0, %1 : tensor<4x8xf32>, tensor<1xi64>
}
"""


def field(number, value):
    """One protobuf field; ints as varints, everything else as bytes."""
    def varint(n):
        out = b""
        while True:
            out += bytes([n & 0x7F | (0x80 if n > 0x7F else 0)])
            n >>= 7
            if not n:
                return out
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_with_external_weights(count=4):
    """y = x + w, w (`count` floats) in weights.bin."""
    def tensor_info(name):
        shape = field(1, field(1, count))
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))
    location = field(13, field(1, "location") + field(2, "weights.bin"))
    weights = field(1, count) + field(2, 1) + field(8, "w") + location + field(14, 1)
    node = field(1, "x") + field(1, "w") + field(2, "y") + field(3, "sum") + field(4, "Add")
    graph = field(1, node) + field(2, "g") + field(5, weights) + field(11, tensor_info("x")) + field(12, tensor_info("y"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def onnx_with_listed_weights(*more):
    """y = x + w; w has a value and is listed as an input. `more`: nodes of no other node's concern, (operator, name)."""
    info = lambda name: field(1, name) + field(2, field(1, field(1, 1) + field(2, field(1, field(1, 4)))))
    weights = field(1, 4) + field(2, 1) + field(8, "w") + field(9, bytes(16))
    graph = field(1, field(1, "x") + field(1, "w") + field(2, "y") + field(4, "Add"))
    for operator, name in more:
        graph += field(1, field(1, "x") + field(2, name) + field(3, name) + field(4, operator))
    graph += field(2, "g") + field(5, weights) + field(11, info("x")) + field(11, info("w")) + field(12, info("y"))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def onnx_with_sequences():
    """y = x, a sequence, with twice its first tensor at the end."""
    sequence = field(4, field(1, field(1, field(1, 1))))
    node = lambda op, inputs, output: field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op))
    nodes = node("SequenceAt", ["x", "zero"], "a") + node("Add", ["a", "a"], "b") + node("SequenceInsert", ["x", "b"], "y")
    zero = field(2, 7) + field(8, "zero") + field(9, bytes(8))
    graph = nodes + field(2, "g") + field(5, zero) + field(11, field(1, "x") + field(2, sequence)) + field(12, field(1, "y") + field(2, sequence))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def sequence_of(name, *tensors):
    """A SequenceProto of vectors of f32."""
    data = [field(1, len(values)) + field(2, 1) + field(9, struct.pack(f"<{len(values)}f", *values)) for values in tensors]
    return field(1, name) + field(2, 1) + b"".join(field(3, tensor) for tensor in data)


def answers_of(folder):
    """The classes that an output [n, 10] of floats in a folder of .npy files names."""
    raw = next(folder.glob("*.npy")).read_bytes()
    raw = raw[10 + int.from_bytes(raw[8:10], "little"):]
    rows = [struct.unpack_from("<10f", raw, at) for at in range(0, len(raw), 40)]
    return [row.index(max(row)) for row in rows]


sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-cli-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.small = self.dir / "small.mlir"
        self.small.write_text(SMALL)

    def run_tool(self, *arguments, tool="dmxc", code=0, cwd=None, env=None, timeout=300):
        result = subprocess.run([str(BIN / tool), *map(str, arguments)], cwd=cwd or self.dir, capture_output=True, text=True, timeout=timeout,
                                env={**os.environ, "TMPDIR": str(self.dir), **(env or {})})
        self.assertEqual(result.returncode, code, f"{tool} {arguments}\n{result.stdout}\n{result.stderr}")
        return result

    def entries(self, bundle):
        with zipfile.ZipFile(bundle) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
