#!/usr/bin/env python3
"""Counts what the cases hit of each operator's schema: every attribute set and left out, every optional operand there and not,
every type, and the values that change what an attribute does. Writes COVERAGE.md.

Usage: coverage.py [--check]     --check: exit 1 where COVERAGE.md is old; in any way where something is hit by no case and
exempt.py has no reason for that. Exit 77 where numpy is not installed."""
import argparse
import pathlib
import sys
from collections import Counter

from generate import all_cases  # first: it says where numpy is missing
from build import SCHEMAS
from exempt import EXEMPT, VALUES
from tensors import SCHEMA_NAMES
from wrong import RUNS, WRONG

PAGE = pathlib.Path(__file__).resolve().parent / "COVERAGE.md"


class Coverage:
    """Of one operator."""

    def __init__(self, op, cases):
        self.op, self.cases, self.schema, self.gaps, self.lines = op, cases, SCHEMAS[op], [], []

    def row(self, kind, name, counts, needed):
        """`needed`: which of the counts must not be 0."""
        missing = [what for what in needed if not counts.get(what)]
        for what in missing:
            if (self.op, name, what) not in EXEMPT and (self.op, name) not in EXEMPT:
                self.gaps.append(f"{self.op}: {name}: no case has it {what}")
        shown = ", ".join(f"{count} {what}" for what, count in counts.items())
        reasons = [f"{what}: {EXEMPT[self.op, name, what]}" for what in missing if (self.op, name, what) in EXEMPT]
        why = EXEMPT.get((self.op, name)) or "; ".join(reasons)
        self.lines.append(f"| {self.op} | {kind} | `{name}` | {shown} | {why if missing else ''} |")

    def attributes(self):
        for name, schema in self.schema["attributes"].items():
            values = [c.attributes[name] for c in self.cases if name in c.attributes]
            counts = {"set": len(values)}
            if not schema["required"]:
                counts["absent"] = len(self.cases) - len(values)
            needed = list(counts)
            if name in VALUES.get(self.op, {}):
                hit = Counter(map(str, values))
                counts.update({f"= {value}": hit[str(value)] for value in VALUES[self.op][name]})
                needed = list(counts)
            self.row("attribute", name, counts, needed)

    def operands(self):
        for i, schema in enumerate(self.schema["inputs"]):
            if schema["option"] != "Optional":
                continue
            present = sum(len(c.sets[0]) > i and c.sets[0][i] is not None for c in self.cases)
            middle = sum(len(c.sets[0]) > i and c.sets[0][i] is None for c in self.cases)
            counts = {"present": present, "absent": len(self.cases) - present - middle}
            if i + 1 < len(self.schema["inputs"]):
                counts["absent before others"] = middle
            last = all(o["option"] != "Optional" for o in self.schema["inputs"][i + 1:])
            required_behind = any(o["option"] == "Single" for o in self.schema["inputs"][i + 1:])
            needed = ["present"] + ([] if required_behind else ["absent"]) + ([] if last else ["absent before others"])
            self.row("input", schema["name"], counts, needed)

    def results(self):
        for i, schema in enumerate(self.schema["outputs"]):
            if schema["option"] != "Optional":
                continue
            asked = sum(len(c.results) > i and bool(c.results[i]) for c in self.cases)
            self.row("output", schema["name"], {"asked": asked, "not asked": len(self.cases) - asked}, ["asked", "not asked"])

    def kinds(self):
        for parameter, allowed in self.schema["types"].items():
            seen = Counter()
            for c in self.cases:
                operands = [(o, getattr(v, "tensor", v)) for o, v in zip(self.schema["inputs"], c.sets[0]) if v is not None]
                results = [(o, v) for o, v in zip(self.schema["outputs"], c.wanted[0]) if v is not None]
                seen.update({SCHEMA_NAMES[v.kind] for o, v in operands + results if o["type"] == parameter})
            if not any(o["type"] == parameter for o in self.schema["inputs"] + self.schema["outputs"] if o["option"] != "Variadic"):
                continue
            counts = {t: seen[t] for t in allowed}
            self.row("type", parameter, counts, list(counts))

    def counted(self):
        self.attributes()
        self.operands()
        self.results()
        self.kinds()
        return self


def page(found, wrong):
    names = ", ".join(f"{c.op} {len(c.cases)}" for c in found)
    head = f"""# What the cases of com.microsoft hit

Made by `coverage.py` from `schemas.json`; `--check` compares. {sum(len(c.cases) for c in found)} cases of {len(found)} operators, and
{len(wrong)} models and runs that must be refused ({len({w.op for w in wrong})} operators).

{names}.

| operator | what | name | cases | why one is 0 |
|---|---|---|---|---|
"""
    return head + "\n".join(line for c in found for line in c.lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    cases = all_cases()
    found = [Coverage(op, [c for c in cases if c.op == op]).counted() for op in SCHEMAS]
    gaps = [gap for c in found for gap in c.gaps]
    many = {"GroupQueryAttention", "MultiHeadAttention", "Attention", "MatMulNBits", "QMoE"}
    gaps += [f"{c.op}: {len(c.cases)} cases are too few" for c in found if len(c.cases) < (40 if c.op in many else 6)]
    for gap in gaps:
        print(gap)
    text = page(found, WRONG + RUNS)
    old = check and (not PAGE.exists() or PAGE.read_text() != text)
    if old:
        print(f"{PAGE.name} is old: run coverage.py")
    elif not check:
        PAGE.write_text(text)
    return 1 if gaps or old else 0


if __name__ == "__main__":
    sys.exit(main())
