"""A kernel while its text is written: scopes, loops, memory, printing."""
import contextlib
import json

from .values import BYTES, FLOATS, SHARED, KernelError, Value, fail, place  # noqa: F401

LOOP = "{llvm.loop_annotation = #llvm.loop_annotation<unroll = <disable = true>>}"


class Tensor:
    """An operand or a result in the GPU's memory, row by row: x[i], x[i, j] read and write elements."""

    def __init__(self, kernel, text, name, dtype, shape):
        self.kernel, self.text, self.name, self.dtype, self.shape = kernel, text, name, dtype, shape

    def _address(self, index):
        k, index = self.kernel, index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            fail(f"'{self.name}' has {len(self.shape)} axes, and {len(index)} are given")
        at = k.number(index[0], "i64")
        for size, each in zip(self.shape[1:], index[1:]):
            at = at * k.extent(size) + k.number(each, "i64")
        return k.op(f"llvm.getelementptr {self.text}[{k.use(at)}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {self.dtype}", "!llvm.ptr<1>")

    def __getitem__(self, index):
        at = self._address(index)
        return self.kernel.op(f"llvm.load {at.text} : !llvm.ptr<1> -> {self.dtype}", self.dtype)

    def __setitem__(self, index, value):
        at = self._address(index)
        self.kernel.put(f"llvm.store {self.kernel.use(value, self.dtype)}, {at.text} : {self.dtype}, !llvm.ptr<1>")

    def put_pair(self, index, pair):
        """Two neighbours, a vector, at an even place."""
        at = self._address(index)
        size = 2 * BYTES[self.dtype]
        self.kernel.put(f"llvm.store {pair.text}, {at.text} {{alignment = {size} : i64}} : {pair.kind}, !llvm.ptr<1>")


class Loop:
    """What a loop carries, by name: assigned inside it, that is what the next round has; behind it, what it ended with."""

    def __init__(self, kernel, index, carried):
        self.__dict__.update(_kernel=kernel, index=index, _carried=carried)

    def __getattr__(self, name):
        try:
            return self._carried[name]
        except KeyError:
            fail(f"the loop carries no '{name}'; it carries {', '.join(self._carried) or 'nothing'}")

    def __setattr__(self, name, value):
        if name not in self._carried:
            fail(f"the loop carries no '{name}'; it carries {', '.join(self._carried) or 'nothing'}")
        self._carried[name] = value


class Branch:
    def __init__(self, kernel, close):
        self.kernel, self.close = kernel, close

    def otherwise(self):
        """The other branch; it begins where the first one ends."""
        if self.kernel.lines[-1] is not self.close:
            fail("otherwise() stands right behind the branch")
        self.kernel.lines.pop()
        return self.kernel.inside("} else {", self)


