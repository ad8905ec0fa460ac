"""What is recorded: the text of a script, by sequence and by block."""
from __future__ import annotations

import re
from typing import Any, Callable

from .places import Place, of_function, quoted, wrong

ANY_OP, ANY_VALUE, ANY_PARAM, PARAM = "!transform.any_op", "!transform.any_value", "!transform.any_param", "!transform.param<i64>"
TYPES = {"op": ANY_OP, "value": ANY_VALUE, "param": PARAM}


def _free(wish: str, names: set) -> str:
    """A name as MLIR has them that is not among the names, where it is then."""
    wish = re.sub(r"\W", "_", wish, flags=re.ASCII)
    wish = wish if wish and not wish[0].isdigit() else f"v{wish}"
    name, count = wish, 2
    while name in names:
        name, count = f"{wish}_{count}", count + 1
    names.add(name)
    return name


class Block:
    """Ops one after another, and the names that they and what is inside them use."""

    def __init__(self, parent: Block | None = None, of: str = "", place: Place | None = None):
        self.parent, self.of, self.place = parent, of, place
        self.lines: list[str] = []
        self.last: tuple | None = None
        self.is_done = False
        self.names: set[str] = parent.names if parent else set()

    def fresh(self, wish: str) -> str:
        """A name for a value that no other has."""
        return f"%{_free(wish, self.names)}"

    def write(self, op: str, place: Place) -> None:
        """An op with its place, below the author's line."""
        if (place.file, place.line) != self.last:
            self.last = place.file, place.line
            self.lines.append(f"// {' '.join(place.source().split())}")
        self.lines.extend(f"{op} {place.location()}".split("\n"))

    @property
    def whole(self) -> Block:
        """What knows of nothing outside."""
        return self.parent.whole if self.parent else self

    def is_within(self, other: Block) -> bool:
        block: Block | None = self
        while block and block is not other:
            block = block.parent
        return block is other


class Recorder:
    """A script that is being recorded: sequences that are done, and the block that takes what comes."""

    current: Recorder | None = None

    def __init__(self) -> None:
        self.sequences: list[str] = []
        self.symbols: set[str] = set()
        self.included: dict[Any, Any] = {}  # what was made of a function of the author's with certain arguments
        self.files: dict[str, Place] = {}  # that it includes, and where first
        self.forms: set[str] = set()  # those of the author's own that the script has
        self.running: list[Callable] = []
        self.block: Block | None = None

    def symbol(self, wish: str) -> str:
        return _free(wish, self.symbols)

    def text(self) -> str:
        files = "".join(f'  "transform.dmx.include"() <{{file = {quoted(file)}}}> : () -> () {place.location()}\n' for file, place in self.files.items())
        return "module attributes {transform.with_named_sequence} {\n" + files + "".join(self.sequences) + "}\n"


def recorder(what: str) -> Recorder:
    """The script that is being recorded now."""
    now = Recorder.current
    if now is None or now.block is None:
        wrong(f"{what} is outside of a schedule; call it in a function that @schedule or @transform is written above")
    return now


def block_now(what: str) -> Block:
    block = recorder(what).block
    assert block is not None
    return block


class Entered:
    """`with Entered(recorder, block)`: what comes goes into the block."""

    def __init__(self, owner: Recorder, block: Block):
        self.owner, self.block = owner, block

    def __enter__(self) -> Block:
        self.before, self.owner.block = self.owner.block, self.block
        return self.block

    def __exit__(self, *_: Any) -> None:
        self.owner.block, self.block.is_done = self.before, True


def sequence_text(name: str, arguments: list, block: Block, results: list, function: Callable, at: str = "") -> str:
    """arguments: (name, type, whether it is consumed); results: (name, type)."""
    place = of_function(function).location()
    takes = ", ".join(f"{value}: {type_} {{transform.{'consumed' if consumed else 'readonly'}}}" for value, type_, consumed in arguments)
    gives = f" -> ({', '.join(type_ for _, type_ in results)})" if results else ""
    hook = f" attributes {{dmx.at = {quoted(at)}}}" if at else ""
    last = f"transform.yield {', '.join(value for value, _ in results)} : {', '.join(type_ for _, type_ in results)}" if results else "transform.yield"
    body = "".join(f"    {line}\n" for line in [*block.lines, f"{last} {place}"])
    return f"  transform.named_sequence @{name}({takes}){gives}{hook} {{\n{body}  }} {place}\n"
