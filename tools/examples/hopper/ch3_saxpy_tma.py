#!/usr/bin/env python3
"""Chapter 3: saxpy by TMA: one thread asks for boxes of both operands, all wait at a barrier for their bytes, and read them from shared memory."""
from chapter import chapter, eighths, kernel, np

ROWS, COLUMNS, BOX = 256, 32, 64  # a block has 64 rows


@kernel(grid=ROWS // BOX, block=128, operands={"x": ("f32", [ROWS, COLUMNS]), "y": ("f32", [ROWS, COLUMNS])}, results={"z": ("f32", [ROWS, COLUMNS])},
        maps={"xs": {"tensor": "x", "box": [COLUMNS, BOX]}, "ys": {"tensor": "y", "box": [COLUMNS, BOX]}})
def saxpy_tma(k, x, y, z, xs, ys):
    first, second = (k.buffer("f32", BOX, COLUMNS) for _ in range(2))
    full = k.barriers(1)
    row = k.block * BOX
    with k.when(k.thread == 0):
        full[0].init(1)
        k.fence_init()
    k.sync()
    with k.when(k.thread == 0):
        full[0].expect(xs.bytes + ys.bytes)
        xs.load(first, full[0], 0, row)
        ys.load(second, full[0], 0, row)
    full[0].wait(0)
    with k.loop(0, BOX * COLUMNS // 128) as it:
        i = it.index * 128 + k.thread
        r, c = i // COLUMNS, i % COLUMNS
        z[row + r, c] = k.fma(2.0, first[r, c], second[r, c])


random = np.random.default_rng(3)
x, y = (eighths(random, ROWS, COLUMNS).astype(np.float32) for _ in range(2))
chapter(saxpy_tma, {"x": x, "y": y}, {"z": 2 * x + y})
