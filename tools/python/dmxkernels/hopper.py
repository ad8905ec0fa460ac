"""What kernels of a Hopper are made of: tensor maps, barriers in shared memory, tiles there, sums in registers."""
import contextlib

from .builder import Tensor
from .values import BYTES, SHARED, Value, fail

CLUSTER, ROW, PATTERN = "!llvm.ptr<7>", 128, 1024
DESCRIPTOR = 1 << 62 | 64 << 32  # swizzled in 128 bytes; 8 rows are 1024 bytes apart


class TensorMap:
    """How copies see a tensor: boxes, the innermost axis first; outside of it they read zeros."""

    def __init__(self, kernel, text, tensor, box, swizzle):
        self.kernel, self.text, self.tensor, self.box, self.swizzle = kernel, text, tensor, box, swizzle

    def _box(self, at):
        return f"box[{', '.join(self.kernel.use(each, 'i32') for each in at)}]"

    def load(self, to, barrier, *at):
        """Copies a box into shared memory; the barrier hears of its bytes."""
        there = self.kernel.op(f"llvm.addrspacecast {to.text} : {SHARED} to {CLUSTER}", CLUSTER)
        self.kernel.put(f"nvvm.cp.async.bulk.tensor.shared.cluster.global {there.text}, {self.text}, {barrier.text}, {self._box(at)} : {CLUSTER}, !llvm.ptr")

    def store(self, source, *at):
        """Copies a box out of shared memory; commit_stores and wait_stores say when it is done."""
        self.kernel.put(f"nvvm.cp.async.bulk.tensor.global.shared.cta {self.text}, {source.text}, {self._box(at)} : !llvm.ptr, {SHARED}")

    @property
    def bytes(self):
        size = BYTES[self.tensor.dtype]
        for each in self.box:
            size *= each
        return size


class Buffer:
    """Shared memory that threads read and write by element, row by row."""

    def __init__(self, kernel, dtype, shape):
        self.kernel, self.dtype, self.shape = kernel, dtype, shape
        size = BYTES[dtype]
        for each in shape:
            size *= each
        self.offset = kernel.room(size, PATTERN)

    @property
    def text(self):
        return self.kernel.shared_at(self.offset).text

    def _address(self, index):
        k, index = self.kernel, index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            fail(f"the buffer has {len(self.shape)} axes, and {len(index)} are given")
        at = k.number(index[0], "i32")
        for size, each in zip(self.shape[1:], index[1:]):
            at = at * size + k.number(each, "i32")
        return k.shared_at(at * BYTES[self.dtype] + self.offset)

    def __getitem__(self, index):
        return self.kernel.op(f"llvm.load {self._address(index).text} : {SHARED} -> {self.dtype}", self.dtype)

    def __setitem__(self, index, value):
        self.kernel.put(f"llvm.store {self.kernel.use(value, self.dtype)}, {self._address(index).text} : {self.dtype}, {SHARED}")


class Barrier:
    def __init__(self, kernel, text):
        self.kernel, self.text = kernel, text

    def init(self, arrivals):
        self.kernel.put(f"nvvm.mbarrier.init {self.text}, {self.kernel.use(arrivals, 'i32')} : {SHARED}, i32")

    def arrive(self):
        self.kernel.put(f"nvvm.mbarrier.arrive {self.text} : {SHARED}")

    def expect(self, size):
        """Arrives, and says how many bytes copies will bring."""
        self.kernel.put(f"nvvm.mbarrier.arrive.expect_tx {self.text}, {self.kernel.use(size, 'i32')} : {SHARED}, i32")

    def wait(self, phase):
        """Until the phase of that parity has ended."""
        word = self.kernel.number(phase, "i32")
        self.kernel.put(f"nvvm.mbarrier.try_wait.parity {self.text}, {word.text}, {self.kernel.use(10000000, 'i32')} : {SHARED}, i32, i32")


