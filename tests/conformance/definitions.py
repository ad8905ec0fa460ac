#!/usr/bin/env python3
"""The table of ONNX operators against the definitions: of ONNX as the installed onnx has them, in every version, and of com.microsoft as
ONNX Runtime declares them (contrib/schemas.json). Operands, results, which operands have one type, and the kinds of attributes are the same;
and a node with one operand or result more, with two types for one, or with an attribute of another kind is refused by its name.

Usage: definitions.py BIN FOLDER      (every opset with DMXC_LONG=1, else some)
Exit 77 where onnx is not installed, or dmxc has no front end for ONNX."""
import json
import pathlib
import re
import subprocess
import sys

try:
    import onnx
    from onnx import AttributeProto, TensorProto, defs, helper
except ImportError:
    print("SKIPPED: onnx is not installed (python3-onnx)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from sampling import LONG  # noqa: E402

BIN, FOLDER = map(pathlib.Path, sys.argv[1:3])
MICROSOFT = "com.microsoft"
SCHEMAS = pathlib.Path(__file__).resolve().parent / "contrib/schemas.json"
KINDS = {"INT": "int", "FLOAT": "float", "STRING": "string", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings", "TENSOR": "tensor",
         "SPARSE_TENSOR": "sparse_tensor", "GRAPH": "graph", "TYPE_PROTO": "type"}
WORDS = {"int": "an integer", "float": "a number", "string": "a string", "ints": "a list of integers", "floats": "a list of numbers",
         "strings": "a list of strings", "tensor": "a tensor", "sparse_tensor": "a sparse tensor", "graph": "a graph", "type": "a type"}

# Definitions that a later release of onnx corrected without a new version.
CORRECTED = {("", "GridSample", 16): "..>1"}


def signature(operands, results):
    """As OpTable.h has it; of (type, option, whether one type stands for all of them)."""
    uses = {}
    for kind, option, same in operands:
        uses[kind] = uses.get(kind, 0) + (2 if option == "Variadic" and same else 1)
    letters, text = {}, ""
    for kind, option, same in operands:
        shared = "(" not in kind and uses[kind] > 1 and (option != "Variadic" or same)
        text += (letters.setdefault(kind, "TUVWXYZ"[len(letters)]) if shared else ".") + "*" * (option == "Variadic")
    return f"{text}>{'*' if any(option == 'Variadic' for _, option, _ in results) else len(results)}"


def definitions():
    """(domain, operator, version) -> signature, attributes, newest opset that has it; of what onnx and ONNX Runtime declare."""
    found = {}
    either = lambda p, old, new: getattr(p, old) if hasattr(p, old) else getattr(p, new)  # onnx 1.12, and what came later
    of = lambda listed: [(either(p, "typeStr", "type_str"), str(p.option).split(".")[-1], either(p, "isHomogeneous", "is_homogeneous"))
                         for p in listed]
    for schema in defs.get_all_schemas_with_history():
        kinds = {name: KINDS.get(str(a.type).split(".")[-1], "other") for name, a in schema.attributes.items()}
        if not schema.deprecated:
            found[schema.domain, schema.name, schema.since_version] = signature(of(schema.inputs), of(schema.outputs)), kinds
    declared = lambda listed: [(p["type"], p["option"], not p.get("mixed")) for p in listed]
    for name, schema in json.loads(SCHEMAS.read_text())["operators"].items():
        kinds = {attribute: KINDS[a["type"]] for attribute, a in schema["attributes"].items()}
        found[MICROSOFT if schema["domain"] else "", name, 1] = signature(declared(schema["inputs"]), declared(schema["outputs"])), kinds
    for where, type_of in CORRECTED.items():
        if where in found:
            found[where] = type_of, found[where][1]
    return found


def differences(rows, defined):
    """Every definition against the row that holds for it."""
    complaints, compared = [], 0
    for (domain, op, version), (wanted, kinds) in sorted(defined.items()):
        of_op = [row for row in rows if (row["domain"], row["op"]) == (domain, op) and row["since"] <= version]
        if not of_op or not of_op[-1]["imported"]:
            continue
        row = of_op[-1]
        compared += 1
        where = f"{domain or 'ai.onnx'}.{op}, version {version}"
        if row["signature"] != wanted:
            complaints.append(f"{where}: the row of {row['since']} has {row['signature']}, the definition {wanted}")
        kinds.pop("consumed_inputs", None)  # a hint that version 1 of many operators has
        for name, kind in row["attributes"].items():
            if row["since"] == version and kinds.get(name) != kind:
                complaints.append(f"{where}: '{name}' is {kind} in the row, {kinds.get(name, 'nothing')} in the definition")
    return complaints, compared


def parsed(text):
    signs, results = text.split(">")
    operands = re.findall(r"[A-Z.]", signs)
    return operands, None if signs.endswith("*") else len(operands), None if results == "*" else int(results)


def other_value(kind):
    """A value of a kind that is not this one."""
    return 1.5 if kind == "int" else 1


class Nodes:
    """Nodes that must be refused, each with the words of its refusal."""

    def __init__(self):
        self.nodes, self.words = [], {}

    def add(self, row, what, words, inputs, results=1, **attributes):
        name = f"{row['op']}:{what}:{row['domain']}"
        self.words[name] = words
        self.nodes.append(helper.make_node(row["op"], inputs, [f"{name}{i}" for i in range(results)], name=name, domain=row["domain"],
                                           **attributes))

    def add_all(self, row):
        operands, most, results = parsed(row["signature"])
        given = most if most is not None else len(operands)
        plural = lambda count, what: f"at most {count} {what}{'s' * (count != 1)}, the node has {count + 1}"
        if most is not None:
            self.add(row, "operands", plural(most, "operand"), ["x"] * (most + 1))
        if results is not None:
            self.add(row, "results", plural(results, "result"), ["x"] * given, results + 1)
        for name, kind in row["attributes"].items():
            self.add(row, f"'{name}'", f"the attribute '{name}' must be {WORDS[kind]}", ["x"] * given, **{name: other_value(kind)})
        for i, letter in enumerate(operands):
            if letter != "." and letter in operands[:i]:
                inputs = ["x"] * given
                inputs[i] = "half"
                self.add(row, f"type {i}", "[op-dtype]", inputs)


def refused(rows, opsets, file):
    """What is not refused as it should be, and how many nodes were tried."""
    nodes = Nodes()
    for domain, op in sorted({(row["domain"], row["op"]) for row in rows}):
        of_op = [row for row in rows if (row["domain"], row["op"]) == (domain, op) and row["since"] <= opsets[domain]]
        if of_op and of_op[-1]["imported"]:
            nodes.add_all(of_op[-1])
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes.nodes, "g", [info("x", TensorProto.FLOAT, [2]), info("half", TensorProto.FLOAT16, [2])],
                              [info("x", TensorProto.FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*each) for each in opsets.items()], ir_version=8)
    file.write_bytes(model.SerializeToString())
    done = subprocess.run([BIN / "dmxc", file, "--all-errors", "-o", file.with_suffix(".bundle")], capture_output=True, text=True)
    said = dict(re.findall(r"node '(.*)': error: (.*)", done.stderr))
    complaints = [f"opset {opsets['']}: {name}: {said.get(name, 'not refused')}" for name, words in nodes.words.items()
                  if words not in said.get(name, "")]
    if done.returncode != 1:
        complaints.append(f"opset {opsets['']}: exit {done.returncode}, not 1")
    return complaints, len(nodes.words)


