#!/usr/bin/env python3
"""Exported PyTorch programs with sizes that a run knows. Usage: pt2_sizes_test.py BIN LIBDMXRT FILES [unittest arguments]: see pt2_case.py."""
from pt2_case import BIN, LIBRARY, ProgramCase, main, np, real, run
import dmxrt
import pt2file


class Sizes(ProgramCase):
    """Sizes that are open, computed or asked."""

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
            self.assertIn("--dim s=1 (or another size) fixes it", text)

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
        for flag in ("s0=1", "s0=0..3"):  # a least size of 2 is what the exporter writes for what it ran with no less
            self.compile_program(program, "--dim", flag)
            self.close(*self.run_bundle({"x": np.array([[3, 4]], np.float32)}).values(), np.array([[3], [4]], np.float32), flag)
        program.ranges["s0"] = {"min_val": 3, "max_val": 8}
        self.assertIn("the program was exported for 3 to 8", self.compile_program(program, "--dim", "s0=1", code=2))

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


if __name__ == "__main__":
    main()