class Barriers:
    """Some in shared memory, by number."""

    def __init__(self, kernel, count):
        self.kernel, self.count, self.offset = kernel, count, kernel.room(8 * count, 8)

    def __getitem__(self, i):
        return Barrier(self.kernel, self.kernel.shared_at(self.kernel.number(i, "i32") * 8 + self.offset).text)

    def init(self, arrivals):
        for i in range(self.count):
            self[i].init(arrivals)


class Product:
    def __init__(self, left, right):
        self.left, self.right = left, right


class Tile:
    """Rows of 64 numbers of 16 bits each, as a map with swizzle 128 brings them; `rows` of them, or boxes of 64 columns and `rows` rows.
    A (rows x 64) and B (columns x 64) have their terms side by side; B of (64 x columns) has its columns side by side."""

    def __init__(self, kernel, dtype, rows, columns, address):
        self.kernel, self.dtype, self.rows, self.columns, self.address = kernel, dtype, rows, columns, address

    @property
    def text(self):
        return self.box(0).text

    def box(self, i):
        """The address of the i-th box of 64 columns."""
        return self.kernel.shared_at(self.address + i * self.rows * ROW)

    def half(self, number):
        """Rows 64 * number and on, of a tile of terms."""
        return Tile(self.kernel, self.dtype, 64, self.columns, self.address + self.kernel.number(number, "i32") * (64 * ROW))

    def descriptor(self, leading):
        k = self.kernel
        start = k.op(f"llvm.ptrtoint {self.text} : {SHARED} to i32", "i32")
        return ((start >> 4) & 0x3FFF).to("i64") | (DESCRIPTOR | leading >> 4 << 16)

    def __matmul__(self, other):
        return Product(self, other)

    @property
    def T(self):
        """Columns x terms, seen as terms x columns."""
        return Turned(self)


class Turned:
    def __init__(self, tile):
        self.tile = tile


class Tiles:
    """Slots for tiles, by number."""

    def __init__(self, kernel, dtype, rows, columns, count):
        if columns % 64 or BYTES[dtype] != 2:
            fail("a tile has a multiple of 64 columns of f16 or bf16")
        self.kernel, self.dtype, self.rows, self.columns = kernel, dtype, rows, columns
        self.each = rows * columns * 2
        self.offset = kernel.room(self.each * count, PATTERN)

    def __getitem__(self, i):
        return Tile(self.kernel, self.dtype, self.rows, self.columns, self.kernel.number(i, "i32") * self.each + self.offset)


