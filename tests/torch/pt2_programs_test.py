#!/usr/bin/env python3
"""Exported PyTorch programs written here: messages, bodies, kinds of files. Usage: pt2_programs_test.py BIN LIBDMXRT FILES [unittest arguments]: see pt2_case.py."""
import copy
import json

from pt2_case import BIN, LIBRARY, ProgramCase, main, np, run
import dmxrt
import pt2file


class Programs(ProgramCase):
    """What an exported program may hold, and what is said of what it may not."""

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

    def test_what_only_assertions_read_is_left_out(self):
        """Whatever it is: operators that are unknown here, complex types, conditions that a run decides."""
        program = self.program("torch.ops.aten.relu.default", {"self": self.X})
        given = lambda name, kind="as_tensor": {kind: {"name": name}}
        program.node("torch.ops.aten.unheard_of.default", {"self": self.X}, [given("all")])
        program.node("torch.ops.aten.item.default", {"self": given("all")}, [{"as_sym_bool": {"as_name": "flag"}}])
        program.node("torch.sym_ite", {"b": {"as_sym_bool": {"as_name": "flag"}}, "t": {"as_int": 1}, "f": {"as_int": 0}}, [{"as_sym_int": {"as_name": "one"}}])
        program.node("torch.ops.aten._assert_scalar.default", {"self": {"as_sym_int": {"as_name": "one"}}, "assert_msg": {"as_string": "no"}}, [])
        program.node("torch.ops.aten._assert_tensor_metadata.default", {"a": self.X, "dtype": {"as_scalar_type": 10}}, [])
        self.compile_program(program)
        x = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
        self.close(*self.run_bundle({"x": x}).values(), np.maximum(x, 0), "relu")
        program.output("all")
        self.assertIn("the operator is unknown", self.compile_program(program, code=1))

    def test_results_have_the_names_of_their_tree(self):
        leaf = {"type": None, "context": None, "children_spec": []}
        several = lambda kind, context, count, child=leaf: {"type": kind, "context": json.dumps(context), "children_spec": [child] * count}
        pair = several("builtins.list", None, 2)
        cases = ((several("builtins.tuple", None, 4), ["out0", "out1", "out2", "out3"]), (several("builtins.dict", ["a", "b", "c", 3], 4), ["a", "b", "c", "out3"]),
                 (several("cache", [["key_cache", "value_cache"], [None, None]], 2, pair), ["key_cache.0", "key_cache.1", "value_cache.0", "value_cache.1"]),
                 (several("collections.defaultdict", {"default_factory_name": "list", "dict_context": ["x", "y"]}, 2, pair), ["x.0", "x.1", "y.0", "y.1"]),
                 (several("strange", [[None, 1.5], {}], 2, pair), ["out0.0", "out0.1", "out1.0", "out1.1"]))
        for tree, names in cases:
            program = self.program("torch.ops.aten.relu.default", {"self": self.X}, results=[{"as_tensor": {"name": "y"}}])
            for i in range(3):
                program.node("torch.ops.aten.neg.default", {"self": self.X}, [{"as_tensor": {"name": f"n{i}"}}])
                program.output(f"n{i}")
            program.tree = tree
            self.compile_program(program)
            self.assertEqual(list(self.run_bundle({"x": np.ones((2, 3), np.float32)})), names)

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
                                    "torch.ops.higher_order.wrap_with_autocast")):
            program.node(target, {"self": self.X}, [{"as_tensor": {"name": f"y{i}"}}])
        program.node("torch.ops.aten.relu.default", {"self": {"as_tensor": {"name": "y0"}}}, [{"as_tensor": {"name": "z"}}])
        for output in ("z", "y1", "y2", "y3"):
            program.output(output)
        text = self.compile_program(program, code=1)
        self.assertEqual(text.count(" error: "), 4, text)
        for part in ("random numbers", "the operator is unknown", "ep.run_decompositions()", "other libraries", "'wrap_with_autocast' is not known", "without torch.autocast"):
            self.assertIn(part, text)

    def test_no_decomposition_is_named_where_torch_has_none(self):
        for target in ("_sparse_mm.default", "pin_memory.default", "special_gammainc.default", "igamma.default", "cov.default", "_convolution.deprecated"):
            text = self.compile_program(self.program("torch.ops.aten." + target, {"self": self.X}), code=1)
            self.assertIn("[op-unsupported]", text, target)
            self.assertNotIn("run_decompositions", text)

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

    def test_an_assertion_between_tokens(self):
        """What run_decompositions makes of torch.linalg.inv: the check of its info is ordered by tokens, and left out here."""
        program = pt2file.Program()
        program.input("token", "f32", [])
        program.specs[0] = {"token": {"arg": {"name": "token"}}}
        program.input("x", "f32", [2, 2])
        program.node("torch.ops.aten.linalg_inv_ex.default", {"A": self.X}, [{"as_tensor": {"name": "y"}}, {"as_tensor": {"name": "info"}}])
        arguments = ({"as_tensor": {"name": "token"}}, {"as_operator": "torch.ops.aten._linalg_check_errors.default"}, {"as_tensor": {"name": "info"}},
                     {"as_string": "linalg.inv"}, {"as_bool": False})
        program.nodes.append({"target": "torch.ops.higher_order.with_effects", "metadata": {}, "outputs": [{"as_tensor": {"name": "after"}}, {"as_none": True}],
                              "inputs": [{"name": "", "arg": argument} for argument in arguments]})
        program.output("after", "token")
        program.output("y")
        self.compile_program(program)
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            got = session.run(x=np.array([[2, 0], [0, 4]], np.float32))
            self.close(got["out0"], np.array([[0.5, 0], [0, 0.25]], np.float32), "an inverse")
        program.nodes[1]["inputs"][1]["arg"]["as_operator"] = "torch.ops.aten.neg.default"
        self.assertIn("'as_operator' has no tensor meaning", self.compile_program(program, code=1))

    def test_arguments_without_a_meaning(self):
        cases = (("quantile.scalar", {"q": {"as_float": 1.5}}, [4], "q must lie in [0, 1]"),
                 ("quantile.scalar", {"q": {"as_float": 0.5}, "interpolation": {"as_string": "cubic"}}, [4], "the interpolation 'cubic' is unknown"),
                 ("kthvalue.default", {"k": {"as_int": 5}}, [4], "k is 5, but must lie in [1, 4]"),
                 ("polygamma.default", {"n": {"as_int": 30}}, [4], "the order 30 is not in [0, 20]"),
                 ("mvlgamma.default", {"p": {"as_int": 0}}, [4], "p is 0, but must lie in [1, 64]"),
                 ("median.default", {}, [0], "the axis has no elements"),
                 ("bincount.default", {}, [2, 2], "bincount takes a vector"),
                 ("histogram.bin_ct", {"bins": {"as_int": 0}}, [4], "bins is 0"),
                 ("gradient.scalarint", {"edge_order": {"as_int": 3}}, [4], "edge_order is 1 or 2"),
                 ("gradient.scalarint", {}, [1], "an axis needs more elements than edge_order"),
                 ("gradient.tensorarray", {"spacing": {"as_tensors": [{"name": "x"}]}, "dim": {"as_ints": [0]}}, [4, 4], "a line of its length"),
                 ("repeat_interleave.self_Tensor", {"repeats": self.X, "dim": {"as_int": 1}}, [3, 3], "repeats is a number or a vector"),
                 ("renorm.default", {"p": {"as_int": 2}, "dim": {"as_int": 0}, "maxnorm": {"as_int": 1}}, [4], "two axes or more"),
                 ("im2col.default", {"kernel_size": {"as_ints": [9, 2]}, "dilation": {"as_ints": [1, 1]}, "padding": {"as_ints": [1, 0]},
                                     "stride": {"as_ints": [1, 1]}}, [1, 2, 6, 6], "a window of 9 does not fit into the padded axis of 8"),
                 ("tensordot.default", {"other": self.X, "dims_self": {"as_ints": [0]}, "dims_other": {"as_ints": [1]}}, [2, 3], "axes of 2 and 3"),
                 ("hsplit.int", {"sections": {"as_int": 4}}, [2, 6], "an axis of 6 does not divide into 4 sections"),
                 ("linalg_norm.default", {"ord": {"as_int": 3}}, [2, 3], "matrices have norms of the orders 1, 2"),
                 ("inverse.default", {}, [2, 3], "expected square matrices"),
                 ("linalg_eigvalsh.default", {}, [300, 300], "with a side of up to 256"),
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

    def test_samples_of_vmap(self):
        """Operators between see one sample: elementwise ones together, others one by one, 20 and more in a loop."""
        call = lambda name, *arguments: {"target": f"torch._functorch.predispatch.{name}", "metadata": {}, "outputs": [{"as_none": True}],
                                         "inputs": [{"name": "", "arg": {"as_int": a} if isinstance(a, int) else {"as_tensor": {"name": a}}} for a in arguments]}
        gives = lambda name, result, *arguments: call(name, *arguments) | {"outputs": [{"as_tensor": {"name": result}}]}
        for count in (5, 24):
            program = pt2file.Program()
            program.input("x", "f32", [3, count]), program.input("y", "f32", [4, 3])
            program.nodes += [call("lazy_load_decompositions"), call("_vmap_increment_nesting", count), gives("_add_batch_dim", "a", "x", 1, 1),
                              call("_vmap_increment_nesting", 4), gives("_add_batch_dim", "b", "y", -2, 2)]
            self.steps(program, ("mul.Tensor", "c", {"self": "b", "other": "a"}), ("softmax.int", "d", {"self": "c", "dim": 0}),
                       ("cat.default", "e", {"tensors": {"as_tensors": [{"name": "d"}, {"name": "a"}]}}))
            program.nodes += [gives("_remove_batch_dim", "f", "e", 2, 4, -1), call("_vmap_decrement_nesting"), gives("_remove_batch_dim", "g", "f", 1, count, 0)]
            program.output("g")
            self.compile_program(program)
            x, y = np.random.default_rng(1).standard_normal((3, count)).astype(np.float32), np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
            products = np.exp(x.T[:, None] * y)
            whole = np.concatenate([products / products.sum(-1, keepdims=True), np.broadcast_to(x.T[:, None], (count, 4, 3))], -1)
            self.close(*self.run_bundle({"x": x, "y": y}).values(), whole.swapaxes(1, 2), "samples")
        program.output("z")
        for node, said in ((call("_grad_increment_nesting"), "only vmap"), (gives("_add_batch_dim", "z", "x", 7, 1), "axis 7"),
                           (gives("_add_batch_dim", "z", 3, 0, 1), "must be a tensor"), (gives("_remove_batch_dim", "z", "a", 1), "number of samples is missing")):
            program.nodes[3] = node
            self.assertIn(said, self.compile_program(program, code=1))

    def test_over_the_first_axis(self):
        """torch.scan and torch.map over as many elements as a run brings."""
        rows = ["Symbol('s0', positive=True, integer=True)", 3]
        lists = {name: {"as_tensors": [{"name": name}]} for name in ("start", "x", "by")}
        inner = {"carry": [3], "row": [3], "by": [3]}
        summed = self.inner(inner, ["next", "scaled"], ("add.Tensor", "next", {"self": "carry", "other": "row"}),
                            ("mul.Tensor", "scaled", {"self": "next", "other": "by"}))
        scaled = self.inner({"row": [3], "by": [3]}, ["y"], ("mul.Tensor", "y", {"self": "row", "other": "by"}))
        program = pt2file.Program()
        for name, shape in (("start", [3]), ("x", rows), ("by", [3])):
            program.input(name, "f32", shape)
        program.ranges["s0"] = {"min_val": 1, "max_val": 8}
        self.higher_order(program, "scan", ["last", "sums"], summed, lists["start"], lists["x"], lists["by"])
        self.higher_order(program, "map_impl", ["mapped"], scaled, lists["x"], lists["by"])
        for output in ("last", "sums", "mapped"):
            program.output(output)
        self.compile_program(program)
        for n in (1, 5):
            start, x, by = (np.random.default_rng(n).standard_normal(shape).astype(np.float32) for shape in ((3,), (n, 3), (3,)))
            last, sums, mapped = self.run_bundle({"start": start, "x": x, "by": by}).values()
            sum_of_rows = start + np.cumsum(x, 0)
            for got, expected, what in ((last, sum_of_rows[-1], "last"), (sums, sum_of_rows * by, "sums"), (mapped, x * by, "mapped")):
                self.close(got, expected, what)
        for change, part in ((lambda node: node["inputs"].pop(), "a graph and three lists"),
                             (lambda node: node["inputs"][2].update(arg={"as_tensors": []}), "no tensor to go over"),
                             (lambda node: node["inputs"][2].update(arg={"as_tensors": [{"name": "x"}, {"name": "by"}]}), "inner graph has 3 inputs for 4")):
            broken = copy.deepcopy(program)
            change(broken.nodes[0])
            self.assertIn(part, self.compile_program(broken, code=1))

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

    def test_errors_in_text(self):
        relu = "%y = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>"
        for line, message in ((relu.replace("relu", "relux"), "the operator is unknown"), (relu.replace(" %x", " %z"), "use of undeclared SSA value"),
                              (relu.replace("aten.relu", "aten.rand_like"), "random numbers"), (relu.replace("torch.aten", "torch.mylib"), "none of torch's ATen"),
                              (relu.replace("aten.relu", "aten.softmax.int"), "the operand 'dim' is missing"), (relu.replace(":", ";"), "error")):
            (self.dir / "m.mlir").write_text("func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {\n" + line +
                                             "\nreturn %y : !torch.vtensor<[2],f32>\n}\n")
            self.assertIn(message, self.compile(self.dir / "m.mlir", code=1))

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
    main()
