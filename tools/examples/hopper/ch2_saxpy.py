#!/usr/bin/env python3
"""Chapter 2: saxpy of 256 x 32 numbers: an element a thread, a row of warps a block."""
from chapter import chapter, eighths, kernel, np

ROWS, COLUMNS = 256, 32


@kernel(grid=ROWS * COLUMNS // 128, block=128, operands={"x": ("f32", [ROWS, COLUMNS]), "y": ("f32", [ROWS, COLUMNS])},
        results={"z": ("f32", [ROWS, COLUMNS])})
def saxpy(k, x, y, z):
    i = k.block * 128 + k.thread
    row, column = i // COLUMNS, i % COLUMNS
    z[row, column] = k.fma(2.0, x[row, column], y[row, column])


random = np.random.default_rng(2)
x, y = (eighths(random, ROWS, COLUMNS).astype(np.float32) for _ in range(2))
chapter(saxpy, {"x": x, "y": y}, {"z": 2 * x + y})
