#!/usr/bin/python3
"""Writes what TableGen knows of ops of schedules as C++ for dmx-opt: transforms.py LLVM_TBLGEN OUT INCLUDE... -- FILE.td...

An op's operands, results and attributes have their names there alone; the library forgets them. OUT is a text of JSON, by op."""
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

# What Python gives for an attribute, by the class that holds it.
ATTRIBUTES = {
    "IntegerAttr": "int", "BoolAttr": "bool", "UnitAttr": "unit", "StringAttr": "str", "SymbolRefAttr": "symbol", "FlatSymbolRefAttr": "symbol",
    "DictionaryAttr": "dict", "DenseI64ArrayAttr": "ints", "DenseI32ArrayAttr": "ints32", "DenseBoolArrayAttr": "bools",
    "TypeAttr": "type", "ArrayAttr": "list",
}
ARRAYS = {"string array": "strs", "64-bit integer array": "int list", "symbol ref array": "symbols", "Array of dictionary": "dicts", "type array": "types",
          "array of arrays of i64": "lists of ints"}


def value_kind(record, of):
    """What may stand for an operand or result, of its constraint and of those that it is made of."""
    name = record["!name"]
    either = [of[part["def"]] for part in record.get("allowedTypes") or []]
    if either:
        return "|".join(sorted({kind for part in either for kind in value_kind(part, of).split("|")}))
    for word, kind in (("ValueHandle", "value"), ("AnyValue", "value"), ("AnyHandleOrParam", "op|param|value"), ("Param", "param")):
        if word in name:
            return kind
    return "op|value" if "AnyHandle" in name else "op"


def attribute_kind(record, of):
    storage = record["storageType"].strip().rsplit("::", 1)[-1]
    if storage == "IntegerAttr":
        base = record
        while base.get("baseAttr"):
            base = of[base["baseAttr"]["def"]]
        return "int" if base.get("valueType", {}) and "I64" in base["valueType"]["def"] else "any"
    if storage == "ArrayAttr":
        return next((kind for words, kind in ARRAYS.items() if words in record["summary"]), "list")
    return ATTRIBUTES.get(storage, "any")


def enum_of(record, of):
    """{word: its text as an attribute} of an enumeration, or nothing."""
    while record.get("baseAttr"):
        record = of[record["baseAttr"]["def"]]
    return {of[case["def"]]["str"]: f"{of[case['def']]['value']} : i32" for case in record.get("enumerants") or []}


def argument(reference, name, of):
    record = of[reference["def"]]
    classes = record["!superclasses"]
    row = {"name": name}
    if "AttrConstraint" in classes:
        optional = any("Optional" in c or "DefaultValued" in c for c in classes) or record["storageType"].strip().endswith("UnitAttr")
        row["type"] = attribute_kind(record, of)
        if record.get("defaultValue"):
            row["default"] = record["defaultValue"]
        if words := enum_of(record, of):
            row.update(words=words, type="enum")
        return "attributes", {**row, **({"optional": True} if optional or record.get("isOptional") else {})}
    count = "variadic" if "Variadic" in classes else "optional" if "Optional" in classes else ""
    inner = of[record["baseType"]["def"]] if count else record
    row["of"] = value_kind(inner, of)
    if "Transform_ConcreteOpType" in inner["!superclasses"]:
        row["type"] = f'!transform.op<"{re.search(r"handle to (.*) operations", inner["summary"])[1]}">'
    return "operands", {**row, **({"count": count} if count else {})}


def op_of(record, of):
    row = {"summary": record["summary"].strip(), "operands": [], "attributes": [], "results": [], "regions": len(record["regions"]["args"])}
    for reference, name in record["arguments"]["args"]:
        if "!superclasses" in of.get(reference["def"], {}):
            if "OpVariable" in of[reference["def"]]["!superclasses"]:  # Arg<Type, ...>
                reference = of[reference["def"]]["constraint"]
            part, entry = argument(reference, name, of)
            row[part].append(entry)
    for reference, name in record["results"]["args"]:
        if "OpVariable" in of[reference["def"]]["!superclasses"]:
            reference = of[reference["def"]]["constraint"]
        row["results"].append(argument(reference, name, of)[1])
    row.update({key: record[key] for key in ("needs", "keeps") if record.get(key)})  # normal forms
    traits = [str(of[trait["def"]].get("trait", "")) for trait in record["traits"]]
    row["segments"] = [part for part, trait in (("operand", "AttrSizedOperandSegments"), ("result", "AttrSizedResultSegments")) if trait in traits]
    return row


def ops_of(tblgen, includes, file):
    command = [tblgen, "--dump-json", *[word for folder in includes for word in ("-I", folder)], file]
    of = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    found = {}
    for name in of["!instanceof"]["Op"]:
        record = of[name]
        found[f"{of[record['opDialect']['def']]['name']}.{record['opName']}"] = op_of(record, of)
    return found


def main():
    at = sys.argv.index("--")
    tblgen, out, *includes = sys.argv[1:at]
    ops = {}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for found in pool.map(lambda file: ops_of(tblgen, includes, file), sys.argv[at + 1:]):
            ops.update({name: row for name, row in found.items() if name.startswith("transform.")})
    lines = (json.dumps({"name": name, **row}) for name, row in sorted(ops.items()))
    pathlib.Path(out).write_text("".join(f'R"json({line})json",\n' for line in lines))


if __name__ == "__main__":
    main()
