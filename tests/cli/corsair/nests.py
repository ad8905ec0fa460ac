"""The loops of a product in the text of schedule.array, written again in other ways that mean the same."""
import itertools
import re

NAME = r"%[\w#]+"
ELEMENT = re.compile(r'memref<(?:\d+x)*(!.*?>)(?:, strided<[^>]*>)?, "')
LOOP = re.compile(rf"^ *affine\.for ({NAME})(?: loc\(.*?\))? = 0 to (\d+) {{$")


class Nest:
    """The first loops over the tiles of one product: `lines` of the text from `begin` to `end`, and what their body takes and makes."""

    def __init__(self, text):
        lines = self.lines = text.split("\n")
        self.begin = next(i for i, line in enumerate(lines) if LOOP.match(line) and LOOP.match(lines[i + 1]) and "affine.load" in lines[i + 2])
        self.end = next(i for i in range(self.begin, len(lines)) if "affine.store" in lines[i]) + 3
        body = lines[self.begin + 2:self.end - 2]
        outer, inner = LOOP.match(lines[self.begin]), LOOP.match(lines[self.begin + 1])
        trips = {found[1]: int(found[2]) for found in (outer, inner)}
        stored, self.out, where, self.out_type = re.search(rf"affine\.store ({NAME}), ({NAME})\[(.*?)\] : (memref<.*>)", body[-1]).groups()
        self.row, self.column = where.split(", ")
        self.rows, self.columns = trips[self.row], trips[self.column]
        self.rows_outside = outer[1] == self.row
        self.loads = {found[1]: found.groups()[1:] for found in (re.search(rf"({NAME}) = affine\.load ({NAME})\[(.*?)\] : (memref<.*>)", line) for line in body) if found}
        self.units = {found[1]: found.groups()[1:] for found in (re.search(rf'({NAME}) = lldmir\.simd "(\w+)"\((.*?) : (.*)\) -> (.*?)(?: loc.*)?$', line) for line in body) if found}
        products = [line for line in body if "lldmir.matmul" in line]
        sides = [re.search(r"matmul \[(.*?)\] x \[(.*?)\]", line).groups() for line in products]
        self.sums = [len(left.split(", ")) for left, _ in sides]
        self.mode = int(re.search(r"ppr_mode (\d+)", products[0])[1])
        self.spread = re.search(r"spread <.*?>", products[0])[0]
        self.types = re.search(r" : (!.*?) x (!.*?) -> (.*?)(?: loc.*)?$", products[0]).groups()
        self.left, self.right = (self.operand(side.split(", ")[0]) for side in sides[0])
        self.bias = next((self.loads[given.split(", ")[1]] for name, given, _, _ in self.units.values() if name == "add"), None)
        self.tile = re.search(ELEMENT, self.out_type)[1]
        number = next(name for name, (function, _, _, made) in self.units.items() if function == "cast" and made == self.tile)
        at = next(i for i, line in enumerate(body) if line.lstrip().startswith(f"{number} = "))
        self.epilogue, self.number, self.stored = body[at + 1:-1], number, stored
        self.order = [(sum(self.sums[:i]), count) for i, count in enumerate(self.sums)]
        self.numbers = itertools.count()

    def operand(self, name):
        """A grid and its type, of what is loaded or cast."""
        if name in self.units:
            name = self.units[name][1]
        return self.loads[name][0], self.loads[name][2]

    def fresh(self):
        return f"%n{next(self.numbers)}"

    # --- ops; each adds lines and returns a name

    def load(self, lines, grid, indices, to=None):
        name, type = self.fresh(), grid[1]
        lines.append(f"{name} = affine.load {grid[0]}[{indices}] : {type}")
        element = re.search(ELEMENT, type)[1]
        if to in (None, element):
            return name
        cast = self.fresh()
        lines.append(f'{cast} = lldmir.simd "cast"({name} : {element}) -> {to}')
        return cast

    def lefts(self, lines, row, order=None):
        return {k: self.load(lines, self.left, f"{row}, {k}", self.types[0]) for first, count in order or self.order for k in range(first, first + count)}

    def rights(self, lines, column, order=None):
        return {k: self.load(lines, self.right, f"{k}, {column}", self.types[1]) for first, count in order or self.order for k in range(first, first + count)}

    def product(self, lines, a, w, before=None):
        name, left, right, sums = self.fresh(), *self.types
        onto = f" accumulate {before}" if before else ""
        lines.append(f"{name} = lldmir.matmul [{', '.join(a)}] x [{', '.join(w)}] num_imc {len(a)} ppr_mode {self.mode} {self.spread}{onto} : {left} x {right} -> {sums}")
        return name

    def finish(self, lines, value, row, column):
        """Bias, cast and store of a sum."""
        sums = self.types[2]
        if self.bias:
            vector = self.load(lines, (self.bias[0], self.bias[2]), column)
            element, value, before = re.search(ELEMENT, self.bias[2])[1], self.fresh(), value
            lines.append(f'{value} = lldmir.simd "add"({before}, {vector} : {sums}, {element}) -> {sums}')
        names = {self.number: self.fresh(), self.row: row, self.column: column}
        lines.append(f'{names[self.number]} = lldmir.simd "cast"({value} : {sums}) -> {self.tile}')
        for line in self.epilogue:
            names[line.split()[0]] = self.fresh()
            lines.append(re.sub(NAME, lambda name: names.get(name[0], name[0]), line))
        lines.append(f"affine.store {names[self.stored]}, {self.out}[{row}, {column}] : {self.out_type}")

    def body(self, row, column, order=None, a=None, w=None):
        """One tile, its terms in this order; `a`, `w`: tiles that are loaded already."""
        lines, order = [], order or self.order
        a, w, value = a or self.lefts(lines, row, order), w or self.rights(lines, column, order), None
        for first, count in order:
            blocks = range(first, first + count)
            value = self.product(lines, [a[k] for k in blocks], [w[k] for k in blocks], value)
        self.finish(lines, value, row, column)
        return lines

    def text(self, *nests):
        """The whole text, with these lines instead of the loops."""
        return "\n".join(self.lines[:self.begin] + [line for nest in nests for line in nest] + self.lines[self.end:])


