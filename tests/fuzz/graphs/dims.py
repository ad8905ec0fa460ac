"""Extents of random graphs: numbers, and names whose value a run brings."""


class Dim:
    """An extent under each of the graph's bindings. `key` is None where it is static; equal keys are equal extents whatever a
    run brings. `floor`: where the data of a run decides the extent, its least values; `values` are the largest then."""
    __slots__ = ("values", "key", "floor")

    def __init__(self, values, key=None, floor=None):
        self.values, self.key = tuple(values), key
        self.floor = tuple(floor) if floor is not None else self.values

    @property
    def static(self):
        return self.key is None

    @property
    def exact(self):
        return self.floor == self.values

    @property
    def least(self):
        return min(self.floor)

    @property
    def most(self):
        return max(self.values)

    def same(self, other):
        return self.key == other.key and (self.key is not None or self.values == other.values)

    def is_one(self):
        return self.static and self.values[0] == 1

    def map(self, function, text):
        """What `function` makes of it; `text` with {} for it is the name of that."""
        if self.static:
            return Dim([function(v) for v in self.values])
        return Dim([function(v) for v in self.values], text.format(self.key), [function(v) for v in self.floor])

    def with_(self, other, function, text):
        if self.static and other.static:
            return Dim([function(a, b) for a, b in zip(self.values, other.values)])
        return Dim([function(a, b) for a, b in zip(self.values, other.values)], text.format(self.name, other.name),
                   [function(a, b) for a, b in zip(self.floor, other.floor)])

    @property
    def name(self):
        return self.key or str(self.values[0])

    @property
    def kinds(self):
        """0, 1 or many, in all runs, and whether it is static or open; for the table of what was made."""
        return {("0" if n == 0 else "1" if n == 1 else "many", "static" if self.static else "open") for n in self.values}

    def __repr__(self):
        return self.name


def product(dims):
    """The number of elements as an extent."""
    total = None
    for dim in dims:
        if total is None or total.is_one():
            total = dim
        elif not dim.is_one():
            total = total.with_(dim, lambda a, b: a * b, "({}*{})")
    return total


def most(dims):
    total = 1
    for dim in dims:
        total *= dim.most
    return total


def least(dims):
    total = 1
    for dim in dims:
        total *= dim.least
    return total