class Builder:
    """Text, line by line."""

    def __init__(self):
        self.lines, self.count, self.scopes, self.made = [], 0, [0], 1

    # --- lines ---------------------------------------------------------------------------------------------------
    def put(self, text):
        file, line = place()
        self.lines.append(f'{text} loc("{file}":{line}:1)')

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def op(self, text, kind):
        name = self.fresh()
        self.put(f"{name} = {text}")
        return Value(self, name, kind, self.scopes[-1])

    def use(self, value, kind=None):
        """A value's name; a number of Python becomes one of `kind`."""
        if not isinstance(value, Value):
            if kind is None or isinstance(value, bool) and kind != "i1" or not isinstance(value, (int, float)):
                fail(f"{value!r} is no number of a kernel")
            text = f"{float(value)!r}" if kind in FLOATS else str(int(value)).lower()
            return self.op(f"arith.constant {text} : {kind}" if kind != "i1" else f"arith.constant {'true' if value else 'false'}", kind).text
        if value.scope not in self.scopes:
            fail(f"a number that line {value.line} computes is used outside of the loop or branch that computes it; let the loop carry it")
        if kind and value.kind != kind:
            fail(f"a number of {value.kind} stands where {kind} is wanted; say .to(\"{kind}\")")
        return value.text

    def number(self, value, kind):
        """A value of that type: integers are widened or cut."""
        if isinstance(value, Value):
            return value.to(kind)
        return self.op(f"arith.constant {int(value)} : {kind}", kind)

    # --- scopes --------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def inside(self, opening, branch):
        self.lines.append(opening)
        self.scopes.append(self.made)
        self.made += 1
        yield branch
        self.scopes.pop()
        self.put("}")
        branch.close = self.lines[-1]

    def when(self, condition):
        """with k.when(i < n): ..., and with the result's otherwise(): ..."""
        return self.inside(f"scf.if {self.use(condition, 'i1')} {{", Branch(self, None))

    def select(self, condition, one, other):
        first = one if isinstance(one, Value) else other
        a, b = self.use(one, first.kind), self.use(other, first.kind)
        return self.op(f"arith.select {self.use(condition, 'i1')}, {a}, {b} : {first.kind}", first.kind)

    @contextlib.contextmanager
    def loop(self, begin, end, step=1, **carried):
        """with k.loop(0, n, total=zero) as it: it.total = it.total + x[it.index]"""
        bounds = [self.use(each, "i32") for each in (begin, end, step)]
        packed = {name: value if hasattr(value, "parts") else self._one(value) for name, value in carried.items()}
        inner = {name: value.parts() for name, value in packed.items()}
        flat = [part for parts in inner.values() for part in parts]
        given, index = [self.fresh() for _ in flat], self.fresh()
        results, kinds = [self.fresh() for _ in flat], [part.kind for part in flat]
        text = f"scf.for {index} = {bounds[0]} to {bounds[1]} step {bounds[2]}"
        if flat:
            pairs = ", ".join(f"{name} = {self.use(part)}" for name, part in zip(given, flat))
            text = f"{', '.join(results)} = {text} iter_args({pairs}) -> ({', '.join(kinds)})"
        self.lines.append(f"{text} : i32 {{")
        self.scopes.append(self.made)
        self.made += 1
        values = lambda names, scope: self._spread(packed, [Value(self, name, kind, scope) for name, kind in zip(names, kinds)])
        it = Loop(self, Value(self, index, "i32", self.scopes[-1]), values(given, self.scopes[-1]))
        yield it
        last = [part for name, value in it._carried.items() for part in (value if hasattr(value, "parts") else self._one(value, packed[name])).parts()]
        if [part.kind for part in last] != kinds:
            fail("the loop carries numbers of other types than it began with")
        if flat:
            self.put(f"scf.yield {', '.join(self.use(part) for part in last)} : {', '.join(kinds)}")
        self.scopes.pop()
        self.put(f"}} {LOOP}")
        it._carried.update(values(results, self.scopes[-1]))

    def _one(self, value, like=None):
        kind = like.parts()[0].kind if like else "i32"
        return Single(value if isinstance(value, Value) else self.op(f"arith.constant {int(value)} : {kind}", kind))

    @staticmethod
    def _spread(packed, values):
        out, at = {}, 0
        for name, like in packed.items():
            count = len(like.parts())
            out[name] = like.of(values[at:at + count])
            at += count
        return out

    # --- what threads are --------------------------------------------------------------------------------------------
    def register(self, name):
        return self.op(f"nvvm.read.ptx.sreg.{name} : i32", "i32")

    @property
    def thread(self):
        return self.register("tid.x")

    @property
    def block(self):
        return self.register("ctaid.x")

    @property
    def blocks(self):
        return self.register("nctaid.x")

    def sync(self, number=None, threads=None):
        """All threads of the block meet; or so many at one of 15 named barriers."""
        if number is None:
            self.put("nvvm.barrier0")
        else:
            # As any op is written: in its own form what stands behind it is taken for a reduction.
            both = f"{self.use(number, 'i32')}, {self.use(threads, 'i32')}"
            self.put(f'"nvvm.barrier"({both}) <{{operandSegmentSizes = array<i32: 1, 1, 0>}}> : (i32, i32) -> ()')

    def arrive(self, number, threads):
        """Tells a named barrier, and does not wait there."""
        self.put(f"nvvm.barrier.arrive id = {self.use(number, 'i32')} number_of_threads = {self.use(threads, 'i32')}")

    def registers(self, count, gives):
        """Of each thread of the warpgroup from here on: some are given, or taken of those that others give."""
        self.put(f"nvvm.setmaxregister {'decrease' if gives else 'increase'} {count}")

    def fma(self, a, b, c):
        return self.op(f"math.fma {self.use(a, 'f32')}, {self.use(b, 'f32')}, {self.use(c, 'f32')} : f32", "f32")


class Single:
    """One value that a loop carries."""

    def __init__(self, value):
        self.value = value

    def parts(self):
        return [self.value]

    def of(self, values):
        return values[0]


def table(rows):
    """A kernel file in comments."""
    text = json.dumps({"kernels": rows}, indent=1)
    return "".join(f"// {line}\n" for line in text.splitlines()).replace('// {\n//  "kernels"', '// {"kernels"', 1)