def loop(counter, bounds, body):
    """bounds: a number of trips, or the text behind '='."""
    return [f"affine.for {counter} = {bounds if isinstance(bounds, str) else f'0 to {bounds}'} {{", *body, "}"]


# --- the same products: functions of a nest to texts; those of KEEPING keep the order of sums

def interchanged(n):
    row, column = ("%r", n.rows), ("%c", n.columns)
    outer, inner = (column, row) if n.rows_outside else (row, column)
    return n.text(loop(*outer, loop(*inner, n.body("%r", "%c"))))


def rows_stripped(n):
    """By two, the last strip shorter."""
    return n.text(loop("%s", f"0 to {n.rows} step 2", loop("%r", f"affine_map<(d0) -> (d0)>(%s) to min affine_map<(d0) -> (d0 + 2, {n.rows})>(%s)", loop("%c", n.columns, n.body("%r", "%c")))))


def columns_stripped(n):
    """By three: rows pass each strip."""
    return n.text(loop("%s", f"0 to {n.columns} step 3", loop("%r", n.rows, loop("%c", f"affine_map<(d0) -> (d0)>(%s) to min affine_map<(d0) -> (d0 + 3, {n.columns})>(%s)", n.body("%r", "%c")))))


def tiled(n):
    """Both by two."""
    by_two = lambda extent, strip: f"affine_map<(d0) -> (d0)>({strip}) to min affine_map<(d0) -> (d0 + 2, {extent})>({strip})"
    return n.text(loop("%s", f"0 to {n.rows} step 2", loop("%t", f"0 to {n.columns} step 2", loop("%r", by_two(n.rows, "%s"), loop("%c", by_two(n.columns, "%t"), n.body("%r", "%c"))))))


def rows_split(n):
    half = (n.rows + 1) // 2
    return n.text(*(loop("%r", bounds, loop("%c", n.columns, n.body("%r", "%c"))) for bounds in (f"0 to {half}", f"{half} to {n.rows}") if bounds != f"{n.rows} to {n.rows}"))


