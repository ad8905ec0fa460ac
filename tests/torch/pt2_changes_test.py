#!/usr/bin/env python3
"""Exported PyTorch programs that change what they are given. Usage: pt2_changes_test.py BIN LIBDMXRT FILES [unittest arguments]: see pt2_case.py."""
from pt2_case import LIBRARY, ProgramCase, main, np
import dmxrt
import pt2file


class Changes(ProgramCase):
    """Operators in place."""

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

    def test_storage_that_nothing_reads(self):
        """What only fills a tensor that is made for it goes, even in ways that are refused; a view that was taken before is a reader."""
        def program(*, read):
            result = pt2file.Program()
            result.input("x", "f32", [2, 3])
            self.steps(result, ("new_zeros.default", "made", {"self": "x", "size": {"as_ints": [2, 3]}}), ("t.default", "turned", {"self": "made"}),
                       ("add_.Tensor", "filled", {"self": "made", "other": "x"}), ("neg.default", "y", {"self": read}))
            result.output("y")
            return result
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for read, want in (("x", x), ("made", x), ("filled", x), ("turned", x.T)):
            self.compile_program(program(read=read))
            with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
                self.close(session.run(x=x)["out0"], -want, read)
        strange = program(read="x")
        strange.nodes[2]["target"] = "torch.ops.aten.uniform_.default"  # random numbers, but of no one
        strange.nodes[2]["inputs"] = strange.nodes[2]["inputs"][:1]
        self.compile_program(strange)
        strange = program(read="turned")
        strange.nodes[2]["target"] = "torch.ops.aten.uniform_.default"
        strange.nodes[2]["inputs"] = strange.nodes[2]["inputs"][:1]
        self.assertIn("the operator is unknown", self.compile_program(strange, code=1))

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

    def test_in_place_on_the_shape(self):
        """transpose_ and its like: the tensor has another shape from then on, views made before keep theirs, writes reach both."""
        program = pt2file.Program()
        program.input("x", "f32", [4, 3])
        self.steps(program, ("clone.default", "all", {"self": "x"}), ("select.int", "row", {"self": "all", "dim": 0, "index": 1}),
                   ("t_.default", "turned", {"self": "all"}), ("select.int", "column", {"self": "turned", "dim": 1, "index": 2}),
                   ("mul_.Scalar", "a1", {"self": "column", "other": 5}), ("add_.Scalar", "a2", {"self": "row", "other": 10}),
                   ("unsqueeze_.default", "wide", {"self": "turned", "dim": 0}), ("transpose_.default", "moved", {"self": "wide", "dim0": 0, "dim1": 2}),
                   ("neg_.default", "a3", {"self": "moved"}), ("squeeze_.default", "flat", {"self": "moved"}), ("relu.default", "y", {"self": "flat"}))
        for name in ("y", "row", "a3", "column"):
            program.output(name)
        self.compile_program(program)
        x = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)
        whole = x.copy()
        whole[2] *= 5
        whole[1] += 10
        whole *= -1
        for got, expected in zip(self.run_bundle({"x": x}).values(), (np.maximum(whole, 0), whole[1], whole[:, :, None], whole[2]), strict=True):
            self.close(got, expected, "another shape")

    def test_in_place_through_diagonals_and_turned_axes(self):
        program = pt2file.Program()
        program.input("x", "f32", [4, 4])
        self.steps(program, ("clone.default", "all", {"self": "x"}), ("diagonal.default", "line", {"self": "all", "offset": 1}),
                   ("mul_.Scalar", "a1", {"self": "line", "other": 3}), ("movedim.int", "turned", {"self": "all", "source": 0, "destination": 1}),
                   ("select.int", "row", {"self": "turned", "dim": 0, "index": 2}), ("add_.Scalar", "a2", {"self": "row", "other": 1}),
                   ("unflatten.int", "cut", {"self": "all", "dim": 1, "sizes": {"as_ints": [2, 2]}}),
                   ("select.int", "odd", {"self": "cut", "dim": 2, "index": 1}), ("pow_.Scalar", "a3", {"self": "odd", "exponent": 2}),
                   ("fill_diagonal_.default", "a4", {"self": "all", "fill_value": 7}), ("floor_divide_.Scalar", "a5", {"self": "all", "other": 2}))
        program.output("all")
        self.compile_program(program)
        x = np.random.default_rng(2).standard_normal((4, 4)).astype(np.float32)
        whole = x.copy()
        whole[range(3), range(1, 4)] *= 3
        whole[:, 2] += 1
        whole[:, 1::2] **= 2
        np.fill_diagonal(whole, 7)
        got, = self.run_bundle({"x": x}).values()
        self.close(got, whole // 2, "a diagonal")

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


if __name__ == "__main__":
    main()
