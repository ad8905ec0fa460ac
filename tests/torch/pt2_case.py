"""What tests of exported PyTorch programs share. Their usage: TEST.py BIN LIBDMXRT FILES [unittest arguments]; FILES holds gen/, real/ and
bad/. Exit 77 where numpy or FILES is not there."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import dmxrt
import pt2file

BIN, LIBRARY, FILES = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3])
TYPES = {"f16": np.float16, "f32": np.float32, "i64": np.int64}


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, errors="replace")


def real(values):
    """bf16 as it is stored in fixtures (u16) and in dmx-run's files (void2)."""
    return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if values.dtype in (np.uint16, np.dtype("V2")) else values


class Pt2(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-pt2-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def compile(self, model, *arguments, code=0):
        result = run(BIN / "dmxc", model, "-o", self.dir / "m.bundle", "-t", "cpu:x86-64-v3", "--color", "never", *arguments)
        self.assertEqual(result.returncode, code, f"{model}: {result.stderr}")
        return result.stderr

    def inputs_of(self, folder):
        """{name: array} of files in<number>_<name>[.bf16bits].npy."""
        arrays = {}
        for path in sorted(folder.glob("in*.npy")):
            name = re.fullmatch(r"in\d+_(.*?)(\.bf16bits)?\.npy", path.name)
            arrays[name[1]] = np.load(path).view("V2") if name[2] else np.load(path)
        return arrays

    def run_bundle(self, inputs):
        """{name: array}, in the bundle's order."""
        for path in [*self.dir.glob("in_*.npy"), *self.dir.glob("out_*.npy")]:
            path.unlink()
        for name, values in inputs.items():
            np.save(self.dir / f"in_{name}.npy", values)
        result = run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir, "--output-dir", self.dir)
        self.assertEqual(result.returncode, 0, result.stderr)
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            names = [tensor.name for tensor in session.outputs]
        return {name: np.load(self.dir / f"out_{name}.npy") for name in names}

    def close(self, got, expected, what):
        self.assertEqual(got.shape, expected.shape, what)
        np.testing.assert_allclose(real(got), real(expected), rtol=1e-4, atol=1e-5, err_msg=what)


class ProgramCase(Pt2):
    """Programs made here, so that these need no files."""

    def program(self, node, arguments, output="y", inputs=(("x", "f32", [2, 3]),), results=None, **more):
        program = pt2file.Program()
        for name, dtype, shape in inputs:
            program.input(name, dtype, shape)
        program.node(node, arguments, results or [{"as_tensor": {"name": output}}], **more)
        program.output(output)
        return program

    def compile_program(self, program, *arguments, code=0):
        program.write(self.dir / "m.pt2")
        return self.compile(self.dir / "m.pt2", *arguments, code=code)

    X = {"as_tensor": {"name": "x"}}

    def steps(self, program, *calls):
        """Appends calls (overload, result, arguments); text is the name of a tensor, a number an integer."""
        for target, result, arguments in calls:
            given = {n: {"as_tensor": {"name": a}} if isinstance(a, str) else {"as_int": a} if isinstance(a, int) else a for n, a in arguments.items()}
            results = [{"as_tensors": [{"name": r} for r in result]}] if isinstance(result, list) else [{"as_tensor": {"name": result}}]
            program.node("torch.ops.aten." + target, given, results)


def main():
    """Runs a module's tests. Exit 77 where they need files that are not there."""
    if not FILES.is_dir() and "Fixtures" in " ".join(sys.argv[4:]):
        print(f"SKIPPED: {FILES} is not there")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
