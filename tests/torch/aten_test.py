#!/usr/bin/env python3
"""Each operator of aten_cases.json, compiled and run, against what torch computed. Usage: aten_test.py BIN [unittest arguments].
Exit 77 where numpy is not installed. A program holds the cases of one family, all operands as inputs; a plain run samples the large ones."""
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

import pt2file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import sample

BIN = pathlib.Path(sys.argv[1]).resolve()
CASES = json.loads(pathlib.Path(__file__).with_name("aten_cases.json").read_text())
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
         "u8": np.uint8, "bool": np.bool_}


def array(value):
    numbers = np.array(value["data"], np.float64 if value["dtype"][0] in "fb" and value["dtype"] != "bool" else np.int64).reshape(value["shape"])
    if value["dtype"] == "bf16":  # the upper half of f32, which torch's numbers fit exactly
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view("V2")
    return numbers.astype(NUMPY[value["dtype"]])


def widened(values, dtype):
    return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else values


class Family:
    def __init__(self, cases):
        self.cases = cases
        self.program, self.inputs = pt2file.Program(), {}
        for number, case in cases.items():
            self.add(number, case)

    def operand(self, name, value):
        self.program.input(name, value["dtype"], value["shape"])
        self.inputs[name] = array(value)
        return {"name": name}

    def argument(self, name, value):
        (tag, content), = value.items()
        if tag == "tensor":
            return {"as_tensor": self.operand(name, content)}
        if tag == "tensors":
            items = [None if item is None else self.operand(f"{name}_{i}", item) for i, item in enumerate(content)]
            if None in items:
                return {"as_optional_tensors": [{"as_none": True} if item is None else {"as_tensor": item} for item in items]}
            return {"as_tensors": items}
        return {"as_scalar_type": pt2file.SCHEMA[content]} if tag == "dtype" else value

    def add(self, number, case):
        arguments = {n: self.argument(f"c{number}_{n}", v) for n, v in case["arguments"].items()}
        names = [f"c{number}_out{i}" if result else f"c{number}_unused_{i}" for i, result in enumerate(case["results"])]
        outputs = [{"as_tensor": {"name": name}} for name in names]
        if case["list"]:
            outputs = [{"as_tensors": [{"name": name} for name in names]}]
        library = "" if case["target"].count(".") == 2 else "aten."  # which other libraries' names have
        self.program.node(f"torch.ops.{library}{case['target']}", arguments, outputs, name=f"case{number}")
        for name, result in zip(names, case["results"]):
            if result:
                self.program.values[name] = pt2file.meta(result["dtype"], result["shape"])
                self.program.output(name)

    def outputs(self):
        """(case, which result, what it is), in the bundle's order."""
        return [(number, i, result) for number, case in self.cases.items() for i, result in enumerate(case["results"]) if result]


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, errors="replace")


class Aten(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-aten-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def compile(self, family):
        family.program.write(self.dir / "m.pt2")
        return run(BIN / "dmxc", self.dir / "m.pt2", "-o", self.dir / "m.bundle", "-O1", "-t", "cpu:x86-64-v3", "--color", "never")

    def check(self, name):
        cases = [(i, case) for i, case in enumerate(CASES) if case["family"] == name]
        cases = dict(sample(cases, max(1, len(cases) // 12)))
        self.assertTrue(cases)
        family, problems = Family(cases), []
        result = self.compile(family)
        if result.returncode == 1:  # what is refused, by the names of the nodes; the others still run
            refused = set(re.findall(r"node 'case(\d+)'.*error", result.stderr))
            problems += [f"refused: {line}" for line in result.stderr.splitlines() if " error: " in line]
            family = Family({i: case for i, case in cases.items() if str(i) not in refused})
            result = self.compile(family)
        self.assertEqual(result.returncode, 0, result.stderr[-3000:])
        problems += [line for line in result.stderr.splitlines() if "[torch-meta]" in line]
        for input_name, values in family.inputs.items():
            np.save(self.dir / f"in_{input_name}.npy", values)
        ran = run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir, "--output-dir", self.dir)
        self.assertEqual(ran.returncode, 0, ran.stderr[-3000:])
        for place, (number, i, expected) in enumerate(family.outputs()):
            label = f"case {number} {cases[number]['target']} result {i}"
            problems += self.compare(self.dir / f"out_out{place}.npy", expected, cases[number].get("tol", [1e-4, 1e-5]), label)
        self.assertEqual(problems, [], f"{len(problems)} problems in {len(cases)} cases")

    def compare(self, path, expected, tolerance, label):
        got, wanted = np.load(path), array(expected)
        if got.dtype != wanted.dtype or got.shape != wanted.shape:
            return [f"{label}: {got.dtype}{got.shape}, expected {wanted.dtype}{wanted.shape}"]
        got, wanted = widened(got, expected["dtype"]), widened(wanted, expected["dtype"])
        if np.allclose(got, wanted, rtol=tolerance[0], atol=tolerance[1], equal_nan=True):
            return []
        return [f"{label}: got {got.reshape(-1)[:8].tolist()}, expected {wanted.reshape(-1)[:8].tolist()}"]


for family_name in dict.fromkeys(case["family"] for case in CASES):
    setattr(Aten, "test_" + family_name, lambda self, name=family_name: self.check(name))

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
