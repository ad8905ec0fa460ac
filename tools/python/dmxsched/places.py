"""Where the author is: file, line and column of her Python, and what she calls the values that she makes there."""
from __future__ import annotations

import ast
import difflib
import functools
import linecache
import pathlib
import sys
from typing import Iterable, NamedTuple, NoReturn

PACKAGE = str(pathlib.Path(__file__).resolve().parent)


class Place(NamedTuple):
    file: str
    line: int
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def source(self) -> str:
        return linecache.getline(self.file, self.line)

    def location(self) -> str:
        """As MLIR writes it."""
        return f"loc({quoted(self.file)}:{self.line}:{self.column})"


class Error(Exception):
    """A fault of the author's, with the line that has it: "s.py:14: error: what is wrong; what to do [schedule-KIND]"."""

    def __init__(self, place: Place, text: str, kind: str = "python"):
        super().__init__(f"{place}: error: {text} [schedule-{kind}]")
        self.place, self.text, self.kind = place, text, kind


def quoted(text: str) -> str:
    """A string as MLIR reads it."""
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else "".join(f"\\{byte:02X}" for byte in c.encode()) for c in text) + '"'


def _author() -> tuple:
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith((PACKAGE, "<frozen ")):  # or what imports
        frame = frame.f_back
    return frame, _position(frame)


def _position(frame) -> tuple:
    """(line, end line, column, end column) of the call that runs, counted as Python does; columns from 3.11 on."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions and frame.f_lasti >= 0:
        for i, position in enumerate(positions()):
            if i == frame.f_lasti // 2 and None not in position:
                return position
    return frame.f_lineno, None, 0, None


def here() -> Place:
    """The line of the author's that runs now."""
    frame, (line, _, column, _) = _author()
    place = Place(frame.f_code.co_filename, line)
    return place._replace(column=len(place.source().encode()[:column].decode(errors="ignore")) + 1)


def of_function(function) -> Place:
    code = function.__code__
    return Place(code.co_filename, code.co_firstlineno)


def wrong(text: str, kind: str = "python", place: Place | None = None) -> NoReturn:
    raise Error(place or here(), text, kind)


def near(name: str, names: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(names), 1, 0.6)
    return f"; did you mean '{found[0]}'?" if found else ""


@functools.lru_cache(maxsize=None)
def _assignments(file: str) -> dict:
    """{where a call is: the names of what it is assigned to} of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, call = node.targets[0], node.value
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            found[call.lineno, call.end_lineno, call.col_offset, call.end_col_offset] = [part.id if isinstance(part, ast.Name) else "" for part in parts]
    return found


def assigned_names() -> list:
    """What the author calls what the call that runs now returns: "" and the end of the list where she calls it nothing."""
    frame, position = _author()
    return _assignments(frame.f_code.co_filename).get(tuple(position), [])
