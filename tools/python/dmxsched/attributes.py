"""Python's values as MLIR's attributes."""
from __future__ import annotations

import math
import re
from typing import Any

from .places import quoted, wrong

# What the author gives for an attribute of a kind of the table: the classes, what they are called, and their text.
WORD = re.compile(r"[A-Za-z_][\w$.]*\Z")
SCALARS: dict[str, tuple[type, str]] = {"int": (int, "a number"), "bool": (bool, "True or False"), "unit": (bool, "True or False"), "str": (str, "a text"),
           "symbol": (str, "a name"), "type": (str, "a type's text"), "dict": (dict, "a dictionary")}
LISTS = {"ints": ("int", "array<i64", "numbers"), "ints32": ("int", "array<i32", "numbers"), "bools": ("bool", "array<i1", "True and False"),
         "strs": ("str", None, "texts"), "int list": ("int", None, "numbers"), "symbols": ("symbol", None, "names"), "dicts": ("dict", None, "dictionaries"),
         "types": ("type", None, "types' texts"), "lists of ints": ("int list", None, "lists of numbers")}


class Attribute:
    """An attribute as MLIR writes it, for what Python has no value of: Attribute("#gpu.block<x>")."""

    def __init__(self, text: str):
        if not isinstance(text, str) or not text.strip():
            wrong(f"an Attribute is a text as MLIR writes it, not {text!r}")
        self.text = text

    def __repr__(self) -> str:
        return f"Attribute({self.text!r})"


def told(value: Any) -> str:
    """A value and its class, for messages."""
    return f"{value!r} ({type(value).__name__})"


def text_of(value: Any, what: str) -> str:
    """Of any value; `what` it is of, for a message."""
    if isinstance(value, Attribute):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -2 ** 63 <= value < 2 ** 63:
            wrong(f"{what} is {value}, which 64 bits do not hold")
        return f"{value} : i64"
    if isinstance(value, float):
        if not math.isfinite(value):
            wrong(f"{what} is {value!r}, which is no number")
        return f"{value!r} : f64" if "." in repr(value) else f"{value:.17e} : f64"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text_of(part, what) for part in value) + "]"
    if isinstance(value, dict):
        return dictionary(value, what)
    return wrong(f"{what} is {told(value)}; give numbers, texts, True, False, lists or dictionaries of them, or an Attribute")


def dictionary(values: dict, what: str) -> str:
    for key in values:
        if not isinstance(key, str) or not key:
            wrong(f"{what} has the key {told(key)}; keys are texts")
    return "{" + ", ".join(f"{key if WORD.match(key) else quoted(key)} = {text_of(value, f'{key!r} of {what}')}" for key, value in values.items()) + "}"


def typed(kind: str, value: Any, what: str) -> str | None:
    """Of a value for an attribute of a kind of the table; None where it is left out."""
    if isinstance(value, Attribute):
        return value.text
    if kind in LISTS:
        inner, array, words = LISTS[kind]
        if not isinstance(value, (list, tuple)):
            wrong(f"{what} is a list of {words}, not {told(value)}")
        parts = [typed(inner, part, f"each of {what}") for part in value]
        if array:
            return f"{array}>" if not parts else f"{array}: {', '.join(str(part).split(' : ')[0] for part in parts)}>"
        return f"[{', '.join(map(str, parts))}]"
    if kind not in SCALARS:
        return text_of(value, what)
    wanted, words = SCALARS[kind]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        wrong(f"{what} is {words}, not {told(value)}")
    if kind == "unit":
        return "unit" if value else None
    if kind in ("symbol", "type"):
        text = str(value)
        return text if kind == "type" else "::".join("@" + (part if WORD.match(part) else quoted(part)) for part in text.split("::"))
    return text_of(value, what)
