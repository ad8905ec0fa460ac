"""Normal forms: what an op needs of what it is given, and what of it stays. Their names are the compiler's."""
from __future__ import annotations

from typing import Callable

from . import table
from .places import near, wrong
from .recording import recorder


class Form:
    """A form by the compiler's name, Form("nest.perfect"), which is PerfectNest; PerfectNest + NormalizedNest is both."""

    def __init__(self, name: str):
        for part in name.split("+") if isinstance(name, str) else wrong(f"a form has a name, as 'nest.perfect', not {name!r}", "form"):
            if part not in table.FORMS and part not in own:
                every = sorted({*table.FORMS, *own})
                wrong(f"there is no form '{part}'{near(part, every)}; there are {', '.join(every) or 'none'}", "form")
        self.name = name

    def __add__(self, other: Form) -> Form:
        return Form(f"{self.name}+{form_of(other).name}")

    def use(self) -> str:
        """The name, for an op of the script that is recorded; forms of the author's own are defined there at their first use."""
        for part in self.name.split("+"):
            defined = recorder(f"the form '{part}'").forms
            if part in own and part not in defined:
                defined.add(part)
                own[part]()
        return self.name

    def __repr__(self) -> str:
        return f"Form({self.name!r})"


own: dict[str, Callable[[], None]] = {}  # forms that authors define, and what writes them into a script


def form_of(value: Form | str) -> Form:
    return value if isinstance(value, Form) else Form(value)


def python_name(name: str) -> str:
    """"nest.multi_trip" is MultiTripNest."""
    of, _, words = name.partition(".")
    return "".join(word.capitalize() for word in [*words.split("_"), of])


NAMES = {python_name(name): name for name in table.FORMS}
