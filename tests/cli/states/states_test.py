#!/usr/bin/env python3
"""States of a session (dmxc --state), run through libdmxrt. Usage: states_test.py BIN LIBDMXRT [unittest arguments]"""
import ctypes
import math
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/python"))
import dmxrt

BIN = pathlib.Path(sys.argv[1]).resolve()
LIBRARY = sys.argv[2]
DIM, ROWS = 8, 12


class Session(dmxrt.Session):
    """One session of a bundle whose only input and output are f32 rows of DIM."""

    def __init__(self, path):
        super().__init__(path, library=LIBRARY)
        self.input, self.output = (ctypes.c_float * DIM)(), (ctypes.c_float * DIM)()
        for io, data in ((dmxrt.INPUT, self.input), (dmxrt.OUTPUT, self.output)):
            self.bind(io, 0, dmxrt.F32, (1, DIM), ctypes.addressof(data))

    def run(self, row):
        self.input[:] = row
        self.call("dmx_session_run", self.session)
        return list(self.output)


def matrix(seed):
    numbers = random.Random(seed)
    return [[round(numbers.uniform(-1, 1), 3) for _ in range(DIM)] for _ in range(DIM)]


def times(row, weights):
    return [sum(a * w[j] for a, w in zip(row, weights)) for j in range(DIM)]


class Decoder:
    """One head of attention in plain Python: the oracle."""

    def __init__(self):
        self.keys, self.values = [], []

    def step(self, row):
        query, key, value = (times(row, matrix(seed)) for seed in (1, 2, 3))
        self.keys.append(key)
        self.values.append(value)
        scores = [sum(a * b for a, b in zip(query, k)) for k in self.keys]
        weights = [math.exp(s - max(scores)) for s in scores]
        return [sum(w * v[j] for w, v in zip(weights, self.values)) / sum(weights) for j in range(DIM)]


def constant(name, seed):
    rows = ", ".join("[" + ", ".join(f"{x:.3f}" for x in row) + "]" for row in matrix(seed))
    return f"  %{name} = dmir.constant dense<[{rows}]> : tensor<{DIM}x{DIM}xf32>\n"


def decoder_model(extra=""):
    row, square, past, all_rows = (f"tensor<{n}x{DIM}xf32>" for n in (1, DIM, ROWS - 1, ROWS))
    project = "".join(f"  %{n} = dmir.matmul %x, %w{n} : ({row}, {square}) -> {row}\n" for n in "qkv")
    grow = "".join(f"  %n{n} = dmir.concat %p{n}, %{n} {{axis = 0 : i64}} : ({past}, {row}) -> {all_rows}\n" for n in "kv")
    return (f'func.func @main(%x: {row} {{dmir.name = "x"}}, %pk: {past} {{dmir.name = "pk"}}, %pv: {past} {{dmir.name = "pv"}}) -> '
            f'({row} {{dmir.name = "y"}}, {all_rows} {{dmir.name = "nk"}}, {all_rows} {{dmir.name = "nv"}}) {{\n'
            + constant("wq", 1) + constant("wk", 2) + constant("wv", 3) + project + grow + extra +
            f"  %t = dmir.transpose %nk {{permutation = array<i64: 1, 0>}} : ({all_rows}) -> tensor<{DIM}x{ROWS}xf32>\n"
            f"  %s = dmir.matmul %q, %t : ({row}, tensor<{DIM}x{ROWS}xf32>) -> tensor<1x{ROWS}xf32>\n"
            f"  %p = dmir.softmax %s {{axis = 1 : i64}} : (tensor<1x{ROWS}xf32>) -> tensor<1x{ROWS}xf32>\n"
            f"  %y = dmir.matmul %p, %nv : (tensor<1x{ROWS}xf32>, {all_rows}) -> {row}\n"
            f"  return %y, %nk, %nv : {row}, {all_rows}, {all_rows}\n}}\n")


