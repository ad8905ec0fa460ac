"""What the files of cases are written with: random operands of every type, the same in every run, and a list of cases."""
import json
import pathlib
import zlib

import numpy as np

from case import Case, Weight
from tensors import SMALL, Tensor

SCHEMAS = json.loads((pathlib.Path(__file__).resolve().parent / "schemas.json").read_text())["operators"]


class Random:
    """Operands of a case; its name is the seed."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, kind, *shape, size=1.0):
        return Tensor(kind, self.random.standard_normal(shape) * size)

    def uniform(self, kind, low, high, *shape):
        return Tensor(kind, self.random.uniform(low, high, shape))

    def integers(self, kind, low, high, *shape):
        """From low to high, both of them included."""
        return Tensor(kind, self.random.integers(low, high + 1, shape))

    def codes(self, kind, *shape):
        """Of a small type of floats, those that are numbers."""
        good = np.flatnonzero(np.isfinite(SMALL[kind]) & (np.abs(SMALL[kind]) < 1000))
        return Tensor(kind, good[self.random.integers(0, len(good), shape)])

    def bytes(self, *shape):
        return self.integers("u8", 0, 255, *shape)


def without_last(operands):
    """Operands that are left out at the end are not named at all."""
    while operands and operands[-1] is None:
        operands.pop()
    return operands


def held(tensor):
    return Weight(tensor) if tensor is not None else None


class Cases(list):
    """`add(op, variant, make)`: `make(random)` gives the operands of one data set; a list of such gives several sets."""

    def __init__(self, definitions):
        self.definitions = definitions

    def add(self, op, variant, make, results=(1,), definition=None, domain="com.microsoft", **more):
        attributes = {k[1:]: more.pop(k) for k in list(more) if k.startswith("_")}
        name = f"{op}_{variant}"
        makes = make if isinstance(make, list) else [make]
        sets = [without_last(one(Random(f"{name}/{number}"))) for number, one in enumerate(makes)]
        names = [o["name"] for o in SCHEMAS[op]["inputs"]] if op in SCHEMAS else []
        self.append(Case(name, op, sets, attributes, results, definition or self.definitions[op], names, domain=domain, **more))


__all__ = ["Cases", "Random", "held", "Tensor", "Weight", "np"]
