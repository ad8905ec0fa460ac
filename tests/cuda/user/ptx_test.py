#!/usr/bin/env python3
"""Kernels for GPUs that users wrote in PTX: an argmax over 32,000 by blocks, between kernels of ours; what is wrong with one by its file and line.
Usage: ptx_test.py BIN REPO [unittest arguments]. Exit 77 without numpy."""
import re
import subprocess
import sys
import unittest

from written import EXAMPLES, Case, find_ptxas, np

from sampling import sample, sampled

SOURCE = (EXAMPLES / "argmax.ptx").read_text()


def line_of(text, part):
    return text[: text.index(part)].count("\n") + 1


def numbers(rows, count, seed=5):
    x = np.random.default_rng(seed).standard_normal((rows, count)).astype(np.float16)
    x[0, count // 2:] = 9  # several are largest
    return x


@sampled(3)
class Argmax(Case):
    def wanted(self, x):
        return 3 * np.argmax(x, axis=1)

    def test_equal_to_numpy(self):
        self.declare()
        self.compile()
        for count, seed in ((32000, 0), (100, 1), (257, 2)):
            x = numbers(3, count)
            got = self.run_bundle({"x": x}, "--device-opt", f"cuda.sim_seed={seed}")["y"]
            np.testing.assert_array_equal(got, self.wanted(x))
        # All of it is on the device: no copy between our kernels and it.
        tasks = self.run_tool("m.bundle", "--what", "tasks", tool="dmx-inspect").stdout
        self.assertIn("user_acme_argmax", tasks)
        self.assertNotIn("cpu", tasks)
        self.assertNotIn("copy", tasks)

    def test_known_sizes(self):
        """Scalars are then numbers; a grid of none is none."""
        self.declare()
        self.compile("--dim", "b=2", "--dim", "n=1000")
        x = numbers(2, 1000)
        np.testing.assert_array_equal(self.run_bundle({"x": x})["y"], self.wanted(x))
        self.compile()
        self.assertEqual(self.run_bundle({"x": np.zeros((0, 10), np.float16)})["y"].shape, (0,))

    def test_scalars_are_expressions(self):
        """The kernel is given what the file says, and no dim besides."""
        text = SOURCE.replace("st.global.u64 [%d8], %d9", "st.global.u64 [%d8], %d3")
        (self.dir / "other.ptx").write_text(text)
        self.declare(dims={"half": "floordiv(n + 1, 2)"}, scalars=[{"value": "half + 7"}], body={"object": "other.ptx"})
        self.compile()
        np.testing.assert_array_equal(self.run_bundle({"x": numbers(2, 101)})["y"], [3 * 58] * 2)
        self.assertIn('"launch_table": 4', self.table())

    def table(self):
        return self.entries(self.dir / "m.bundle")["code/cuda/sm_90a/kernels.ptx"].decode()

    def test_texts_carry_it(self):
        self.declare()
        self.compile("--dump-phases", "p")
        whole = self.table()
        for phase, file in (("frontend", "1-frontend.mlir"), ("partition", "2-partition.mlir"), ("schedule", "4-schedule.mlir")):
            text = (self.dir / "p" / file).read_text()
            self.assertIn("launch = {block = 256", text)
            (self.dir / "t.mlir").write_text(text)
            self.compile("--from", phase, model="t.mlir", kernels=None)
            self.assertEqual(self.table(), whole)
            (self.dir / "t.mlir").write_text(text.replace("block = 256", "block = 2048"))
            done = self.compile("--from", phase, model="t.mlir", kernels=None, code=1, out="other.bundle")
            self.assertIn("the threads of its blocks are 2048", done.stderr)
            (self.dir / "t.mlir").write_text(text.replace("maps = []", "maps = [1]"))
            self.assertIn("each body must be", self.compile("--from", phase, model="t.mlir", kernels=None, code=1, out="other.bundle").stderr)

    def test_variables_of_two_kernels(self):
        """One file twice in a bundle, with variables of the module, other entries and places of its own: names do not meet."""
        text = SOURCE.replace("	.shared .align 4 .b8 value[1024];\n	.shared .align 4 .b8 place[1024];\n", "").replace(
            ".visible .entry", ".shared .align 4 .b8 value[1024];\n.extern .shared .align 4 .b8 place[];\n.global .u32 unused = 7;\n"
            ".visible .entry other() { ret; }\n.file 3 \"/somewhere/mine.py\"\n.visible .entry").replace("halve:\n", "halve:\n\t.loc 3 77 1\n")
        (self.dir / "argmax.ptx").write_text(text)
        self.declare(launch={"shared": 1024})
        self.compile("--dump-phases", "p")
        text = (self.dir / "p/2-partition.mlir").read_text()
        self.assertEqual(text.count('dmir.extern "acme.argmax"'), 1)
        nodes = self.dir / "two.mlir"
        body = '"acme.argmax"'
        frontend = (self.dir / "p/1-frontend.mlir").read_text()
        call = re.search(rf"  %\d+ = dmir.extern {body}.*\n", frontend).group(0)
        # The same kernel again, of another region: its result is added.
        again = call.replace("%", "%again", 1)
        name, second = re.match(r"  (%\d+)", call).group(1), re.match(r"  (%again\d+)", again).group(1)
        sum_ = f"  %sum = dmir.add {name}, {second} : (tensor<?xi64, #dmir.dims<\"b\">>, tensor<?xi64, #dmir.dims<\"b\">>) -> tensor<?xi64, #dmir.dims<\"b\">>\n"
        rest = frontend.split(call)[1].replace(f"{name},", "%sum,", 1)
        nodes.write_text(frontend.split(call)[0] + call + again.replace("loc(", "loc(", 1) + sum_ + rest)
        self.compile("--from", "frontend", model="two.mlir", kernels=None)
        x = numbers(3, 500)
        np.testing.assert_array_equal(self.run_bundle({"x": x})["y"], 2 * self.wanted(x))
        table = self.table()
        self.assertNotIn("somewhere", table)
        self.assertNotIn("unused", table)
        self.assertIn('"mine.py"', table)

    def test_all_parameters(self):
        """The interface of schemas/cuda/KERNELS.md: a kernel that says that it failed."""
        tail = ", .param .u64 scratch, .param .u64 share, .param .u64 results, .param .u64 status)"
        text = SOURCE.replace(".param .u64 n)", ".param .u64 n" + tail).replace(
            "done:\n", "done:\n\tld.param.u64 %d10, [status];\n\tmov.u32 %r4, 42;\n\tatom.global.cas.b32 %r5, [%d10], 0, %r4;\n")
        (self.dir / "argmax.ptx").write_text(text)
        self.declare(body={"abi": "args"})
        self.compile()
        self.assertIn("code 42", self.run_bundle({"x": numbers(2, 10)}, code=1))
        self.declare()
        (self.dir / "m.bundle").unlink()
        self.refused("the entry 'argmax' has 7 parameters; its operands, results and scalars are 3")

    def test_the_manifest_says_it(self):
        self.declare()
        self.compile()
        self.assertIn("argmax.ptx", self.run_tool("m.bundle", tool="dmx-inspect").stdout)
        self.assertIn("'acme.argmax'", self.run_bundle({"x": numbers(2, 10)}, "--no-user-code", code=5))

    def test_the_assembler_takes_it(self):
        ptxas = find_ptxas()
        if not ptxas:
            self.skipTest("there is no ptxas")
        self.declare()
        self.compile()
        (self.dir / "k.ptx").write_text(self.table())
        done = subprocess.run([ptxas, "-arch=sm_90a", "-v", self.dir / "k.ptx", "-o", self.dir / "k.cubin"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotRegex(done.stderr, "C75|[1-9][0-9]* bytes spill")


@sampled(3)
class Faults(Case):
    """What the author did wrong is found in a run, at her own line."""

    def found(self, old, new, *words):
        self.assertEqual(SOURCE.count(old), 1)
        text = SOURCE.replace(old, new)
        (self.dir / "argmax.ptx").write_text(text)
        self.declare()
        self.compile()
        said = self.run_bundle({"x": numbers(3, 1000)}, code=1)
        for word in (*words, "user_acme_argmax", "ArgMaxFast_0"):
            self.assertIn(word, said)
        return said

    def test_a_write_outside(self):
        line = line_of(SOURCE, "st.global.u64")
        self.found("st.global.u64 [%d8]", "st.global.u64 [%d8+64]", "bounds", f"(argmax.ptx:{line})")

    def test_a_write_to_an_operand(self):
        line = line_of(SOURCE, "st.global.u64")
        self.found("add.u64 %d8, %d2, %d8", "add.u64 %d8, %d1, %d8", "bounds", f"(argmax.ptx:{line})")

    def test_a_barrier_left_out(self):
        self.found("next:\n\tbar.sync 0;\n", "next:\n", "smem-race", "(argmax.ptx:")

    def test_nothing_written(self):
        self.found("setp.ne.u32 %p1, %r1, 0;\n", "setp.ge.u32 %p1, %r1, 0;\n", "unwritten")

    def test_an_instruction_that_is_none(self):
        """The runtime reads what was compiled, once, before it is said to be done."""
        (self.dir / "argmax.ptx").write_text(SOURCE.replace("shr.u32 %r8, %r8, 1", "shr.up.u32 %r8, %r8, 1"))
        self.declare()
        said = self.compile(code=1).stderr
        for word in (f"(argmax.ptx:{line_of(SOURCE, 'shr.u32')})", "'shr.up.u32' is no instruction that is known here", "acme_argmax"):
            self.assertIn(word, said)


@sampled(3)
class BadInput(Case):
    def test_launches(self):
        map_of = lambda **values: {"maps": [{"tensor": "x", "box": [64, 1], **values}]}
        for clause, launch in sample((("the threads of its blocks are 1025, and may have 1 to 1024", {"block": 1025}),
                               ("the threads of its blocks are 0, and", {"block": 0}),
                               ("the bytes of shared memory of its blocks are 232449, and may have 0 to 232448", {"shared": 232449}),
                               ("the blocks of its clusters are 9, and may have 1 to 8", {"cluster": 9}),
                               ("its grid has 3 blocks, which are no clusters of 2", {"grid": 3, "cluster": 2}),
                               ("the blocks of its grid are -1, and", {"grid": -1}),
                               ("no operand has the dim 'm'", {"grid": "m"}),
                               ("'q' is neither an operand nor a result", map_of(tensor="q")),
                               ("map 0: it reads 'x' as bf16, and that is f16; it is f16", map_of(type="bf16")),
                               ("map 0 of its launch: its box has 257 elements along axis 0, not 1 to 256", map_of(box=[257, 1])),
                               ("map 0 of its launch: its box has 14 bytes along axis 0, no multiple of 16", map_of(box=[7, 1])),
                               ("map 0 of its launch: its box has 256 bytes along axis 0, more than the 128", map_of(box=[128, 1], swizzle=128)),
                               ("map 0 of its launch: it swizzles 48 bytes, not 0, 32, 64 or 128", map_of(swizzle=48)),
                               ("map 0: its box has 1 axes, 'x' has 2", map_of(box=[64])),
                               ("'sizes' and 'strides' are given together", map_of(sizes=[1, 2])),
                               ("map 0: it has 2 sizes and 2 strides", map_of(sizes=["n", "b"], strides=["2 * n", 16])),
                               ("its stride along axis 1 is 24 bytes, no multiple of 16", map_of(sizes=["n", "b"], strides=[24])),
                               ("its steps are 1, its box has 2 axes", map_of(steps=[1])),
                               ("it takes each 9th element along axis 1", map_of(steps=[1, 9])),
                               ("it begins 8 bytes into its tensor", map_of(offset=8)),
                               ("there is no key 'blocks'; did you mean 'block'?", {"blocks": 3})), 4):
            with self.subTest(clause=clause):
                self.declare(launch=launch)
                self.refused(clause)
        self.declare(body={"launch": None})
        self.assertIn("node 'ArgMaxFast_0'", self.refused("its body for cuda has no launch"))
        self.declare(body={"features": ["sm_100a"]})
        self.refused("no body of the kernel 'acme.argmax' runs at level sm_90a", code=4)

    def test_texts(self):
        entry = ".visible .entry argmax("
        for clause, old, new in sample((("it has no entry 'argmax'; it has argmin", entry, ".visible .entry argmin("),
                                 ("line 6: the entry 'argmax' has 2 parameters; its operands, results and scalars are 3, and its maps 0", ", .param .u64 n)", ")"),
                                 ("line 6: parameter 2 is a number of 64 bits", ".param .u64 n)", ".param .u32 n)"),
                                 ("it is for sm_100a, and this bundle is for sm_90a", "sm_90a", "sm_100a"),
                                 ("it has no '.address_size 64'", ".address_size 64", ".address_size 32"),
                                 (".reqntid is 128, and its launch has blocks of 256 threads", ".param .u64 n)\n", ".param .u64 n)\n.reqntid 128, 1, 1\n"),
                                 ("blocks and clusters have one axis", ".param .u64 n)\n", ".param .u64 n)\n.reqntid 256, 2, 1\n"),
                                 ("it calls the function 'f' of line 6", entry, ".func f() { ret; }\n" + entry),
                                 ("the '{' of this line is not closed", "	ret;\n}", "	ret;\n"),
                                 ("there are two entries 'argmax'", entry, entry + ") { ret; }\n" + entry),
                                 ("'.alias' stands where a directive of PTX that is known here is wanted", entry, ".alias a, b;\n" + entry),
                                 ("line 2: 'eight' stands where a version is wanted", ".version 8.0", ".version eight"),
                                 ("line 78: '^' is no word of PTX", "ret;", "ret; ^"),
                                 ("there is no .file 3", "ret;", ".loc 3 1 1 ret;")), 3):
            with self.subTest(clause=clause):
                text = SOURCE.replace(old, new, 1)
                if "calls" in clause:
                    text = text.replace("ret;\n}", "call f;\n\tret;\n}")
                (self.dir / "argmax.ptx").write_text(text)
                self.declare()
                self.assertIn("'acme.argmax' (argmax.ptx)", self.refused(clause))
        (self.dir / "argmax.ptx").write_bytes(bytes(range(256)))
        self.refused("the kernel 'acme.argmax' (argmax.ptx): line 1: ")

    def test_a_map_in_a_run(self):
        """What depends on sizes that a run brings is checked there."""
        text = SOURCE.replace(".param .u64 n)", ".param .u64 n, .param .align 64 .b8 map[128])")
        (self.dir / "argmax.ptx").write_text(text)
        self.declare(launch={"maps": [{"tensor": "x", "box": [64, 1]}]})
        self.compile()
        x = numbers(3, 1000)
        np.testing.assert_array_equal(self.run_bundle({"x": x})["y"], 3 * np.argmax(x, axis=1))
        self.assertIn("its stride along axis 1 is 202 bytes, no multiple of 16", self.run_bundle({"x": numbers(3, 101)}, code=1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
