"""Random nests of affine loops, and what they do: written as text, run from text. Shares nothing with the compiler."""
import itertools
import random
import re

SIZE = 64  # of each memref; indices begin at its middle


class Nest:
    """Loops with constant bounds around statements of the form a[..] = f(b[..], c[..]); indices are sums of counters."""

    def __init__(self, seed):
        self.name, chooses = f"n{seed}", random.Random(seed)
        self.depth = chooses.choice((2, 2, 3))
        self.bounds = []
        for _ in range(self.depth):
            lower, step, trips = chooses.choice((0, 0, 1)), chooses.choice((1, 1, 2)), chooses.choice((2, 3, 4))
            self.bounds.append((lower, lower + (trips - 1) * step + 1 + chooses.choice((0, step - 1)), step))
        memrefs = chooses.choice(("a", "ab", "ab"))
        self.statements = [[self.access(chooses, memrefs) for _ in range(3)] for _ in range(chooses.choice((1, 1, 2)))]
        self.order = list(range(self.depth))
        while self.order == sorted(self.order):
            chooses.shuffle(self.order)
        self.sizes = [chooses.choice((0, 2, 3)) for _ in range(self.depth)]
        if not any(self.sizes):
            self.sizes[0] = 2

    def access(self, chooses, memrefs):
        """Two indices, each factors of the counters and a number."""
        index = lambda: ([chooses.choice((0, 0, 0, 1, 1, -1, 2)) for _ in range(self.depth)], chooses.choice((-1, 0, 0, 0, 1)))
        return chooses.choice(memrefs), index(), index()

    def trips(self, loop):
        return range(*self.bounds[loop])

    def text(self, transform):
        """A module with the nest and the script that changes it."""
        names = [f"%i{loop}" for loop in range(self.depth)]

        def place(access):
            terms = lambda index: " + ".join([f"{names[at]} * {factor}" for at, factor in enumerate(index[0]) if factor] + [str(index[1] + SIZE // 2)])
            return f"%{access[0]}[{terms(access[1])}, {terms(access[2])}] : memref<{SIZE}x{SIZE}xf32>"

        lines = [f"affine.for {names[loop]} = {lower} to {upper} step {step} {{" for loop, (lower, upper, step) in enumerate(self.bounds)]
        for i, (out, left, right) in enumerate(self.statements):
            lines += [f"%l{i} = affine.load {place(left)}", f"%r{i} = affine.load {place(right)}", f"%v{i} = arith.addf %l{i}, %r{i} : f32",
                      f"affine.store %v{i}, {place(out)}"]
        lines += [f'}} loc("{self.name}")'] * self.depth
        memref = f"memref<{SIZE}x{SIZE}xf32>"
        function = "\n".join([f"func.func @{self.name}(%a: {memref}, %b: {memref}) {{", *lines, "return", "}"])
        any_op = "!transform.any_op"
        ops = {"interchange": f"%o = transform.dmx.interchange %n {self.order} : {any_op} -> {any_op}",
               "tile": f"%t, %p = transform.dmx.tile %n {self.sizes} : {any_op} -> {any_op}, {any_op}"}
        return (f"module attributes {{transform.with_named_sequence}} {{\n{function}\n"
                f"transform.named_sequence @__transform_main(%m: {any_op} {{transform.readonly}}) {{\n"
                f'%n = transform.dmx.match {{kind = "nest"}} in %m expect 1 : {any_op} -> {any_op}\n{ops[transform]}\ntransform.yield\n}}\n}}\n')

    def trips_in_order(self):
        return list(itertools.product(*(self.trips(loop) for loop in range(self.depth))))

    def is_legal(self, transform):
        """Whether each two accesses to one element, of which one writes, keep their order; by looking at all of them."""
        def later(trip):
            if transform == "interchange":
                return [trip[loop] for loop in self.order]
            tiles = [(trip[loop] - self.bounds[loop][0]) // (self.sizes[loop] * self.bounds[loop][2]) if self.sizes[loop] else trip[loop] for loop in range(self.depth)]
            return tiles + [trip[loop] for loop in range(self.depth) if self.sizes[loop]]

        touched = {}
        for trip in self.trips_in_order():
            for out, left, right in self.statements:
                for access, writes in ((left, False), (right, False), (out, True)):
                    at = (access[0],) + tuple(sum(f * t for f, t in zip(index[0], trip)) + index[1] for index in access[1:])
                    touched.setdefault(at, []).append((later(trip), writes))
        return all(first[0] <= second[0] or not (first[1] or second[1])
                   for all_of_one in touched.values() for first, second in itertools.combinations(all_of_one, 2))


MAP = re.compile(r"affine_map<\((.*?)\) -> \((.*?)\)>\((.*?)\)")


class Run:
    """What a function of loops, loads, sums and stores leaves in memory, where a sum is what was summed."""

    def __init__(self, lines):
        self.memory, self.values, self.count = {}, {}, 0
        self.block([line.strip() for line in lines])

    def number(self, expression):
        return eval(re.sub(r"%\w+", lambda found: str(self.values[found[0]]), expression))  # noqa: S307 (text of a test)

    def bound(self, text, choose):
        found = MAP.search(text)
        if not found:
            return int(re.search(r"-?\d+", text)[0])
        dims = dict(zip(found[1].split(", "), found[3].split(", ")))
        return choose(self.number(re.sub(r"d\d+", lambda dim: dims[dim[0]], each)) for each in found[2].split(", "))

    def block(self, lines):
        at = 0
        while at < len(lines):
            line = lines[at]
            if found := re.match(r"affine\.for (%\w+)(?: loc\(.*?\))? = (.*?) to (.*?)(?: step (\d+))? \{", line):
                end, depth = at, 0
                while True:
                    depth += lines[end].endswith("{") - lines[end].startswith("}")
                    if depth == 0:
                        break
                    end += 1
                for value in range(self.bound(found[2], max), self.bound(found[3], min), int(found[4] or 1)):
                    self.values[found[1]] = value
                    self.block(lines[at + 1:end])
                at = end
            elif found := re.match(r"(%\w+) = affine\.load (%\w+)\[(.*?)\]", line):
                place = (found[2], self.number(f"({found[3]})"))
                self.values[found[1]] = self.memory.get(place, place)
            elif found := re.match(r"(%\w+) = arith\.addf (%\w+), (%\w+)", line):
                self.values[found[1]] = hash(("sum", self.values[found[2]], self.values[found[3]]))
            elif found := re.match(r"affine\.store (%\w+), (%\w+)\[(.*?)\]", line):
                self.memory[found[2], self.number(f"({found[3]})")] = self.values[found[1]]
            elif not re.match(r"return|\}|func\.func", line):
                raise ValueError(line)
            at += 1