def taken(opset, file):
    """Names left out at the end are no operands and no results."""
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    made = [helper.make_node("Relu", ["x", "", ""], ["a", ""], name="relu"), helper.make_node("Clip", ["a", "", "", ""], ["y"], name="clip")]
    graph = helper.make_graph(made, "g", [info], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])])
    file.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString())
    done = subprocess.run([BIN / "dmxc", file, "--all-errors", "-o", file.with_suffix(".bundle")], capture_output=True, text=True)
    return [f"names left out at the end: {done.stderr}"] if done.returncode else []


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    table = subprocess.run([BIN / "dmxc", "--print-ops", "--input-format", "onnx", "--format", "json"], capture_output=True, text=True, check=True)
    rows = json.loads(table.stdout)
    complaints, compared = differences(rows, definitions())
    newest, tried = max(row["since"] for row in rows if not row["domain"]), 0
    for opset in range(1, newest + 1) if LONG else (1, 8, 13, 17, newest):
        opsets = {"": opset, "ai.onnx.ml": 5 if opset > 18 else 3 if opset > 12 else 1, MICROSOFT: 1, "ai.onnx.preview": 1}
        opsets.update({row["domain"]: 1 for row in rows if row["domain"] not in opsets})
        wrong, count = refused(rows, opsets, FOLDER / f"opset{opset}.onnx")
        complaints, tried = complaints + wrong, tried + count
    complaints += taken(13, FOLDER / "left_out.onnx")
    known = defs.onnx_opset_version()
    newer = sum(row["imported"] and not row["domain"] and row["since"] > known for row in rows)
    print(*complaints, sep="\n")
    print(f"{compared} definitions, {tried} nodes; onnx {onnx.__version__} (opset {known}) has no definition of {newer} of {len(rows)} rows")
    return 1 if complaints or compared < 400 or tried < 5000 else 0


if __name__ == "__main__":
    sys.exit(main())