RECURRENT = f"""func.func @main(%x: tensor<1x{DIM}xf32> {{dmir.name = "x"}}, %h: tensor<1x{DIM}xf32> {{dmir.name = "h"}}) -> (tensor<1x{DIM}xf32> {{dmir.name = "y"}}, tensor<1x{DIM}xf32> {{dmir.name = "next"}}) {{
  %a = dmir.add %x, %h : (tensor<1x{DIM}xf32>, tensor<1x{DIM}xf32>) -> tensor<1x{DIM}xf32>
  %n = dmir.tanh %a : (tensor<1x{DIM}xf32>) -> tensor<1x{DIM}xf32>
  %y = dmir.mul %n, %h : (tensor<1x{DIM}xf32>, tensor<1x{DIM}xf32>) -> tensor<1x{DIM}xf32>
  return %y, %n : tensor<1x{DIM}xf32>, tensor<1x{DIM}xf32>
}}
"""


class States(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-states-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.rows = [[random.Random(100 * step + j).uniform(-1, 1) for j in range(DIM)] for step in range(ROWS + 1)]

    def compile(self, model, *arguments, code=0):
        (self.dir / "m.mlir").write_text(model)
        result = subprocess.run([BIN / "dmxc", self.dir / "m.mlir", "-o", self.dir / "m.bundle", *arguments],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def open(self):
        session = Session(self.dir / "m.bundle")
        self.addCleanup(session.close)
        return session

    def expect_near(self, got, wanted, tolerance):
        for a, b in zip(got, wanted):
            self.assertAlmostEqual(a, b, delta=tolerance)

    def targets(self):
        """(arguments, tolerance): f16 and block floating point on the device."""
        known = subprocess.run([BIN / "dmxc", "--print-targets"], capture_output=True, text=True).stdout
        both = [(("-t", "cpu:x86-64-v3"), 1e-5)]
        if "corsair" in known:
            both += [(("-t", "corsair:quads=1"), 0.03), (("-t", "corsair:quads=4"), 0.03)]
        return both

    def test_a_cache_grows_by_a_row_a_run(self):
        for target, tolerance in self.targets():
            with self.subTest(target=target):
                self.compile(decoder_model(), *target, "--state", "pk=nk", "--state", "pv=nv")
                session = self.open()
                for _ in range(2):
                    oracle = Decoder()
                    for row in self.rows[:ROWS]:
                        self.expect_near(session.run(row), oracle.step(row), tolerance)
                    with self.assertRaisesRegex(RuntimeError, "index lies outside|index-out-of-range"):
                        session.run(self.rows[ROWS])
                    session.reset_state()

    def test_a_state_of_one_size(self):
        for target, tolerance in self.targets():
            with self.subTest(target=target):
                self.compile(RECURRENT, *target, "--state", "h=next")
                session, other, hidden = self.open(), self.open(), [0.0] * DIM
                for row in self.rows:
                    after = [math.tanh(a + b) for a, b in zip(row, hidden)]
                    self.expect_near(session.run(row), [a * b for a, b in zip(after, hidden)], tolerance)
                    hidden = after
                self.expect_near(other.run(self.rows[0]), [0.0] * DIM, 0)  # a session's states are its own

    def moves(self, inputs, results, states, code=0):
        """A model of rows that only adds `inputs`, and whose states take what `results` name."""
        row = f"tensor<1x{DIM}xf32>"
        names = ["x", *states]
        arguments = ", ".join(f'%{name}: {row} {{dmir.name = "{name}"}}' for name in names)
        types = ", ".join(f'{row} {{dmir.name = "{name}"}}' for name in ["y", *(f"next_{name}" for name in states)])
        text = (f"func.func @main({arguments}) -> ({types}) {{\n  %y = dmir.add %{inputs[0]}, %{inputs[1]} : ({row}, {row}) -> {row}\n"
                f"  return %y, {', '.join('%' + name for name in results)} : {', '.join([row] * (len(states) + 1))}\n}}\n")
        return self.compile(text, "-t", "cpu:x86-64-v3", *(word for name in states for word in ("--state", f"{name}=next_{name}")), code=code)

    def test_states_that_take_inputs_and_states(self):
        """What an output is that no op computes: the input, the old value of another state, the state's own, in any order."""
        for inputs, results, step in ((("a", "b"), ("x", "a"), lambda x, a, b: (a + b, x, a)), (("a", "b"), ("b", "x"), lambda x, a, b: (a + b, b, x)),
                                      (("x", "b"), ("y", "a"), lambda x, a, b: (x + b, x + b, a)), (("x", "a"), ("a", "x"), lambda x, a, b: (x + a, a, x)),
                                      (("x", "b"), ("x", "b"), lambda x, a, b: (x + b, x, b))):
            with self.subTest(results=results):
                self.moves(inputs, results, ("a", "b"))
                session, a, b = self.open(), 0.0, 0.0
                for number in (1.0, 4.0, 9.0, 16.0, 25.0):
                    y, a, b = step(number, a, b)
                    self.expect_near(session.run([number] * DIM), [y] * DIM, 1e-5)
        self.moves(("a", "b"), ("x", "a", "b"), ("a", "b", "c"))
        for results in (("b", "a"), ("b", "c", "a")):
            said = self.moves(("x", "a"), results, ("a", "b", "c")[:len(results)], code=1)
            self.assertIn("the state 'a' gets the old value of another one, which gets its old value; leave out one of the two", said)

    def test_open_sizes(self):
        """A session holds its states from the start: their sizes cannot be what a run brings."""
        row = f'tensor<?x{DIM}xf32, #dmir.dims<"n">>'
        text = RECURRENT.replace(f"tensor<1x{DIM}xf32>", row)
        self.assertIn("a session holds states of fixed sizes; fix --dim n=N ", self.compile(text, "--state", "h=next", code=1))
        past, all_rows = (f'tensor<?x{DIM}xf32, #dmir.dims<"{dim}">>' for dim in ("past", "past + 1"))
        grows = (f'func.func @main(%x: tensor<1x{DIM}xf32> {{dmir.name = "x"}}, %p: {past} {{dmir.name = "p"}}) -> ({all_rows} {{dmir.name = "q"}}) {{\n'
                 f"  %q = dmir.concat %p, %x {{axis = 0 : i64}} : ({past}, tensor<1x{DIM}xf32>) -> {all_rows}\n  return %q : {all_rows}\n}}\n")
        self.assertIn("the state has 'past' rows, none at first; say for how many there is to be room: --dim past=0..N ",
                      self.compile(grows, "--state", "p=q", code=1))

    def test_a_cache_called_as_its_counter(self):
        for target, tolerance in self.targets():
            with self.subTest(target=target):
                self.compile(decoder_model().replace('"pk"', '"rows"'), *target, "--state", "rows=nk", "--state", "pv=nv")
                session, oracle = self.open(), Decoder()
                for row in self.rows[:ROWS]:
                    self.expect_near(session.run(row), oracle.step(row), tolerance)

    def test_errors(self):
        for arguments, message in ((["--state", "pk=nx"], "no output 'nx'"), (["--state", "p=nk"], "no input 'p'"),
                                   (["--state", "x=nk"], "must be equal"),
                                   (["--state", "pk=nk", "--state", "pk=nv"], "is a state already")):
            self.assertIn(message, self.compile(decoder_model(), *arguments, code=1))
        self.assertIn("INPUT=OUTPUT", self.compile(decoder_model(), "--state", "pk", code=2))
        row = f"tensor<{ROWS}x{DIM}xf32>"
        reader = f"  %e = dmir.exp %nk : ({row}) -> {row}\n"
        model = decoder_model(reader).replace("dmir.transpose %nk", "dmir.transpose %e")
        self.assertIn("of which rows may not be there yet", self.compile(model, "--state", "pk=nk", code=1))

    def test_contracts_may_be_required(self):
        golden = pathlib.Path(__file__).resolve().parents[3] / "schemas/golden/format-1.1.bundle"
        dmxrt.Session(golden, library=LIBRARY).close()
        with self.assertRaisesRegex(dmxrt.Error, "compile the model again"):
            dmxrt.Session(golden, library=LIBRARY, require_contracts=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
