"""Kernels for GPUs in Python, as text: a function that is run once prints the kernel as MLIR, which dmxc compiles. README.md has more.

    @kernel(grid=64, block=128, operands={"x": ("f32", [8192]), "y": ("f32", [8192])}, results={"z": ("f32", [8192])})
    def saxpy(k, x, y, z):
        i = k.block * 128 + k.thread
        z[i] = k.fma(2.0, x[i], y[i])

    z = saxpy.run({"x": x, "y": y})["z"]
"""
from .builder import Builder, Tensor, table
from .hopper import Hopper, TensorMap
from .run import Run, compile_kernel, run_bundle
from .values import SHARED, KernelError, Value, fail

__all__ = ["Kernel", "KernelError", "Run", "kernel"]


class Kernel(Builder, Hopper):
    """A kernel: its text, and running it."""

    def __init__(self, function, grid, block, operands, results, maps, prints):
        super().__init__()
        self.name, self.grid, self.threads, self.shared, self.memory = function.__name__, grid, block, 0, "%memory"
        self.operands, self.results, self.map_plans = operands, dict(results), maps or {}
        self.formats, self.records = [], prints
        if prints:
            self.results["said"] = ("i32", [grid * block, 1 + 4 * prints])
        self._trace(function)

    def _trace(self, function):
        tensors, maps = {}, []
        for name, (dtype, shape) in {**self.operands, **self.results}.items():
            tensors[name] = Tensor(self, f"%{name}", name, dtype, shape)
        for name, plan in self.map_plans.items():
            if plan["tensor"] not in tensors:
                fail(f"the map '{name}' is of '{plan['tensor']}', which is neither an operand nor a result")
            maps.append(TensorMap(self, f"%{name}", tensors[plan["tensor"]], plan["box"], plan.get("swizzle", 0)))
        if self.records:
            self._begin_printing(tensors["said"])
        function(self, *[tensor for name, tensor in tensors.items() if name != "said"], *maps)
        arguments = [f"%{name}: !llvm.ptr<1>" for name in tensors] + [f"%{name}: !llvm.ptr" for name in self.map_plans]
        body = [f"  {line}" for line in self.lines]
        self.text = "\n".join([
            self.header().rstrip(), "module {",
            "llvm.mlir.global external @memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>",
            f"llvm.func @{self.name}({', '.join(arguments)}) {{", f"  %memory = llvm.mlir.addressof @memory : {SHARED}", *body,
            "  llvm.return", "}", "}", ""])

    def header(self):
        shaped = lambda tensors: [{"name": name, "dtype": dtype, "shape": shape} for name, (dtype, shape) in tensors.items()]
        launch = {"grid": self.grid, "block": self.threads, "shared": self.shared, "maps": list(self.map_plans.values())}
        return table([{"name": self.name, "operands": shaped(self.operands), "results": shaped(self.results),
                       "bodies": [{"target": "cuda", "symbol": self.name, "launch": launch}]}])

    def extent(self, size):
        return self.number(size, "i64")

    # --- printing ----------------------------------------------------------------------------------------------------
    def _begin_printing(self, said):
        self.said = said
        self.who = self.block * self.threads + self.thread
        for i in range(said.shape[1]):
            said[self.who, i] = 0

    def printf(self, text, *numbers):
        """As C's, with up to three %d: into a ring of the thread's last lines, which run() prints."""
        if not self.records:
            fail("say how many lines of a thread are kept: kernel(prints=8)")
        if text.count("%d") != len(numbers) or len(numbers) > 3:
            fail(f"{text!r} has {text.count('%d')} %d for {len(numbers)} numbers; up to 3 are printed")
        self.formats.append(text)
        count = self.said[self.who, 0]
        at = (count % self.records) * 4 + 1
        for i, number in enumerate([len(self.formats), *numbers]):
            self.said[self.who, at + i] = number
        self.said[self.who, 0] = count + 1

    def printed(self, said):
        """The lines, thread by thread, of each the last ones."""
        lines = []
        for row in said:
            for i in range(max(0, row[0] - self.records), row[0]):
                site, *numbers = row[1 + 4 * (i % self.records): 5 + 4 * (i % self.records)]
                text = self.formats[site - 1]
                lines.append(text % tuple(int(n) for n in numbers[: text.count("%d")]))
        return lines

    # --- running -----------------------------------------------------------------------------------------------------
    def compile(self, folder=None):
        return compile_kernel(self.name, self.text, folder)

    def run(self, inputs, seed=0, blocks=0, folder=None):
        """A Run: outputs by name, the estimated clocks, the PTX. `blocks`: so many of the grid alone, for the clocks of large ones."""
        return run_bundle(self, self.compile(folder), inputs, seed, blocks)


def kernel(grid, block, operands, results, maps=None, prints=0):
    """Makes a Kernel of a function of (k, operands, results, maps). `maps`: by name {"tensor", "box", "swizzle"}."""
    return lambda function: Kernel(function, grid, block, operands, results, maps, prints)
