#!/usr/bin/env python3
"""Programs with flex_attention: torch's answers and the rule of each mask. Usage: flex_test.py BIN LIBDMXRT FILES [unittest arguments]: see
pt2_case.py. The archives are those of make_flex_cases.py."""
import copy
import pathlib

from pt2_case import BIN, LIBRARY, ProgramCase, main, np, run
import dmxrt
import pt2file

CASES = pathlib.Path(__file__).resolve().parent / "flex"
# What a reader of the case's mask_mod and score_mod would say; with what is no rule of places; None: nothing is masked.
RULES = {
    "plain": None, "nested": None,
    "causal": "j <= i", "softcap": "j <= i", "heads": "j <= i", "half": "j <= i",
    "alibi": "j <= i + rest 1 x 2 x 24 x 24", "relative": "j <= i + rest 1 x 2 x 24 x 24",
    "documents": "'flex_attention/mask/eq'[j] == 'flex_attention/mask/eq'[i] and j <= i",
    "made": "'flex_attention/mask/flat_apply_1'[j] == 'flex_attention/mask/flat_apply'[i] and j <= i",
    "window": "j <= i and i <= j + 5",
    "blind": "j <= i and 7 <= i", "by-score": "j <= i and 3 <= i", "sums": "j <= i and 2 <= i",
    "past": "j + n <= i + t",
}


class Flex(ProgramCase):
    def names(self):
        names = sorted(path.stem for path in CASES.glob("*.npz"))
        self.assertEqual(names, sorted([*RULES, "prefix"]))
        return names

    def test_answers_are_those_of_torch(self):
        for name in self.names():
            with self.subTest(case=name):
                case = np.load(CASES / f"{name}.npz")
                (self.dir / "m.pt2").write_bytes(case["model"].tobytes())
                self.compile(self.dir / "m.pt2", "--sparsity-report", self.dir / "report.txt")
                with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
                    got = session.run({key[3:]: case[key] for key in case if key.startswith("in_")})
                wanted = [case[f"out{i}"] for i in range(len(got))]
                self.assertNotIn(f"out{len(got)}", case)
                tolerance = 2e-3 if name == "half" else 2e-6
                for result, want in zip(got.values(), wanted):
                    self.assertEqual((result.dtype, result.shape), (want.dtype, want.shape))
                    np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance, err_msg=name)
                if name in RULES:
                    self.check_rule(RULES[name], (self.dir / "report.txt").read_text())

    def check_rule(self, want, report):
        lines = [line.split(None, 1) for line in report.splitlines() if line.startswith("  ")]
        found = {key: value.strip() for key, value in (line for line in lines if len(line) == 2)}
        if want is None:
            return self.assertIn("no masked attention", report)
        rule, _, rest = want.partition(" + rest ")
        for open_name, size in (("s0", "n"), ("s49", "t")):  # torch's names of the open sizes
            found["rule"] = found.get("rule", "").replace(open_name, size)
        self.assertEqual(found["rule"], rule, report)
        self.assertEqual(found.get("rest", "").partition(" of ")[2], rest, report)

    # --- Programs that no torch writes -----------------------------------------------------------

    PLACES = (("b", "i32", []), ("h", "i32", []), ("i", "i32", []), ("j", "i32", []))

    def graph(self, inputs, *steps, output):
        inner = pt2file.Program()
        for given in inputs:
            inner.input(*given)
        self.steps(inner, *steps)
        inner.output(output)
        return {"as_graph": {"name": "inner", "graph": inner.json()["graph_module"]["graph"]}}

    def flex(self, **changes):
        """A causal flex_attention; `changes` of its arguments by name, None leaves one out."""
        given = {"query": {"as_tensor": {"name": "q"}}, "key": {"as_tensor": {"name": "k"}}, "value": {"as_tensor": {"name": "v"}},
                 "score_mod": self.graph((("s", "f32", []), *self.PLACES), output="s"),
                 "mask_mod": self.graph(self.PLACES, ("ge.Tensor", "keep", {"self": "i", "other": "j"}), output="keep"), "scale": {"as_float": 0.5}}
        given.update(changes)
        program = pt2file.Program()
        for name in "qkv":
            program.input(name, "f32", [1, 2, 5, 4])
        program.node("torch.ops.higher_order.flex_attention", {name: value for name, value in given.items() if value},
                     [{"as_tensor": {"name": name}} for name in ("y", "sums", "most")])
        program.output("y")
        return program

    def test_tables_of_blocks_are_not_read(self):
        """In torch's order: sizes and tables stand before the graph of the mask, tables of nothing that would be true."""
        program = self.flex()
        inputs = program.nodes[0]["inputs"]
        tables = [{"as_int": 5}, {"as_int": 5}, {"as_tensor": {"name": "q"}}, {"as_none": True}, {"as_int": 128}]
        program.nodes[0]["inputs"] = [*inputs[:4], *({"name": "", "arg": table, "kind": 1} for table in tables), *inputs[4:]]
        self.compile_program(program)
        q, k, v = (np.random.default_rng(seed).standard_normal((1, 2, 5, 4)).astype(np.float32) for seed in range(3))
        scores = np.where(np.tri(5, dtype=bool), q.astype(float) @ k.swapaxes(2, 3) * 0.5, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        self.close(*self.run_bundle({"q": q, "k": k, "v": v}).values(), (weights / weights.sum(-1, keepdims=True) @ v).astype(np.float32), "causal")

    def test_what_is_wrong_is_said(self):
        row = {"as_tensor": {"name": "row"}}
        wide = self.flex(scale=None)
        wide.nodes[0]["inputs"] = wide.nodes[0]["inputs"][:5]
        flat = self.flex(query=row)
        flat.input("row", "f32", [4])
        more = self.flex(buffer=row)
        more.input("row", "f32", [4])
        vector = self.flex(mask_mod=self.graph((*self.PLACES, ("row", "f32", [4])), ("gt.Scalar", "keep", {"self": "row", "other": 0}), output="keep"),
                           buffer=row)
        vector.input("row", "f32", [4])
        for program, message in ((wide, "a graph of the score, one of the mask and the scale"), (self.flex(mask_mod=None), "one of the mask"),
                                 (flat, "must be float tensors of [batch, heads, rows, size]"),
                                 (more, "its graphs have 5 and 4 inputs for 1 values besides"), (vector, "must give one number for a place, not bool[4]")):
            text = self.compile_program(copy.deepcopy(program), code=1)
            self.assertIn(message, text)
            self.assertIn("node 'y'", text)
            self.assertFalse((self.dir / "m.bundle").exists())


if __name__ == "__main__":
    main()
