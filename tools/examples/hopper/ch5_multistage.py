#!/usr/bin/env python3
"""Chapter 5: a product in stages: four slots, filled three steps ahead by one thread while the warpgroup multiplies."""
from chapter import kernel, product, turn

SLOTS, ROWS, COLUMNS = 4, 128, 128


def make(m, n, terms):
    steps, across = terms // 64, n // COLUMNS

    @kernel(grid=m // ROWS * across, block=128, operands={"a": ("f16", [m, terms]), "b": ("f16", [terms, n])}, results={"d": ("f32", [m, n])},
            maps={"left": {"tensor": "a", "box": [64, ROWS], "swizzle": 128}, "right": {"tensor": "b", "box": [64, 64], "swizzle": 128}})
    def multistage(k, a, b, d, left, right):
        A, B, full = k.tiles("f16", ROWS, 64, SLOTS), k.tiles("f16", 64, COLUMNS, SLOTS), k.barriers(SLOTS)
        row, column, first = k.block // across * ROWS, k.block % across * COLUMNS, k.thread == 0

        def fill(slot, step):
            full[slot].expect(left.bytes + COLUMNS // 64 * right.bytes)
            left.load(A[slot], full[slot], step * 64, row)
            for box in range(COLUMNS // 64):
                right.load(B[slot].box(box), full[slot], column + 64 * box, step * 64)

        with k.when(first):
            full.init(1)
            k.fence_init()
        k.sync()
        with k.when(first):
            for step in range(SLOTS - 1):
                fill(step, step)
        with k.loop(0, steps, slot=0, phase=0, acc=k.acc(ROWS, COLUMNS)) as it:
            full[it.slot].wait(it.phase)
            it.acc += A[it.slot] @ B[it.slot]
            it.acc.wait(1)  # the products of the step before are done, so its slot is free
            k.sync()
            ahead = it.index + (SLOTS - 1)
            with k.when(first & (ahead < steps)):
                fill((it.slot + (SLOTS - 1)) % SLOTS, ahead)
            it.slot, it.phase = turn(k, it.slot, it.phase, SLOTS)
        it.acc.wait()
        it.acc.store(d, row, column)

    return multistage


if __name__ == "__main__":
    product(make)
