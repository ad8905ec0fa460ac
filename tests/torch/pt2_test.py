#!/usr/bin/env python3
"""Exported PyTorch programs, compiled and run. Usage: pt2_test.py BIN LIBDMXRT FILES [unittest arguments]; FILES holds gen/, real/ and
bad/. Exit 77 where numpy or FILES is not there."""
import copy
import json
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


class Fixtures(Pt2):
    """Archives with what torch computes for them."""

    def outputs_of(self, folder, states=False):
        """The expected results that a run gives back, in order: buffers that change stay in the session."""
        paths = sorted(folder.glob("out*.npy"), key=lambda path: int(re.match(r"out(\d+)", path.name)[1]))
        return [(path.name, np.load(path)) for path in paths if states or "_buffer_mutation_" not in path.name]

    def check(self, model, folder, is_text=False):
        self.assertNotIn("warning", self.compile(model))
        inputs = self.inputs_of(folder)
        got = self.run_bundle({f"arg{i}": values for i, values in enumerate(inputs.values())} if is_text else inputs)
        expected = self.outputs_of(folder, states=is_text)
        self.assertEqual(len(got), len(expected), f"{model}: {sorted(got)}")
        for (name, values), result in zip(expected, got.values()):
            self.close(result, values, f"{model} {name}")

    def test_archives(self):
        archives = sorted((FILES / "gen").glob("*.pt2")) + [FILES / "real/executorch_linear.pt2"]
        self.assertEqual(len(archives), 17)
        for archive in archives:
            with self.subTest(archive=archive.name):
                self.check(archive, archive.with_suffix(""))

    def test_torch_dialect_text(self):
        """The same programs as torch-mlir writes them: what an archive keeps as state is a result there."""
        texts = sorted((FILES / "gen").glob("*/model.torch.mlir"))
        self.assertEqual(len(texts), 16)
        for text in texts:
            with self.subTest(text=text.parent.name):
                self.check(text, text.parent, is_text=True)

    def test_broken_archives(self):
        archives = sorted((FILES / "bad").glob("*.pt2"))
        self.assertEqual(len(archives), 33)
        for archive in archives:
            with self.subTest(archive=archive.name):
                result = run(BIN / "dmxc", archive, "-o", self.dir / "m.bundle", "--color", "never")
                self.assertIn(result.returncode, (1, 3), result.stderr)
                self.assertRegex(result.stderr, r"\.pt2: .*error: .{20,}")
                self.assertFalse((self.dir / "m.bundle").exists())

    def test_other_packages(self):
        text = self.compile(FILES / "real/executorch_aoti_only_b4277d6.pt2", code=1)
        self.assertIn("compiled package without an exported program", text)

    def test_joint_graph_names_its_gradients(self):
        self.compile(FILES / "gen/hello_nn_joint.pt2")
        got = self.run_bundle(self.inputs_of(FILES / "gen/hello_nn_joint"))
        self.assertEqual(sorted(got), ["grad.linear.bias", "grad.linear.weight", "loss"])

    def test_buffers_live_in_the_session(self):
        folder = FILES / "gen/buffer_mutation"
        self.compile(FILES / "gen/buffer_mutation.pt2")
        x, = self.inputs_of(folder).values()
        program = json.loads((folder / "model.json").read_text())
        first, = self.outputs_of(folder)
        weight = first[1] / (x - np.load(folder / "out1_buffer_mutation_ema.npy"))
        self.assertEqual(len(program["graph_module"]["graph"]["nodes"]), 7)
        ema = np.load(folder / "out1_buffer_mutation_ema.npy")
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            for step in range(3):
                got, = session.run(x=x).values()
                self.close(got, (x - ema) * weight, f"run {step}")
                ema = ema * np.float32(0.9) + x.mean(0) * np.float32(0.1)
            session.reset_state()
            self.close(next(iter(session.run(x=x).values())), first[1], "after a reset")

    def test_dims(self):
        archive = FILES / "gen/dynamic_batch_core.pt2"
        self.compile(archive)
        for batch in (2, 5, 64):
            x = np.random.default_rng(batch).standard_normal((batch, 4, 8)).astype(np.float32)
            whole = self.run_bundle({"x": x})
            halves = [self.run_bundle({"x": part}) for part in (x[:2], x[-2:])]
            for name, values in whole.items():
                self.close(values[:2], halves[0][name], name)
                self.close(values[-2:], halves[1][name], name)
        np.save(self.dir / "in_x.npy", np.zeros((65, 4, 8), np.float32))  # outside of what the exporter has checked
        self.assertNotEqual(run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir).returncode, 0)
        self.compile(archive, "--dim", "s77=3")
        self.assertIn("exported for 2 to 64", self.compile(archive, "--dim", "s77=1", code=2))
        self.assertIn("did you mean 's77'", self.compile(archive, "--dim", "s78=3", code=2))
        self.compile(archive, "--shape", "x=3x4x8")
        self.assertIn("fixes dim 1 to 4", self.compile(archive, "--shape", "x=3x5x8", code=2))


