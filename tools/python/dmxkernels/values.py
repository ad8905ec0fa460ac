"""Numbers of a kernel, while its text is written: what + - * / % << & and comparisons of them print."""
import sys
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)
INTEGERS, FLOATS = {"i1": 1, "i16": 16, "i32": 32, "i64": 64}, {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
SHARED = "!llvm.ptr<3>"


class KernelError(Exception):
    """What is wrong with a kernel, with the author's file and line."""


def place():
    """The author's file and line: the innermost frame that is not of this package."""
    frame = sys._getframe(1)
    while frame and (str(Path(frame.f_code.co_filename).resolve().parent) == HERE or "contextlib" in frame.f_code.co_filename):
        frame = frame.f_back
    return (Path(frame.f_code.co_filename).name, frame.f_lineno) if frame else ("?", 0)


def fail(clause):
    file, line = place()
    raise KernelError(f"{file}:{line}: {clause}")


class Value:
    """A number or an address that a kernel computes."""

    def __init__(self, kernel, text, kind, scope):
        self.kernel, self.text, self.kind, self.scope, self.line = kernel, text, kind, scope, place()[1]

    def _two(self, other, integer, real, turned=False):
        name = real if self.kind in FLOATS else integer
        if name is None:
            fail(f"numbers of {self.kind} have no such operation")
        a, b = self.kernel.use(self), self.kernel.use(other, self.kind)
        if turned:
            a, b = b, a
        return self.kernel.op(f"{name} {a}, {b} : {self.kind}", self.kind)

    def _compare(self, other, integer, real):
        how = f"arith.cmpf {real}" if self.kind in FLOATS else f"arith.cmpi {integer}"
        return self.kernel.op(f"{how}, {self.kernel.use(self)}, {self.kernel.use(other, self.kind)} : {self.kind}", "i1")

    def __add__(self, other):
        return self._two(other, "arith.addi", "arith.addf")

    def __radd__(self, other):
        return self._two(other, "arith.addi", "arith.addf", True)

    def __sub__(self, other):
        return self._two(other, "arith.subi", "arith.subf")

    def __rsub__(self, other):
        return self._two(other, "arith.subi", "arith.subf", True)

    def __mul__(self, other):
        return self._two(other, "arith.muli", "arith.mulf")

    def __rmul__(self, other):
        return self._two(other, "arith.muli", "arith.mulf", True)

    def __truediv__(self, other):
        return self._two(other, None, "arith.divf")

    def __floordiv__(self, other):
        return self._two(other, "arith.divui", None)

    def __mod__(self, other):
        return self._two(other, "arith.remui", None)

    def __lshift__(self, other):
        return self._two(other, "arith.shli", None)

    def __rshift__(self, other):
        return self._two(other, "arith.shrui", None)

    def __and__(self, other):
        return self._two(other, "arith.andi", None)

    def __or__(self, other):
        return self._two(other, "arith.ori", None)

    def __xor__(self, other):
        return self._two(other, "arith.xori", None)

    def __lt__(self, other):
        return self._compare(other, "ult", "olt")

    def __le__(self, other):
        return self._compare(other, "ule", "ole")

    def __gt__(self, other):
        return self._compare(other, "ugt", "ogt")

    def __ge__(self, other):
        return self._compare(other, "uge", "oge")

    def __eq__(self, other):
        return self._compare(other, "eq", "oeq")

    def __ne__(self, other):
        return self._compare(other, "ne", "une")

    __hash__ = None

    def __bool__(self):
        fail("a number of the kernel is known when it runs, and not here: use when() or select()")

    def to(self, kind):
        """The same number as another type; integers are widened with zeros."""
        own = self.kernel.use(self)
        if kind == self.kind:
            return self
        sizes = {**INTEGERS, **FLOATS}
        grows = sizes[kind] > sizes[self.kind]
        if self.kind in INTEGERS and kind in INTEGERS:
            how = "arith.extui" if grows else "arith.trunci"
        elif self.kind in FLOATS and kind in FLOATS:
            how = "arith.extf" if grows else "arith.truncf"
        else:
            how = "arith.uitofp" if kind in FLOATS else "arith.fptoui"
        return self.kernel.op(f"{how} {own} : {self.kind} to {kind}", kind)
