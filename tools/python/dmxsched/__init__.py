"""Schedules of dmxc in Python: functions whose calls are printed as a script of MLIR's transform dialect, for `dmxc --schedule`.

    from dmxsched import schedule

    @schedule(at="partition")
    def first(module):
        module.match("dmir.conv", nth=0, expect=2).decide(grain=200)

`python3 -m dmxsched first.py -o first.mlir` prints it; each op has the place of its line, which is where the compiler's messages point.
Nothing of MLIR is imported; the methods of handles are the compiler's ops (`python3 -m dmxsched --ops`). tools/python/README.md is the page."""
from typing import Any

from .attributes import Attribute
from .decorators import Schedule, define_form, schedule, transform
from .forms import NAMES, Form
from .handles import Handle, Param, include, op, param
from .places import Error, near, wrong

__all__ = ["Attribute", "Error", "Form", "Handle", "Param", "Schedule", "define_form", "include", "op", "param", "schedule", "transform", *NAMES]


def __getattr__(name: str) -> Any:
    """The compiler's normal forms by their names: PerfectNest."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in NAMES:
        wrong(f"dmxsched has no '{name}'{near(name, __all__)}", "form")
    return Form(NAMES[name])