def columns_split(n):
    """Two nests, the second with its columns outside."""
    half = max(1, n.columns // 3)
    return n.text(loop("%r", n.rows, loop("%c", f"0 to {half}", n.body("%r", "%c"))), loop("%c", f"{half} to {n.columns}", loop("%r", n.rows, n.body("%r", "%c"))))


def columns_unrolled(n):
    whole = n.columns // 2 * 2
    nests = [loop("%r", n.rows, loop("%c", f"0 to {whole} step 2", n.body("%r", "%c") + n.body("%r", "%c + 1")))] if whole else []
    if n.columns > whole:
        nests.append(loop("%r", n.rows, n.body("%r", f"{whole}")))
    return n.text(*nests)


def rows_unrolled(n):
    return n.text(loop("%c", n.columns, [line for row in range(n.rows) for line in n.body(str(row), "%c")]))


def all_unrolled(n):
    return n.text(loop("%r", 1, [line for row in range(n.rows) for column in range(n.columns) for line in n.body(f"%r + {row}", str(column))]))


def rows_backwards(n):
    return n.text(loop("%r", n.rows, loop("%c", n.columns, n.body(f"{n.rows - 1} - %r", "%c"))))


def columns_backwards(n):
    return n.text(loop("%r", n.rows, loop("%c", n.columns, n.body("%r", f"{n.columns - 1} - %c"))))


def even_columns_first(n):
    return n.text(loop("%r", n.rows, [line for first in range(min(2, n.columns)) for line in loop("%c", f"{first} to {n.columns} step 2", n.body("%r", "%c"))]))


def one_loop(n):
    return n.text(loop("%i", n.rows * n.columns, n.body(f"%i floordiv {n.columns}", f"%i mod {n.columns}")))


def rows_hoisted(n):
    loads = []
    a = n.lefts(loads, "%r")
    return n.text(loop("%r", n.rows, loads + loop("%c", n.columns, n.body("%r", "%c", a=a))))


def weights_hoisted(n):
    loads = []
    w = n.rights(loads, "%c")
    return n.text(loop("%c", n.columns, loads + loop("%r", n.rows, n.body("%r", "%c", w=w))))


def quads_split(n):
    """Of a product that is dealt two loops over the quads, each with a part of the tiles of a quad."""
    end = next((i for i in range(n.end, len(n.lines)) if "{lldmir.quads}" in n.lines[i]), None)
    if end is None or "memref.subview" in "".join(n.lines[:n.begin]):
        return rows_split(n)
    begin = max(i for i in range(n.begin) if LOOP.match(n.lines[i]))
    parts = [loop("%c", bounds, loop("%r", n.rows, n.body("%r", "%c"))) for bounds in (f"0 to {n.columns // 2}", f"{n.columns // 2} to {n.columns}")]
    return "\n".join(n.lines[:begin] + [line for part in parts for line in n.lines[begin:n.begin] + part + n.lines[n.end:end + 1]] + n.lines[end + 1:])


def k_in_a_loop(n):
    """All additions but the first and a shorter last one are one loop that carries the sum."""
    count = n.sums[0]
    whole = sum(each == count for each in n.sums)
    lines, inner, value = [], [], None
    value = n.product(lines, [n.load(lines, n.left, f"%r, {k}", n.types[0]) for k in range(count)], [n.load(lines, n.right, f"{k}, %c", n.types[1]) for k in range(count)])
    if whole > 1:
        a = [n.load(inner, n.left, f"%r, %k * {count} + {i}", n.types[0]) for i in range(count)]
        w = [n.load(inner, n.right, f"%k * {count} + {i}, %c", n.types[1]) for i in range(count)]
        made, name = n.product(inner, a, w, "%sum"), n.fresh()
        lines += [f"{name} = affine.for %k = 1 to {whole} iter_args(%sum = {value}) -> ({n.types[2]}) {{", *inner, f"affine.yield {made} : {n.types[2]}", "}"]
        value = name
    for first, rest in n.order[whole:]:
        blocks = range(first, first + rest)
        value = n.product(lines, [n.load(lines, n.left, f"%r, {k}", n.types[0]) for k in blocks], [n.load(lines, n.right, f"{k}, %c", n.types[1]) for k in blocks], value)
    n.finish(lines, value, "%r", "%c")
    return n.text(loop("%r", n.rows, loop("%c", n.columns, lines)))


def k_backwards(n):
    return n.text(loop("%r", n.rows, loop("%c", n.columns, n.body("%r", "%c", order=n.order[::-1]))))


def k_halved(n):
    """Half as many blocks at once, the odd ones first."""
    halves = [(at, min(max(1, count // 2), first + count - at)) for first, count in n.order for at in range(first, first + count, max(1, count // 2))]
    return n.text(loop("%r", n.rows, loop("%c", n.columns, n.body("%r", "%c", order=halves[1::2] + halves[::2]))))


KEEPING = (interchanged, rows_stripped, columns_stripped, tiled, rows_split, columns_split, columns_unrolled, rows_unrolled, all_unrolled,
           rows_backwards, columns_backwards, even_columns_first, one_loop, rows_hoisted, weights_hoisted, quads_split, k_in_a_loop)
REORDERING = (k_backwards, k_halved)


# --- what a text says