class Acc:
    """Sums of 64 rows each and so many columns in a warpgroup's registers: acc += A @ B."""

    def __init__(self, kernel, rows, columns, values=None):
        self.kernel, self.rows, self.columns = kernel, rows, columns
        self.kind = "!llvm.struct<(" + ", ".join(["f32"] * (columns // 2)) + ")>"
        if values is None:
            zero, all_ = kernel.use(0.0, "f32"), kernel.op(f"llvm.mlir.undef : {self.kind}", self.kind)
            for i in range(columns // 2):
                all_ = kernel.op(f"llvm.insertvalue {zero}, {all_.text}[{i}] : {self.kind}", self.kind)
            values = [all_] * (rows // 64)
        self.values = values

    def parts(self):
        return self.values

    def of(self, values):
        return Acc(self.kernel, self.rows, self.columns, values)

    def _between(self, value, instruction):
        """Who compiles this does not know that products write registers later than they stand: what passes them through keeps others from being moved over it."""
        k, count = self.kernel, self.columns // 2
        each = [k.op(f"llvm.extractvalue {k.use(value)}[{i}] : {self.kind}", "f32").text for i in range(count)]
        places = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["~{memory}"])
        return k.op(f'llvm.inline_asm has_side_effects "{instruction}", "{places}" {", ".join(each)} : ({", ".join(["f32"] * count)}) -> {self.kind}', self.kind)

    def wait(self, pending=0):
        """Until at most so many groups of products are under way: with 0 these sums are there."""
        self.values = [self._between(value, f"wgmma.wait_group.sync.aligned {pending};") for value in self.values]

    def __iadd__(self, product):
        """Begins the products of 64 terms, a group; wait() says when they are done."""
        k, a, b = self.kernel, product.left, product.right
        turned = isinstance(b, Turned)
        right = b.tile if turned else b
        leading = 16 if turned else right.rows * ROW
        first, second = a.descriptor(16), right.descriptor(leading)
        values = [self._between(value, "wgmma.fence.sync.aligned;") for value in self.values]
        for step in range(4):  # of 16 terms
            beside = second + ((step * 32 if turned else step * 2048) >> 4)
            for i in range(len(values)):
                left = first + ((i * 64 * ROW + step * 32) >> 4)
                values[i] = k.op(
                    f"nvvm.wgmma.mma_async {left.text}, {beside.text}, {k.use(values[i])}, <m = 64, n = {self.columns}, k = 16>, D[<f32>, <one>], "
                    f"A[<{a.dtype}>, <one>, <row>], B[<{right.dtype}>, <one>, <{'col' if turned else 'row'}>] : {self.kind} -> {self.kind}", self.kind)
        k.put("nvvm.wgmma.commit.group.sync.aligned")
        return self.of(values)

    def store(self, to, row, column):
        """Rounded to the tensor's type, to its rows `row` and on, its columns `column` and on."""
        k = self.kernel
        lane, warp = k.thread & 31, (k.thread >> 5) & 3
        first, beside = k.number(row, "i32") + warp * 16 + (lane >> 2), k.number(column, "i32") + ((lane & 3) << 1)
        pair = f"vector<2x{to.dtype}>"
        for i, sums in enumerate(self.values):
            for half in range(2):
                for block in range(self.columns // 8):
                    both = k.op(f"llvm.mlir.undef : {pair}", pair)
                    for part in range(2):
                        number = k.op(f"llvm.extractvalue {k.use(sums)}[{4 * block + 2 * half + part}] : {self.kind}", "f32").to(to.dtype)
                        both = k.op(f"llvm.insertelement {number.text}, {both.text}[{k.use(part, 'i32')} : i32] : {pair}", pair)
                    to.put_pair((first + (64 * i + 8 * half), beside + 8 * block), both)


class Hopper:
    """What a kernel has of these; mixed into it."""

    def room(self, size, align):
        """Bytes of the block's shared memory."""
        begin = (self.shared + align - 1) // align * align
        self.shared = begin + size
        if self.shared > 232448:
            fail(f"the block has {self.shared} bytes of shared memory, and may have 232448")
        return begin

    def shared_at(self, offset):
        return self.op(f"llvm.getelementptr {self.memory}[{self.use(offset, 'i32')}] : ({SHARED}, i32) -> {SHARED}, i8", SHARED)

    def barriers(self, count):
        return Barriers(self, count)

    def buffer(self, dtype, *shape):
        return Buffer(self, dtype, shape)

    def tiles(self, dtype, rows, columns, count=1):
        return Tiles(self, dtype, rows, columns, count)

    def acc(self, rows, columns):
        return Acc(self, rows, columns)

    def fence_init(self):
        """Barriers that were made are there for copies too."""
        self.put("nvvm.fence.mbarrier.init")
        self.fence()

    def fence(self):
        """What threads wrote, copies and products see, and the other way round."""
        self.put("nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}")

    def commit_stores(self):
        self.put("nvvm.cp.async.bulk.commit.group")

    def wait_stores(self, pending=0):
        self.put(f"nvvm.cp.async.bulk.wait_group {pending}")

    @contextlib.contextmanager
    def warpgroup(self, number, registers):
        """The warpgroup of that number, which keeps so many registers a thread; others(registers) of the result are the other ones, which take more."""
        with self.when((self.thread >> 7) == number) as branch:
            self.registers(registers, gives=True)
            yield Roles(self, branch)


class Roles:
    def __init__(self, kernel, branch):
        self.kernel, self.branch = kernel, branch

    @contextlib.contextmanager
    def others(self, registers):
        with self.branch.otherwise():
            self.kernel.registers(registers, gives=False)
            yield


__all__ = ["Acc", "Barriers", "Hopper", "Tensor", "TensorMap", "Tiles", "Value"]
