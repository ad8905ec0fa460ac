#!/usr/bin/env python3
"""tools/python/dmxrt: types that numpy lacks, out=, DLPack, what is said of misuse. Usage: python_test.py BIN LIBDMXRT [unittest arguments]
Exit 77 without numpy."""
import os
import pathlib
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

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools/python"
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS))
import dmxrt  # noqa: E402

BIN, LIBRARY = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
CAST = """func.func @main(%x: tensor<NxA> {dmir.name = "x"}) -> (tensor<NxB> {dmir.name = "y"}) {
  %0 = dmir.cast %x : (tensor<NxA>) -> tensor<NxB>
  return %0 : tensor<NxB>
}
"""
TWO = """func.func @main(%x: tensor<8xf32> {dmir.name = "x"}) -> (tensor<8xf32> {dmir.name = "a"}, tensor<8xf32> {dmir.name = "b"}) {
  %0 = dmir.relu %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = dmir.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="dmxc-python-")
        cls.dir = pathlib.Path(cls.place.name)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def open(self, name, text, **options):
        path = self.dir / f"{name}.bundle"
        if not path.exists():
            (self.dir / f"{name}.mlir").write_text(text)
            done = subprocess.run([BIN / "dmxc", self.dir / f"{name}.mlir", "-q", "-o", path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        session = dmxrt.Session(path, library=LIBRARY, threads=1, **options)
        self.addCleanup(session.close)
        return session

    def cast(self, source, target, count):
        return self.open(f"{source}-{target}-{count}", CAST.replace("NxA", f"{count}x{source}").replace("NxB", f"{count}x{target}"))

    def refused(self, *words):
        class Context:
            def __enter__(context):
                return context

            def __exit__(context, kind, error, trace):
                self.assertIsInstance(error, dmxrt.Error, "not refused")
                for word in words:
                    self.assertIn(word, str(error))
                return True
        return Context()


def rounded_to_bf16(values):
    """By struct and integers: nearest, ties to even."""
    words = np.array(values, "<f4").view("<u4").astype(np.uint64)
    low, high = words & 0xFFFF, words >> 16
    up = (low > 0x8000) | ((low == 0x8000) & (high & 1 == 1))
    return ((high + up) << 16).astype("<u4").view("<f4")


class Types(Base):
    VALUES = np.array([0.0, -0.0, 1.0, 1.00390625, 1.01171875, -3.14159, 1e-30, 3e38, float("inf"), -float("inf"), float("nan")], "f4")

    def test_bf16_and_f16_outputs(self):
        """KeyError: 13 once."""
        session = self.cast("f32", "bf16", len(self.VALUES))
        y = session.run(self.VALUES)["y"]
        self.assertEqual(y.dtype, np.float32)
        np.testing.assert_array_equal(y[:-1], rounded_to_bf16(self.VALUES)[:-1])
        self.assertTrue(np.isnan(y[-1]) and np.signbit(y[1]))
        self.assertIn("y: bf16[11]", repr(session))
        y = self.cast("f32", "f16", 3).run(np.array([1, 2.5, 65504], "f4"))["y"]
        self.assertEqual((y.dtype, y.tolist()), (np.float16, [1, 2.5, 65504]))

    def test_bf16_inputs_are_rounded(self):
        y = self.cast("bf16", "f32", len(self.VALUES)).run(x=self.VALUES)["y"]
        np.testing.assert_array_equal(y[:-1], rounded_to_bf16(self.VALUES)[:-1])
        self.assertTrue(np.isnan(y[-1]))
        with self.refused("input 'x' is bf16, of which arrays are float32 or ml_dtypes.bfloat16, not float64"):
            self.cast("bf16", "f32", len(self.VALUES)).run(x=self.VALUES.astype("f8"))

    def test_small_integers(self):
        """4 and 2 bits, several to a byte: a count that fills no byte."""
        for name, low, high, wide in (("i4", -8, 7, np.int8), ("ui4", 0, 15, np.uint8), ("i2", -2, 1, np.int8), ("ui2", 0, 3, np.uint8)):
            values = np.resize(np.arange(low, high + 1), 23)
            for source, target, given, wanted in ((name, "i32", values.astype(wide), np.int32), ("i32", name, values.astype("i4"), wide)):
                with self.subTest(f"{source} -> {target}"):
                    y = self.cast(source, target, 23).run(given)["y"]
                    self.assertEqual(y.dtype, wanted)
                    np.testing.assert_array_equal(y, values)
        with self.refused("input 'x' is i4, which has no 8; round to its values first"):
            self.cast("i4", "i32", 23).run(np.full(23, 8, "i1"))

    def test_floats_of_8_and_4_bits(self):
        """The tables against what the formats' definitions say, and dmxc's own casts to f32."""
        known = {"f8E4M3FN": (448, 2.0 ** -9), "f8E4M3FNUZ": (240, 2.0 ** -10), "f8E5M2": (57344, 2.0 ** -16), "f8E5M2FNUZ": (57344, 2.0 ** -17),
                 "f4E2M1FN": (6, 0.5), "f8E8M0FNU": (2.0 ** 127, 2.0 ** -127)}
        codes = {"f8E4M3FN": 16, "f8E4M3FNUZ": 17, "f8E5M2": 18, "f8E5M2FNUZ": 19, "f4E2M1FN": 20, "f8E8M0FNU": 21}
        for name, (largest, least) in known.items():
            with self.subTest(name):
                values = dmxrt._values(codes[name])
                finite = values[np.isfinite(values)]
                self.assertEqual((finite.max(), finite[finite > 0].min()), (largest, np.float32(least)))
                try:
                    session = self.cast(name, "f32", len(values))
                except AssertionError as error:  # dmxc has no such cast
                    self.assertIn("f8E8M0FNU", str(error) + name)
                    continue
                np.testing.assert_array_equal(session.run(values)["y"], values)
                back = self.cast("f32", name, len(finite)).run(finite)["y"]
                np.testing.assert_array_equal(back, finite)

    def test_arrays_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        y = self.cast("bf16", "f32", 2).run(np.array([1, 3], ml_dtypes.bfloat16))["y"]
        self.assertEqual(y.tolist(), [1, 3])


class Arrays(Base):
    X = np.linspace(-1, 1, 8, dtype="f4")

    def test_ways_to_give_inputs(self):
        session = self.open("two", TWO)
        wanted = {"a": np.maximum(self.X, 0), "b": np.exp(self.X)}
        for outputs in (session(self.X), session.run(self.X), session.run(x=self.X), session.run({"x": self.X}), session(x=self.X)):
            self.assertEqual(list(outputs), ["a", "b"])
            np.testing.assert_array_equal(outputs["a"], wanted["a"])
            np.testing.assert_allclose(outputs["b"], wanted["b"], rtol=1e-6)
        with self.refused("run takes no list of outputs", "session.run({'NAME': array})"):  # as ONNX Runtime's
            session.run(None, {"x": self.X})
        with self.refused("both in the dict and by name"):
            session.run({"x": self.X}, x=self.X)
        with self.refused("not given: x", "not among them: z"):
            session.run({"z": self.X})

    def test_out(self):
        session = self.open("two", TWO)
        a, b = np.zeros(8, "f4"), np.zeros(8, "f4")
        outputs = session.run(self.X, out={"b": b})
        self.assertIs(outputs["b"], b)
        np.testing.assert_allclose(b, np.exp(self.X), rtol=1e-6)
        session.run(self.X, out=[a])
        np.testing.assert_array_equal(a, np.maximum(self.X, 0))
        apart = np.zeros(16, "f4")
        session.run(self.X, out={"a": apart[1::2]})  # as it lies
        self.assertEqual(apart.tolist(), np.stack([np.zeros(8), np.maximum(self.X, 0)], 1).ravel().tolist())
        a[:] = -1
        session.run(self.X)  # without out: a new array
        self.assertEqual(a.tolist(), [-1] * 8)
        y = np.zeros(3, "f4")
        self.assertIs(self.cast("f32", "bf16", 3).run(np.ones(3, "f4"), out=y)["y"], y)  # not as its bits
        self.assertEqual(y.tolist(), [1, 1, 1])
        locked = np.zeros(8, "f4")
        locked.flags.writeable = False
        for out, word in (({"c": a}, "no output 'c'"), ({"a": np.zeros(8)}, "is float32, not float64"), ({"a": np.zeros(7, "f4")}, "'a' is [8]"),
                          ({"a": np.zeros(8, "f4")[::-1]}, "strides (-4,); they must not be negative"), ({"a": locked}, "writeable"), (a, "give a dict"),
                          ([a, b, a], "3 arrays for 2 outputs"), ({"a": [0] * 8}, "not list")):
            with self.subTest(word), self.refused("out", word):
                session.run(self.X, out=out)
        np.testing.assert_array_equal(session.run(self.X)["a"], np.maximum(self.X, 0))  # the session goes on

    @unittest.skipUnless(hasattr(np, "from_dlpack"), "this numpy has no DLPack")
    def test_dlpack(self):
        class Foreign:
            """Has its memory by DLPack alone."""

            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **arguments):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        class Elsewhere(Foreign):
            def __dlpack__(self, **arguments):
                raise BufferError("the memory is on a GPU")

        session = self.open("two", TWO)
        outputs = session.run(Foreign(self.X.copy()))
        np.testing.assert_array_equal(outputs["a"], np.maximum(self.X, 0))
        np.testing.assert_array_equal(np.from_dlpack(outputs["a"]), outputs["a"])
        with self.refused("input 'x' cannot be looked at by numpy.from_dlpack: the memory is on a GPU"):
            session.run(Elsewhere(self.X))

    def test_a_closed_session_says_so(self):
        session = self.open("two", TWO)
        session.close()
        session.close()
        for call in (lambda: session(self.X), lambda: session.run(self.X), session.reset_state, lambda: session.metadata("x"),
                     lambda: session.bind(0, 0, dmxrt.F32, [8], self.X.ctypes.data)):
            with self.refused("two.bundle' is closed; make another: dmxrt.Session("):
                call()
        self.assertIn("two.bundle", repr(session))


class Library(Base):
    def load(self, value, code="dmxrt.load_library()"):
        """What a program says whose DMXRT_LIBRARY is that."""
        env = {**os.environ, "PYTHONPATH": str(TOOLS), "PYTHONDONTWRITEBYTECODE": "1", "DMXRT_LIBRARY": str(value)}
        done = subprocess.run([sys.executable, "-c", f"import dmxrt\ntry:\n    {code}\nexcept dmxrt.Error as e:\n    print(e)"],
                              capture_output=True, text=True, env=env, cwd=self.dir)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_wrong_files(self):
        text = self.dir / "text.so"
        text.write_text("no library\n" * 100)
        other = next(pathlib.Path("/lib").rglob("libz.so.1"), None) or next(pathlib.Path("/usr/lib").rglob("libm.so.6"))
        for value, words in ((text, ["text.so", "invalid ELF header"]), (self.dir, ["Is a directory"]), ("/absent.so", ["No such file"]),
                             (other, [f"'{other}'", "is a library, but not libdmxrt: it lacks dmx_version_string"])):
            with self.subTest(str(value)):
                said = self.load(value)
                for word in [*words, "DMXRT_LIBRARY", "set the environment variable DMXRT_LIBRARY to the file libdmxrt.so.0"]:
                    self.assertIn(word, said)
                self.assertEqual(said.count("\n"), 1)

    def test_an_older_library(self):
        compiler = shutil.which("cc") or shutil.which("clang-22")
        if not compiler:
            self.skipTest("no C compiler")
        (self.dir / "old.c").write_text('const char *dmx_version_string(void) { return "0.0.1"; }\n')
        subprocess.run([compiler, "-shared", "-fPIC", "old.c", "-o", "old.so"], cwd=self.dir, check=True)
        self.assertIn("is libdmxrt 0.0.1, which lacks dmx_bundle_open_with", self.load(self.dir / "old.so"))

    def test_the_prefix_of_the_module(self):
        """An installed module takes the library of its own prefix."""
        modules = self.dir / "prefix/lib/python3/dist-packages"
        modules.mkdir(parents=True)
        shutil.copytree(TOOLS / "dmxrt", modules / "dmxrt")
        shutil.copy(LIBRARY, self.dir / "prefix/lib/libdmxrt.so.0")
        env = {**os.environ, "PYTHONPATH": str(modules), "PYTHONDONTWRITEBYTECODE": "1"}
        env.pop("DMXRT_LIBRARY", None)
        env.pop("LD_LIBRARY_PATH", None)
        done = subprocess.run([sys.executable, "-c", "import dmxrt; print(dmxrt.load_library()._name)"], capture_output=True, text=True, env=env)
        self.assertEqual(done.stdout.strip(), str(self.dir / "prefix/lib/libdmxrt.so.0"), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
