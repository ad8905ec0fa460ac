#!/usr/bin/env python3
"""Files that a text names: those below its own folder, or a folder that was named, and no other, by whatever door it comes.
Usage: data_files_test.py BIN REPO [unittest arguments]. Exit 77 without numpy."""
import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)
from dmxc_case import BIN, Base, onnx_with_external_weights

COUNT = 100  # more than a text has inline
SECRET = np.arange(COUNT, dtype=np.float32) + 4242


def adds(path, offset=0):
    """y = x + the floats in a file."""
    vector = f"tensor<{COUNT}xf32>"
    return (f'func.func @main(%x: {vector} {{dmir.name = "x"}}) -> ({vector} {{dmir.name = "y"}}) {{\n'
            f'  %w = dmir.constant #dmir.file<"{path}", {offset}, {4 * COUNT}> : {vector} loc("w")\n'
            f'  %y = dmir.add %x, %w : ({vector}, {vector}) -> {vector} loc("sum")\n  return %y : {vector}\n}}\n')


class DataFiles(Base):
    def setUp(self):
        super().setUp()
        self.other = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-other-")).resolve()
        self.addCleanup(shutil.rmtree, self.other, ignore_errors=True)
        self.dir = self.dir.resolve()
        self.secret = self.other / "secret.bin"
        SECRET.tofile(self.secret)
        (self.dir / "sub").mkdir()
        SECRET.tofile(self.dir / "sub/weights.bin")

    def write(self, path, name="t.mlir"):
        (self.dir / name).write_text(adds(path))
        return name

    def outside(self):
        """Spellings of a file outside."""
        (self.dir / "link.bin").symlink_to(self.secret)
        (self.dir / "linked").symlink_to(self.other)
        return [str(self.secret), os.path.relpath(self.secret, self.dir), "link.bin", "linked/secret.bin", f"sub/../../{self.other.name}/secret.bin",
                f"{self.dir}/linked/secret.bin", f"{self.dir}/sub/../../{self.other.name}/secret.bin", f"/proc/self/root{self.secret}"]

    def refused(self, *command, tool="dmxc", node="'w'"):
        """No byte of the file anywhere, and how it could be taken."""
        before = sorted(self.dir.iterdir())
        done = self.run_tool(*command, tool=tool, code=1)
        self.assertIn(f"--allow-external-data '{self.other}'", done.stderr)
        self.assertIn(f"node {node}: error: the file '", done.stderr)
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def sums(self, bundle):
        """What a bundle of adds() gives for zeros."""
        np.save(self.dir / "x.npy", np.zeros(COUNT, np.float32))
        self.run_tool(bundle, "--input", "x=x.npy", "--output", "y=y.npy", tool="dmx-run")
        return np.load(self.dir / "y.npy")

    def test_a_file_outside(self):
        for path in self.outside():
            with self.subTest(path=path):
                text = self.write(path)
                self.refused(text, "-o", "o")
                self.refused(text, "-o", "o", "--allow-external-data", "sub")
                self.refused(text, "--emit", "frontend", "-o", "o")
                self.refused(text, "--random-inputs", "1", tool="dmx-compare")
                self.refused(text, "--from", "frontend", "-o", "o")
                self.refused(text, "--from", "frontend", "-o", "o", "--allow-external-data", "sub")
                self.run_tool(text, "-o", "o", "--allow-external-data", "sub", "--allow-external-data", self.other)
                np.testing.assert_array_equal(self.sums("o"), SECRET)
                (self.dir / "o").unlink()

    def test_the_same_file_inside(self):
        for path in ("sub/weights.bin", f"{self.dir}/sub/weights.bin", "sub/../sub/weights.bin"):
            for more in ((), ("--from", "frontend")):
                with self.subTest(path=path, more=more):
                    self.run_tool(self.write(path), "-o", "o", *more)
                    np.testing.assert_array_equal(self.sums("o"), SECRET)
                    self.assertIn("PASS", self.run_tool(self.dir / "t.mlir", "--random-inputs", "1", tool="dmx-compare", cwd="/").stdout)

    def test_a_file_that_is_not_there(self):
        for more in ((), ("--from", "frontend")):
            err = self.run_tool(self.write("sub/nothing.bin"), "-o", "o", *more, code=3).stderr
            self.assertIn("sub/nothing.bin' cannot be read: No such file", err)

    def test_texts_of_every_phase(self):
        """A text that dmxc wrote names its model by the whole path; another path in it is refused."""
        model = self.other / "model.onnx"
        model.write_bytes(onnx_with_external_weights(COUNT))
        SECRET.tofile(self.other / "weights.bin")
        self.run_tool(model, "-o", "wanted.bundle", "--dump-phases", "phases")
        content = lambda name: {**self.entries(self.dir / name), "manifest.json": ""}  # which has the name of what was compiled
        wanted = content("wanted.bundle")
        texts = sorted((self.dir / "phases").glob("*.mlir"))
        self.assertEqual(len(texts), 4)
        for text in texts:
            phase = text.stem.split("-")[1]
            with self.subTest(phase=phase):
                again = ("--from", phase, "-o", "again.bundle")
                err = self.run_tool(text, *again, code=1).stderr
                advice = re.search(r"--allow-external-data '(.*?)'", err)
                self.assertEqual(advice[1], str(self.other))
                self.run_tool(text, *again, *shlex.split(advice[0]))
                self.assertEqual(content("again.bundle"), wanted)
                (self.other / "beside.mlir").write_text(text.read_text())
                self.run_tool(self.other / "beside.mlir", *again)
                self.assertEqual(content("again.bundle"), wanted)
                changed = text.read_text().replace(str(self.other / "weights.bin"), "/etc/services")
                self.assertNotEqual(changed, text.read_text())
                (self.other / "changed.mlir").write_text(changed)
                err = self.run_tool(self.other / "changed.mlir", *again, code=1).stderr
                self.assertIn("the file '/etc/services' lies in '/etc'", err)

    def test_dmx_opt(self):
        """Passes that fold read constants."""
        passes = "--pass-pipeline=builtin.module(func.func(dmir-fold-constants))"
        negated = lambda path: adds(path).replace("dmir.add %x, %w : (tensor<100xf32>, ", "dmir.neg %w : (")
        for path, is_read in ((str(self.secret), False), ("sub/weights.bin", True)):
            (self.dir / "t.mlir").write_text(negated(path))
            with self.subTest(path=path):
                done = self.run_tool("t.mlir", passes, tool="dmx-opt")
                self.assertEqual("dmir.neg" not in done.stdout, is_read, done.stdout)
        (self.dir / "t.mlir").write_text(negated(str(self.secret)))
        self.assertNotIn("dmir.neg", self.run_tool("t.mlir", passes, f"--allow-external-data={self.other}", tool="dmx-opt").stdout)

    def test_a_script(self):
        """A schedule that gives a constant of the model another value."""
        self.write("sub/weights.bin")
        (self.dir / "s.mlir").write_text(f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%m: !transform.any_op {{transform.readonly}}) {{
    %c = transform.structured.match ops{{["dmir.constant"]}} in %m : (!transform.any_op) -> !transform.any_op
    %v = transform.param.constant #dmir.file<"{self.secret}", 0, {4 * COUNT}> : tensor<{COUNT}xf32> -> !transform.any_param
    transform.annotate %c "value" = %v : !transform.any_op, !transform.any_param
    transform.yield
  }}
}}
""")
        err = self.run_tool("t.mlir", "-o", "o", "--schedule", "s.mlir", code=1).stderr
        self.assertIn(f"'{self.secret}'", err)
        self.assertFalse((self.dir / "o").exists())

    def test_a_dependency_file_has_them(self):
        self.run_tool(self.write("sub/weights.bin"), "-o", "o", "-MD", "-MF", "d")
        self.assertIn(str(self.dir / "sub/weights.bin"), (self.dir / "d").read_text())
        self.run_tool("t.mlir", "--from", "frontend", "-o", "o", "-MD", "-MF", "d")
        self.assertIn(str(self.dir / "sub/weights.bin"), (self.dir / "d").read_text())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
