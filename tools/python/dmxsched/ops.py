"""The ops of the compiler, from its table: how they are found by a name, called from Python, and written."""
from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from . import table
from .attributes import told, typed
from .places import near, wrong

DYNAMIC = -2 ** 63  # in a list of numbers: the next of the parameters
PREFIX = "transform."
methods: set[str] = set()  # of handles, whose names are near too


def python_name(name: str) -> str:
    """"static_sizes" and "dynamicSizes" are two halves of `sizes`; camels become snakes."""
    whole = re.sub(r"^(static|dynamic)(_|(?=[A-Z]))", "", name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", whole).lower().rstrip("_")


class Argument(NamedTuple):
    name: str
    operand: dict | None
    attribute: dict | None

    @property
    def required(self) -> bool:
        if self.attribute and self.operand:  # one of both, which the op itself checks
            return not self.attribute.get("optional")
        row = self.attribute or self.operand or {}
        return not row.get("optional") and row.get("count") not in ("optional", "variadic")

    @property
    def kind(self) -> str:
        """As help says it."""
        words = [] if not self.operand else [self.operand["of"].replace("op", "handle")]
        if self.attribute:
            words.append("|".join(repr(word) for word in self.attribute["words"]) if "words" in self.attribute else self.attribute["type"])
        return " or ".join(words) + (", several" if self.operand and self.operand.get("count") == "variadic" and not self.attribute else "")


class Op:
    def __init__(self, name: str, row: dict):
        self.name, self.row = name, row
        self.short = name[len(PREFIX):]
        halves = {python_name(operand["name"]): operand for operand in row["operands"]}
        arguments: dict[str, Argument] = {name: Argument(name, operand, None) for name, operand in halves.items()}
        for attribute in row["attributes"]:
            key = python_name(attribute["name"])
            whole = halves.get(key) if attribute["type"] in ("ints", "int") else None
            key = key if whole or key not in arguments else attribute["name"]
            arguments[key] = Argument(key, whole, attribute)
        first = next((key for key, argument in arguments.items() if argument.operand), None)  # which the handle itself is
        self.arguments = dict(sorted(arguments.items(), key=lambda entry: (entry[0] != first, not entry[1].required)))  # positions too go by this

    @property
    def signature(self) -> str:
        parts = [f"{argument.name}: {argument.kind}{'' if argument.required else ' = ...'}" for argument in self.arguments.values()]
        gives = ", ".join(result["name"] + (", ..." if result.get("count") else "") for result in self.row["results"])
        return f"{self.short}({', '.join(parts)})" + (f" -> {gives}" if gives else "")

    def bound(self, first: tuple, positional: tuple, named: dict) -> dict:
        """{argument: value} of a call."""
        order = list(self.arguments)
        values = [*first, *positional]
        if len(values) > len(order):
            wrong(f"'{self.short}' takes {len(order) - 1} arguments besides the handle, not {len(positional)}: {self.signature}")
        given = dict(zip(order, values))
        for key, value in named.items():
            key = key.rstrip("_")
            if key not in self.arguments:
                wrong(f"'{self.short}' has no argument '{key}'{near(key, self.arguments)}; it is {self.signature}")
            if key in given:
                wrong(f"'{self.short}' has '{key}' twice; it is {self.signature}")
            given[key] = value
        for key, argument in self.arguments.items():
            if argument.required and given.get(key) is None:
                wrong(f"'{self.short}' needs '{key}' ({argument.kind}); it is {self.signature}")
        return {key: value for key, value in given.items() if value is not None}


def words_of(attribute: dict, value: Any, what: str) -> str | None:
    words = attribute.get("words")
    if not words:
        return typed(attribute["type"], value, what)
    if not isinstance(value, str) or value not in words:
        wrong(f"{what} is one of {', '.join(map(repr, words))}, not {told(value)}" + (near(value, words) if isinstance(value, str) else ""))
    return words[value]


@functools.lru_cache(maxsize=None)
def known() -> dict[str, Op]:
    return {name[len(PREFIX):]: Op(name, row) for name, row in table.OPS.items()}


@functools.lru_cache(maxsize=None)
def namespaces() -> frozenset:
    """The extensions: structured, loop, affine, ..."""
    return frozenset(name.split(".")[0] for name in known() if "." in name)


def find(name: str, within: str = "") -> Op:
    """The op of a name as authors write it: dmxc's own and MLIR's of that very name first, else the one extension that has it."""
    ops, name = known(), name.rstrip("_")
    if within:
        if f"{within}.{name}" not in ops:
            wrong(f"there is no transform '{within}.{name}'{near(f'{within}.{name}', ops)}")
        return ops[f"{within}.{name}"]
    for full in (f"dmx.{name}", name):
        if full in ops:
            return ops[full]
    having = [full for full in ops if full.split(".", 1)[-1] == name]
    if len(having) == 1:
        return ops[having[0]]
    if having:
        wrong(f"'{name}' may be {' or '.join(map(repr, having))}; write which: handle.{having[0]}(...)")
    short = {full.split(".", 1)[-1] for full in ops}
    return wrong(f"there is no transform '{name}'{near(name, short | set(ops) | methods)} (python3 -m dmxsched --ops lists all)")