class Programs(Pt2):
    """Programs made here, so that these need no files."""

    def program(self, node, arguments, output="y", inputs=(("x", "f32", [2, 3]),), results=None, **more):
        program = pt2file.Program()
        for name, dtype, shape in inputs:
            program.input(name, dtype, shape)
        program.node(node, arguments, results or [{"as_tensor": {"name": output}}], **more)
        program.output(output)
        return program

    def test_what_nothing_reads_is_left_out(self):
        """Random numbers that only feed values nobody reads, as training leaves them behind."""
        program = self.program("torch.ops.aten.relu.default", {"self": self.X})
        program.node("torch.ops.aten.rand_like.default", {"self": self.X}, [{"as_tensor": {"name": "noise"}}])
        program.node("torch.ops.aten.add.Tensor", {"self": self.X, "other": {"as_tensor": {"name": "noise"}}}, [{"as_tensor": {"name": "sum"}}])
        self.compile_program(program)
        x = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
        self.close(*self.run_bundle({"x": x}).values(), np.maximum(x, 0), "relu")
        program.output("sum")
        self.assertIn("random numbers", self.compile_program(program, code=1))

    def compile_program(self, program, *arguments, code=0):
        program.write(self.dir / "m.pt2")
        return self.compile(self.dir / "m.pt2", *arguments, code=code)

    X = {"as_tensor": {"name": "x"}}

    def test_errors_name_node_module_and_source(self):
        metadata = {"stack_trace": 'File "model.py", line 12, in forward\n    return self.fc(x)', "nn_module_stack": "a,,M;b,h.0.attn,N"}
        program = self.program("torch.ops.aten.bmm.default", {"self": self.X, "mat2": self.X})
        program.nodes[0]["metadata"] = metadata
        program.nodes[0]["inputs"][1]["arg"] = {"as_int": 3}
        text = self.compile_program(program, code=1)
        for part in ("node 'y'", "torch.ops.aten.bmm.default", "in module h.0.attn", 'File "model.py", line 12', "'x' f32[2x3]"):
            self.assertIn(part, text)

    def test_arguments_are_checked(self):
        relu = "torch.ops.aten.softmax.int"
        for arguments, message in (({"self": self.X}, "'dim' is missing"), ({"self": self.X, "dim": {"as_string": "a"}}, "must be an integer"),
                                   ({"self": self.X, "dim": {"as_int": 7}}, "axis 7 is outside"),
                                   ({"self": self.X, "dim": {"as_int": 0}, "axis": {"as_int": 0}}, "no argument 'axis'"),
                                   ({"self": {"as_none": True}, "dim": {"as_int": 0}}, "must be a tensor, not None"),
                                   ({"self": self.X, "dim": {"as_int": 0}, "dtype": {"as_scalar_type": 10}}, "complex64")):
            self.assertIn(message, self.compile_program(self.program(relu, arguments), code=1))

    def test_an_input_stands_once(self):
        inputs = (("x", "f32", [2]), ("x", "f32", [2]))
        self.assertIn("the input 'x' stands twice", self.compile_program(self.program("torch.ops.aten.relu.default", {"self": self.X}, inputs=inputs), code=1))

    def test_every_problem_is_reported(self):
        program = pt2file.Program()
        program.input("x", "f32", [2])
        for i, target in enumerate(("torch.ops.aten.rand_like.default", "torch.ops.aten.unheard_of.default", "torch.ops.mylib.op.default",
                                    "torch.ops.higher_order.scan")):
            program.node(target, {"self": self.X}, [{"as_tensor": {"name": f"y{i}"}}])
        program.node("torch.ops.aten.relu.default", {"self": {"as_tensor": {"name": "y0"}}}, [{"as_tensor": {"name": "z"}}])
        for output in ("z", "y1", "y2", "y3"):
            program.output(output)
        text = self.compile_program(program, code=1)
        self.assertEqual(text.count(" error: "), 4, text)
        for part in ("random numbers", "the operator is unknown", "ep.run_decompositions()", "other libraries", "'scan' is not known", "unrolled"):
            self.assertIn(part, text)

    def test_tokens(self):
        """They order effects, and have no value that could be read."""
        program = pt2file.Program()
        program.input("token", "f32", [])
        program.specs[0] = {"token": {"arg": {"name": "token"}}}
        program.input("x", "f32", [2])
        program.node("torch.ops.aten.neg.default", {"self": self.X}, [{"as_tensor": {"name": "y"}}])
        program.output("token", "token")
        program.output("y")
        self.compile_program(program)
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            got = session.run(x=np.array([1, -2], np.float32))
            self.assertEqual(list(got), ["out0"])
            self.close(got["out0"], np.array([-1, 2], np.float32), "a program with a token")
        program.nodes[0]["inputs"][0]["arg"] = {"as_tensor": {"name": "token"}}
        self.assertIn("'self' must be a tensor, not None", self.compile_program(program, code=1))

    def test_parts_of_open_sizes(self):
        """Equal by arithmetic, or a refusal that says what to do."""
        def parts(target, size, **more):
            program = pt2file.Program()
            program.input("x", "f32", [2, size])
            program.ranges = {"s": {"min_val": 1, "max_val": 1000}}
            outputs = [{"as_tensor": {"name": f"p{i}"}} for i in range(3)]
            program.node(target, {"self": self.X, "dim": {"as_int": 1}, **more}, [{"as_tensors": [output["as_tensor"] for output in outputs]}])
            for i in range(3):
                program.output(f"p{i}")
            return program
        x = np.random.default_rng(0).standard_normal((2, 12)).astype(np.float32)
        s = {"as_sym_int": {"as_name": "s"}}
        for program in (parts("torch.ops.aten.chunk.default", "3*s", chunks={"as_int": 3}), ):
            self.compile_program(program)
            with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
                for got, want in zip(session.run(x=x).values(), np.split(x, 3, 1)):
                    self.close(got, want, "a third")
        for target, more, message in (("chunk.default", {"chunks": {"as_int": 3}}, "an axis of s in 3 chunks, which need not be equal"),
                                      ("split.Tensor", {"split_size": {"as_int": 4}}, "an axis of s in parts of 4: how many there are is not known")):
            text = self.compile_program(parts("torch.ops.aten." + target, "s", **more), code=1)
            self.assertIn(message, text)
            self.assertIn("--dim NAME=NUMBER", text)

    def test_arguments_without_a_meaning(self):
        cases = (("quantile.scalar", {"q": {"as_float": 1.5}}, [4], "q must lie in [0, 1]"),
                 ("quantile.scalar", {"q": {"as_float": 0.5}, "interpolation": {"as_string": "cubic"}}, [4], "the interpolation 'cubic' is unknown"),
                 ("im2col.default", {"kernel_size": {"as_ints": [9, 2]}, "dilation": {"as_ints": [1, 1]}, "padding": {"as_ints": [1, 0]},
                                     "stride": {"as_ints": [1, 1]}}, [1, 2, 6, 6], "a window of 9 does not fit into the padded axis of 8"),
                 ("tensordot.default", {"other": self.X, "dims_self": {"as_ints": [0]}, "dims_other": {"as_ints": [1]}}, [2, 3], "axes of 2 and 3"),
                 ("hsplit.int", {"sections": {"as_int": 4}}, [2, 6], "an axis of 6 does not divide into 4 sections"),
                 ("linalg_norm.default", {"ord": {"as_int": 2}}, [2, 3], "needs singular values"),
                 ("cross.default", {"other": self.X}, [2, 4], "no axis has three elements"))
        for target, arguments, shape, message in cases:
            program = self.program("torch.ops.aten." + target, {"self": self.X, **arguments}, inputs=(("x", "f32", shape),))
            text = self.compile_program(program, code=1)
            self.assertIn(message, text)
            self.assertEqual(text.count(" error: "), 1, text)
        for mode, padding in ((7, 0), (0, 5)):
            program = self.program("torch.ops.aten.grid_sampler.default", {
                "input": self.X, "grid": {"as_tensor": {"name": "g"}}, "interpolation_mode": {"as_int": mode}, "padding_mode": {"as_int": padding},
                "align_corners": {"as_bool": False}}, inputs=(("x", "f32", [1, 1, 4, 4]), ("g", "f32", [1, 2, 2, 2])))
            self.assertIn("the mode is unknown", self.compile_program(program, code=1))

    def test_in_place_through_other_parts(self):
        """A column written by way of hsplit, and through a slice of a slice."""
        program = pt2file.Program()
        program.input("x", "f32", [2, 6])
        self.steps(program, ("clone.default", "c", {"self": "x"}))
        program.node("torch.ops.aten.hsplit.int", {"self": {"as_tensor": {"name": "c"}}, "sections": {"as_int": 2}},
                     [{"as_tensors": [{"name": "left"}, {"name": "right"}]}])
        self.steps(program, ("mul_.Tensor", "w", {"self": "right", "other": 2}), ("neg.default", "y", {"self": "c"}))
        program.output("y")
        self.compile_program(program)
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            want = x.copy()
            want[:, 3:] *= 2
            self.close(session.run(x=x)["out0"], -want, "half of the columns")

    def test_in_place_where_a_copy_is_no_matter(self):
        """A reshape of a slice may be a copy or not. Where nothing else of its storage is read, that is all one."""
        def program(*, read):
            result = pt2file.Program()
            result.input("x", "f32", [2, 6])
            self.steps(result, ("neg.default", "c", {"self": "x"}), ("slice.Tensor", "part", {"self": "c", "dim": 1, "start": 1, "end": 5}),
                       ("reshape.default", "turned", {"self": "part", "shape": {"as_ints": [4, 2]}}),
                       ("slice.Tensor", "tail", {"self": "turned", "dim": 0, "start": 1, "end": 4}), ("mul_.Scalar", "w", {"self": "tail", "other": 3}),
                       ("abs.default", "y", {"self": read}))
            result.output("y")
            return result
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        want = -x[:, 1:5].reshape(4, 2)
        want[1:] *= 3
        for read, part in (("turned", want), ("tail", want[1:]), ("w", want[1:])):
            self.compile_program(program(read=read))
            with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
                self.close(session.run(x=x)["out0"], np.abs(part), read)
        for read in ("part", "c"):
            self.assertIn("unless it is a copy", self.compile_program(program(read=read), code=1))

    def test_in_place_operators(self):
        program = pt2file.Program()
        program.input("x", "f32", [3])
        program.tensor("total", "buffer", "f32", [3], np.array([1, 2, 3], np.float32).tobytes())
        program.node("torch.ops.aten.add_.Tensor", {"self": {"as_tensor": {"name": "total"}}, "other": self.X}, [{"as_tensor": {"name": "add_"}}])
        program.node("torch.ops.aten.mul.Tensor", {"self": {"as_tensor": {"name": "total"}}, "other": {"as_int": 2}}, [{"as_tensor": {"name": "mul"}}])
        program.output("mul")
        self.compile_program(program)
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            total, x = np.array([1, 2, 3], np.float32), np.array([1, 1, 2], np.float32)
            for _ in range(3):
                total = total + x
                got, = session.run(x=x).values()
                self.close(got, total * 2, "a running total")

    def steps(self, program, *calls):
        """Appends calls (overload, result, arguments); text is the name of a tensor, a number an integer."""
        for target, result, arguments in calls:
            given = {n: {"as_tensor": {"name": a}} if isinstance(a, str) else {"as_int": a} if isinstance(a, int) else a for n, a in arguments.items()}
            results = [{"as_tensors": [{"name": r} for r in result]}] if isinstance(result, list) else [{"as_tensor": {"name": result}}]
            program.node("torch.ops.aten." + target, given, results)

    def test_in_place_on_parts(self):
        """Through each kind of view, and seen by views made before."""
        program = pt2file.Program()
        program.input("x", "f32", [4, 3])
        self.steps(program, ("clone.default", "all", {"self": "x"}), ("transpose.int", "turned", {"self": "all", "dim0": 0, "dim1": 1}),
                   ("select.int", "row", {"self": "all", "dim": 0, "index": 1}), ("slice.Tensor", "part", {"self": "row", "dim": 0, "start": 1, "end": 3}),
                   ("add_.Scalar", "a1", {"self": "part", "other": 10}), ("mul_.Scalar", "a2", {"self": "turned", "other": 2}),
                   ("view.default", "flat", {"self": "all", "size": {"as_ints": [12]}}),
                   ("slice.Tensor", "tail", {"self": "flat", "dim": 0, "start": 9, "end": 9223372036854775807}),
                   ("copy_.default", "a3", {"self": "tail", "src": "row"}), ("split.Tensor", ["upper", "lower"], {"self": "all", "split_size": 2, "dim": 0}),
                   ("unsqueeze.default", "line", {"self": "upper", "dim": 0}), ("sub_.Scalar", "a4", {"self": "line", "other": 1}),
                   ("permute.default", "order", {"self": "lower", "dims": {"as_ints": [1, 0]}}), ("neg_.default", "a5", {"self": "order"}),
                   ("detach.default", "seen", {"self": "all"}), ("dropout.default", "kept", {"input": "seen", "p": {"as_float": 0.5}, "train": {"as_bool": False}}),
                   ("to.dtype", "copied", {"self": "kept", "dtype": {"as_scalar_type": pt2file.SCHEMA["f32"]}, "copy": {"as_bool": True}}),
                   ("add_.Scalar", "a7", {"self": "copied", "other": 100}), ("relu_.default", "a6", {"self": "kept"}))
        for name in ("all", "turned", "part", "a2", "a4", "flat"):
            program.output(name)
        self.compile_program(program)
        x = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
        whole = x.copy()
        turned, row, part = whole.T, whole[1], whole[1, 1:3]
        part += 10
        turned *= 2
        whole.reshape(12)[9:] = row
        whole[:2] -= 1
        whole[2:] *= -1
        np.maximum(whole, 0, out=whole)
        for got, expected in zip(self.run_bundle({"x": x}).values(), (whole, turned, part, turned, whole[None, :2], whole.reshape(12)), strict=True):
            self.close(got, expected, "in place")

    def test_a_cache_written_in_place(self):
        """As exporters write `cache[:, at] = x` and `cache[:, 0] = y` without run_decompositions()."""
        program = pt2file.Program()
        program.input("x", "f32", [2, 1, 3])
        program.input("at", "i64", [1])
        program.tensor("cache", "buffer", "f32", [2, 4, 3], bytes(96))
        self.steps(program, ("slice.Tensor", "rows", {"self": "cache", "dim": 0}),
                   ("index_put_.default", "put", {"self": "rows", "values": "x", "indices": {"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "at"}}]}}),
                   ("select.int", "first", {"self": "cache", "dim": 1, "index": 0}), ("fill_.Scalar", "filled", {"self": "first", "value": 7}),
                   ("sum.dim_IntList", "y", {"self": "cache", "dim": {"as_ints": [1]}}))
        program.output("y")
        self.compile_program(program)
        cache = np.zeros((2, 4, 3), np.float32)
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            for at in (1, 3, 1, 0):
                x = np.random.default_rng(at).standard_normal((2, 1, 3)).astype(np.float32)
                cache[:, [at]] = x
                cache[:, 0] = 7
                got, = session.run(x=x, at=np.array([at])).values()
                self.close(got, cache.sum(1), f"at {at}")

    def test_in_place_that_is_refused(self):
        inner = pt2file.Program()
        inner.input("arg", "f32", [2, 3])
        self.steps(inner, ("add_.Scalar", "changed", {"self": "arg", "other": 1}))
        inner.output("changed")
        graph = {"as_graph": {"name": "g", "graph": inner.json()["graph_module"]["graph"]}}
        for calls, message in ((((("reshape.default", "r", {"self": "x", "shape": {"as_ints": [6]}}), ("add_.Scalar", "a", {"self": "r", "other": 1}))), "unless it is a copy"),
                               ((("expand.default", "r", {"self": "x", "size": {"as_ints": [2, 2, 3]}}), ("add_.Scalar", "a", {"self": "r", "other": 1})), "not known here"),
                               ((("flatten.using_ints", "r", {"self": "x"}), ("add_.Scalar", "a", {"self": "x", "other": 1}), ("relu.default", "b", {"self": "r"})), "may be a copy")):
            program = pt2file.Program()
            program.input("x", "f32", [2, 3])
            self.steps(program, *calls)
            program.output(calls[-1][1])
            text = self.compile_program(program, code=1)
            self.assertIn(message, text)
            self.assertIn("run_decompositions", text)
        program = pt2file.Program()
        program.input("x", "f32", [2, 3])
        program.nodes.append({"target": "torch.ops.higher_order.wrap_with_set_grad_enabled", "metadata": {}, "outputs": [{"as_tensors": [{"name": "y"}]}],
                              "inputs": [{"name": "", "arg": argument} for argument in ({"as_bool": False}, graph, self.X)]})
        program.output("y")
        self.assertIn("a value of the graph around it", self.compile_program(program, code=1))

    def test_a_body_without_autocast(self):
        """Models switch it off around what needs f32; where it is on, it picks the types of operators."""
        for enabled in (False, True):
            program, inner = pt2file.Program(), pt2file.Program()
            program.input("x", "f32", [2, 3])
            inner.input("arg", "f32", [2, 3])
            self.steps(inner, ("sin.default", "wave", {"self": "arg"}))
            inner.output("wave")
            graph = {"as_graph": {"name": "body", "graph": inner.json()["graph_module"]["graph"]}}
            settings = ({"as_string": "cpu"}, {"as_scalar_type": 13}, {"as_bool": enabled}, {"as_bool": False})
            program.nodes.append({"target": "torch.ops.higher_order.wrap_with_autocast", "metadata": {}, "outputs": [{"as_tensor": {"name": "y"}}],
                                  "inputs": [{"name": "", "arg": argument} for argument in (*settings, graph, self.X)]})
            program.output("y")
            text = self.compile_program(program, code=int(enabled))
            if enabled:
                self.assertIn("export without torch.autocast", text)
                continue
            x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
            self.close(self.run_bundle({"x": x})["out0"], np.sin(x), "y")

    def inner(self, inputs, outputs, *steps):
        """A graph as an argument: inputs by their shapes, outputs and steps by name."""
        inner = pt2file.Program()
        for name, shape in inputs.items():
            inner.input(name, "f32", shape)
        self.steps(inner, *steps)
        for name in outputs:
            inner.output(name)
        return {"as_graph": {"name": "inner", "graph": inner.json()["graph_module"]["graph"]}}

    def higher_order(self, program, hop, outputs, *arguments):
        program.nodes.append({"target": f"torch.ops.higher_order.{hop}", "metadata": {}, "outputs": [{"as_tensors": [{"name": name} for name in outputs]}],
                              "inputs": [{"name": "", "arg": argument} for argument in arguments]})

    def test_a_branch(self):
        """torch.cond of a value, of a constant, and with branches that differ."""
        line, lists = {"a": ["Symbol('s0', positive=True, integer=True)", 3]}, {"as_tensors": [{"name": "x"}]}
        wave, same = self.inner(line, ["wave"], ("sin.default", "wave", {"self": "a"})), self.inner(line, ["kept"], ("relu.default", "kept", {"self": "a"}))
        program = pt2file.Program()
        program.input("x", "f32", line["a"])
        program.ranges["s0"] = {"min_val": 2, "max_val": 8}
        self.steps(program, ("sum.default", "total", {"self": "x"}), ("gt.Scalar", "positive", {"self": "total", "other": 0}))
        self.higher_order(program, "cond", ["y"], {"as_tensor": {"name": "positive"}}, wave, same, lists)
        self.higher_order(program, "cond", ["z"], {"as_bool": False}, wave, same, lists)
        program.output("y")
        program.output("z")
        self.compile_program(program)
        for n, sign in ((2, 1), (5, -1)):
            x = sign * np.abs(np.random.default_rng(n).standard_normal((n, 3))).astype(np.float32)
            y, z = self.run_bundle({"x": x}).values()
            self.close(y, np.sin(x) if sign > 0 else np.maximum(x, 0), f"y of {sign}")
            self.close(z, np.maximum(x, 0), "z")
        for change, part in ((lambda node: node["inputs"].pop(), "inner graph has 1 inputs for 0 operands"),
                             (lambda node: node["inputs"].pop(2), "a condition, two graphs"),
                             (lambda node: node["inputs"][0].update(arg={"as_tensor": {"name": "x"}}), "not one bool"),
                             (lambda node: node["inputs"][2].update(arg=self.inner(line, ["k"], ("sum.default", "k", {"self": "a"}))), "agree in type and rank")):
            broken = copy.deepcopy(program)
            change(broken.nodes[2])
            self.assertIn(part, self.compile_program(broken, code=1))

    def test_a_loop(self):
        """torch.while_loop: doubles until the sum is large; what no round changes is passed behind."""
        shapes = {"v": [2, 2], "by": [2, 2]}
        goes_on = self.inner(shapes, ["small"], ("sum.default", "total", {"self": "v"}), ("lt.Scalar", "small", {"self": "total", "other": 100}))
        doubled = self.inner(shapes, ["next"], ("mul.Tensor", "next", {"self": "v", "other": "by"}))
        program = pt2file.Program()
        program.input("x", "f32", [2, 2])
        program.input("by", "f32", [2, 2])
        self.higher_order(program, "while_loop", ["y"], goes_on, doubled, {"as_tensors": [{"name": "x"}]}, {"as_tensors": [{"name": "by"}]})
        program.output("y")
        self.compile_program(program)
        for start in (1, 7, 200):
            expected = np.full((2, 2), start, np.float32)
            while expected.sum() < 100:
                expected = expected * 2
            got, = self.run_bundle({"x": np.full((2, 2), start, np.float32), "by": np.full((2, 2), 2, np.float32)}).values()
            np.testing.assert_array_equal(got, expected)
        broken = copy.deepcopy(program)
        broken.nodes[0]["inputs"][1]["arg"] = self.inner(shapes, ["next"], ("unheard_of.default", "next", {"self": "v"}))
        text = self.compile_program(broken, code=1)
        self.assertEqual(text.count(" error: "), 1, text)
        self.assertIn("the operator is unknown", text)
        program.nodes[0]["inputs"].pop(1)
        self.assertIn("two graphs and two lists", self.compile_program(program, code=1))

    def test_in_place_forms_call_their_argument_self(self):
        program = pt2file.Program()
        program.input("x", "f32", [2, 3])
        self.steps(program, ("relu.default", "r", {"self": "x"}),
                   ("dropout_.default", "d", {"self": "r", "p": {"as_float": 0.5}, "train": {"as_bool": False}}))
        program.output("d")
        self.compile_program(program)
        x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
        self.close(self.run_bundle({"x": x})["out0"], np.maximum(x, 0), "d")

    def test_changed_inputs_are_results(self):
        program = pt2file.Program()
        program.input("x", "f32", [2, 3])
        self.steps(program, ("add_.Scalar", "a", {"self": "x", "other": 1}), ("relu.default", "y", {"self": "x"}))
        program.output("y")
        self.compile_program(program)
        x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
        got = self.run_bundle({"x": x})
        self.close(got["mutated.x"], x + 1, "x")
        self.close(got["out0"], np.maximum(x + 1, 0), "y")

    def test_queries_that_see_no_key_give_zero(self):
        program = pt2file.Program()
        for name, dtype, shape in (("q", "f32", [2, 3, 4]), ("m", "bool", [3, 3])):
            program.input(name, dtype, shape)
        self.steps(program, ("scaled_dot_product_attention.default", "y", {"query": "q", "key": "q", "value": "q", "attn_mask": "m"}))
        program.output("y")
        self.compile_program(program)
        q, mask = np.random.default_rng(2).standard_normal((2, 3, 4)).astype(np.float32), np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0]], np.bool_)
        scores = np.where(mask, np.exp(q @ q.transpose(0, 2, 1) / 2), 0)
        expected = scores @ q / np.maximum(scores.sum(-1, keepdims=True), 1e-30)
        self.close(next(iter(self.run_bundle({"q": q, "m": mask}).values())), expected, "attention")

    def test_sizes_that_must_be_multiples(self):
        """Exporters write 2*s0 where no input has the size s0 itself."""
        program = pt2file.Program()
        size = "Symbol('s0', positive=True, integer=True)"
        program.input("x", "f32", [f"Add(Mul(Integer(2), {size}), Integer(1))", 3])
        program.ranges["s0"] = {"min_val": 2, "max_val": 8}
        program.node("torch.ops.aten.sym_size.int", {"self": self.X, "dim": {"as_int": 0}}, [{"as_sym_int": {"as_name": "n"}}])
        program.node("_operator.floordiv", {"a": {"as_sym_int": {"as_name": "n"}}, "b": {"as_int": 2}}, [{"as_sym_int": {"as_name": "half"}}])
        program.node("torch.ops.aten.slice.Tensor", {"self": self.X, "dim": {"as_int": 0}, "end": {"as_sym_int": {"as_name": "half"}}}, [{"as_tensor": {"name": "y"}}])
        program.output("y")
        self.compile_program(program)
        for n in (5, 9, 17):
            x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
            np.testing.assert_array_equal(next(iter(self.run_bundle({"x": x}).values())), x[:n // 2])
        for n in (3, 6, 19):
            np.save(self.dir / "in_x.npy", np.zeros((n, 3), np.float32))
            self.assertNotEqual(run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir).returncode, 0, n)
        self.compile_program(program, "--dim", "s0=4")
        self.assertEqual(next(iter(self.run_bundle({"x": np.zeros((9, 3), np.float32)}).values())).shape, (4, 3))
        self.compile_program(program, "--shape", "x=9x3")
        self.assertEqual(next(iter(self.run_bundle({"x": np.zeros((9, 3), np.float32)}).values())).shape, (4, 3))
        self.assertIn("dim 0 must be 2*s0 + 1", self.compile_program(program, "--shape", "x=8x3", code=2))
        program.values["x"]["sizes"][0]["as_expr"]["expr_str"] = f"Mul({size}, Symbol('s1'))"
        text = self.compile_program(program, code=2)
        self.assertIn("no size of an input tells the dim 's0'", text)
        self.assertIn("--dim s0=SIZE", text)

    def test_places_counted_from_the_end(self):
        """x[-n // 2:], x[:-n // 2] and x[-n // 2] with an open n."""
        program = pt2file.Program()
        program.input("x", "f32", ["Symbol('s0', positive=True, integer=True)", 3])
        program.ranges["s0"] = {"min_val": 2, "max_val": 32}
        number = lambda name: {"as_sym_int": {"as_name": name}}
        program.node("torch.ops.aten.sym_size.int", {"self": self.X, "dim": {"as_int": 0}}, [number("n")])
        program.node("_operator.floordiv", {"a": number("n"), "b": {"as_int": 2}}, [number("half")])
        program.node("_operator.neg", {"a": number("half")}, [number("place")])
        for op, key, name in (("slice.Tensor", "start", "last"), ("slice.Tensor", "end", "first"), ("select.int", "index", "one")):
            program.node("torch.ops.aten." + op, {"self": self.X, "dim": {"as_int": 0}, key: number("place")}, [{"as_tensor": {"name": name}}])
            program.output(name)
        self.compile_program(program)
        for n in (5, 9, 17):
            x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
            for got, expected in zip(self.run_bundle({"x": x}).values(), (x[-(n // 2):], x[:-(n // 2)], x[-(n // 2)]), strict=True):
                np.testing.assert_array_equal(got, expected)

    def test_symbolic_sizes(self):
        program = pt2file.Program()
        size = "Symbol('s0', positive=True, integer=True)"
        program.input("x", "f32", [size, f"Mul(Integer(2), {size})"])
        program.ranges["s0"] = {"min_val": 2, "max_val": None}
        program.node("torch.ops.aten.sym_size.int", {"self": self.X, "dim": {"as_int": 0}}, [{"as_sym_int": {"as_name": "n"}}])
        program.node("_operator.mul", {"a": {"as_sym_int": {"as_name": "n"}}, "b": {"as_sym_int": {"as_name": "n"}}}, [{"as_sym_int": {"as_name": "nn"}}])
        program.node("torch.ops.aten.view.default", {"self": self.X, "size": {"as_sym_ints": [{"as_int": 2}, {"as_name": "nn"}]}}, [{"as_tensor": {"name": "y"}}])
        program.node("torch.ops.aten.mul.Tensor", {"self": {"as_tensor": {"name": "y"}}, "other": {"as_sym_int": {"as_name": "n"}}}, [{"as_tensor": {"name": "z"}}])
        program.output("z")
        self.compile_program(program)
        for n in (2, 5):
            x = np.arange(2 * n * n, dtype=np.float32).reshape(n, 2 * n)
            got, = self.run_bundle({"x": x}).values()
            self.close(got, x.reshape(2, n * n) * n, f"n = {n}")
        np.save(self.dir / "in_x.npy", np.zeros((3, 5), np.float32))
        self.assertNotEqual(run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir).returncode, 0)

    def test_sizes_and_elements_as_numbers(self):
        program = pt2file.Program()
        program.input("x", "f32", [2, 3, 4])
        program.input("n", "i64", [1])
        program.input("f", "f32", [])
        tensor = {name: {"as_tensor": {"name": name}} for name in "xnf"}
        calls = (("sym_size.int", {"self": tensor["x"], "dim": {"as_int": -1}}, 4), ("sym_numel.default", {"self": tensor["x"]}, 24),
                 ("sym_stride.int", {"self": tensor["x"], "dim": {"as_int": 0}}, 12), ("sym_storage_offset.default", {"self": tensor["x"]}, 0),
                 ("item.default", {"self": tensor["n"]}, 7), ("_local_scalar_dense.default", {"self": tensor["n"]}, 7))
        for i, (target, arguments, _) in enumerate(calls):
            program.node("torch.ops.aten." + target, arguments, [{"as_sym_int": {"as_name": f"s{i}"}}])
        program.node("torch.ops.aten.item.default", {"self": tensor["f"]}, [{"as_sym_float": {"as_name": "real"}}])
        program.node("torch.sym_float", {"a": {"as_sym_int": {"as_name": "s4"}}}, [{"as_sym_float": {"as_name": "seven"}}])
        program.node("_operator.truediv", {"a": {"as_sym_float": {"as_name": "real"}}, "b": {"as_sym_float": {"as_name": "seven"}}},
                     [{"as_sym_float": {"as_name": "ratio"}}])
        program.node("torch.ops.aten._assert_scalar.default", {"self": {"as_sym_int": {"as_name": "s4"}}, "assert_msg": {"as_string": "no"}}, [])
        for i, name in enumerate([f"s{i}" for i in range(len(calls))] + ["ratio"]):
            tag = "as_sym_float" if name == "ratio" else "as_sym_int"
            program.node("torch.ops.aten.mul.Tensor", {"self": tensor["f"], "other": {tag: {"as_name": name}}}, [{"as_tensor": {"name": f"y{i}"}}])
            program.output(f"y{i}")
        self.compile_program(program)
        got = self.run_bundle({"x": np.zeros((2, 3, 4), np.float32), "n": np.array([7]), "f": np.float32(2.5)})
        np.testing.assert_allclose(list(got.values()), [2.5 * number for _, _, number in calls] + [2.5 * 2.5 / 7], rtol=1e-6)

    def test_text_of_onnx_operators(self):
        (self.dir / "m.mlir").write_text("""module {
  func.func @main(%x: !torch.vtensor<[1,2,4,4],f32>) -> (!torch.vtensor<[1,3,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>)
      attributes {torch.onnx_meta.ir_version = 8 : si64, torch.onnx_meta.opset_version = 17 : si64} {
    %none = torch.constant.none
    %w = torch.operator "onnx.Constant"() {torch.onnx.value = dense<0.5> : tensor<3x2x1x1xf32>} : () -> !torch.vtensor<[3,2,1,1],f32>
    %y = torch.operator "onnx.Conv"(%x, %w) {torch.onnx.kernel_shape = [1 : si64, 1 : si64], torch.onnx.group = 1 : si64} : (!torch.vtensor<[1,2,4,4],f32>, !torch.vtensor<[3,2,1,1],f32>) -> !torch.vtensor<[1,3,4,4],f32>
    %s:2 = torch.operator "onnx.Split"(%x) {torch.onnx.axis = 1 : si64} : (!torch.vtensor<[1,2,4,4],f32>) -> (!torch.vtensor<[1,1,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>)
    return %y, %s#0, %s#1 : !torch.vtensor<[1,3,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>, !torch.vtensor<[1,1,4,4],f32>
  }
}
""")
        if run(BIN / "dmxc", "--print-ops", "--input-format", "onnx").returncode:
            return self.assertIn("this build has no ONNX front end", self.compile(self.dir / "m.mlir", code=1))
        self.compile(self.dir / "m.mlir")
        x = np.random.default_rng(1).standard_normal((1, 2, 4, 4)).astype(np.float32)
        y, first, second = self.run_bundle({"arg0": x}).values()
        self.close(y, np.repeat(x.sum(1, keepdims=True) * 0.5, 3, 1), "Conv")
        self.close(np.concatenate([first, second], 1), x, "Split")

    def test_running_product_of_any_length(self):
        (self.dir / "m.mlir").write_text("""func.func @main(%x: !torch.vtensor<[2,?],f32>) -> !torch.vtensor<[2,?],f32> {
  %axis = torch.constant.int 1
  %none = torch.constant.none
  %y = torch.aten.cumprod %x, %axis, %none : !torch.vtensor<[2,?],f32>, !torch.int, !torch.none -> !torch.vtensor<[2,?],f32>
  return %y : !torch.vtensor<[2,?],f32>
}
""")
        self.compile(self.dir / "m.mlir")
        for length in (1, 3, 20):
            x = np.random.default_rng(length).uniform(0.5, 1.5, (2, length)).astype(np.float32)
            self.close(*self.run_bundle({"arg0": x}).values(), np.cumprod(x, 1), f"cumprod of {length}")

    def test_errors_in_text(self):
        relu = "%y = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>"
        for line, message in ((relu.replace("relu", "relux"), "the operator is unknown"), (relu.replace(" %x", " %z"), "use of undeclared SSA value"),
                              (relu.replace("aten.relu", "aten.rand_like"), "random numbers"), (relu.replace("torch.aten", "torch.mylib"), "none of torch's ATen"),
                              (relu.replace("aten.relu", "aten.softmax.int"), "the operand 'dim' is missing"), (relu.replace(":", ";"), "error")):
            (self.dir / "m.mlir").write_text("func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {\n" + line +
                                             "\nreturn %y : !torch.vtensor<[2],f32>\n}\n")
            self.assertIn(message, self.compile(self.dir / "m.mlir", code=1))

    def test_sizes_in_text(self):
        """Symbols in arithmetic, a list of sizes taken apart, a symbol that nothing tells."""
        text = """func.func @main(%x: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?],f32> {
  %s = torch.symbolic_int "s0" {min_val = 2, max_val = 64} : !torch.int
  torch.bind_symbolic_shape %x, [%s], affine_map<()[s0] -> (s0 * 2, 4)> : !torch.vtensor<[?,4],f32>
  %two = torch.constant.int 2
  %sizes = torch.prim.ListConstruct %s, %two : (!torch.int, !torch.int) -> !torch.list<int>
  %a, %b = torch.prim.ListUnpack %sizes : !torch.list<int> -> !torch.int, !torch.int
  %n = torch.aten.mul.int %a, %b : !torch.int, !torch.int -> !torch.int
  %dims = torch.aten.size %x : !torch.vtensor<[?,4],f32> -> !torch.list<int>
  %rows, %columns = torch.prim.ListUnpack %dims : !torch.list<int> -> !torch.int, !torch.int
  %all = torch.aten.mul.int %n, %columns : !torch.int, !torch.int -> !torch.int
  %shape = torch.prim.ListConstruct %all : (!torch.int) -> !torch.list<int>
  %y = torch.aten.view %x, %shape : !torch.vtensor<[?,4],f32>, !torch.list<int> -> !torch.vtensor<[?],f32>
  return %y : !torch.vtensor<[?],f32>
}
"""
        (self.dir / "m.mlir").write_text(text)
        x = np.arange(24, dtype=np.float32).reshape(6, 4)
        for options in ((), ("--dim", "s0=3")):
            self.compile(self.dir / "m.mlir", *options)
            np.testing.assert_array_equal(next(iter(self.run_bundle({"arg0": x}).values())), x.reshape(24))
        (self.dir / "m.mlir").write_text(text.replace("%s, %two :", "%u, %two :").replace("%two = ", '%u = torch.symbolic_int "u0" {} : !torch.int\n  %two = '))
        self.assertIn("no size of an argument tells this symbol", self.compile(self.dir / "m.mlir", code=1))

    def test_several_programs(self):
        program = self.program("torch.ops.aten.relu.default", {"self": self.X})
        records = program.records()
        records["models/other.json"] = records["models/model.json"]
        pt2file.write_archive(self.dir / "m.pt2", records)
        self.assertIn("several programs", self.compile(self.dir / "m.pt2", code=2))
        self.compile(self.dir / "m.pt2", "--entry", "other")
        self.assertIn("no program 'third'", self.compile(self.dir / "m.pt2", "--entry", "third", code=2))

    def test_other_kinds_of_files(self):
        for records, message in (({"data.pkl": b"", "constants.pkl": b""}, "TorchScript"), ({"data.pkl": b""}, "checkpoint"), ({"a": b""}, "did not write")):
            pt2file.write_archive(self.dir / "m.pt2", records)
            self.assertIn(message, self.compile(self.dir / "m.pt2", code=1))

    def test_operators_are_listed(self):
        rows = json.loads(run(BIN / "dmxc", "--print-ops", "--input-format", "pt2", "--format", "json").stdout)
        by_name = {row["op"]: row for row in rows}
        self.assertTrue(by_name["add.Tensor"]["imported"])
        self.assertFalse(by_name["rand.default"]["imported"])
        for row in rows:
            self.assertTrue(row["imported"] or row["note"], row)


if __name__ == "__main__":
    if not FILES.is_dir() and "Fixtures" in " ".join(sys.argv[4:]):
        print(f"SKIPPED: {FILES} is not there")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
