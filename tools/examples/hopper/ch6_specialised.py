#!/usr/bin/env python3
"""Chapter 6: specialised warpgroups: one copies, and gives registers to two that multiply; barriers say which slots are full and which are empty."""
from chapter import kernel, product, turn

SLOTS, ROWS, COLUMNS = 6, 128, 128
WARPS = 8  # that multiply


def make(m, n, terms):
    steps, across = terms // 64, n // COLUMNS

    @kernel(grid=m // ROWS * across, block=384, operands={"a": ("f16", [m, terms]), "b": ("f16", [terms, n])}, results={"d": ("f32", [m, n])},
            maps={"left": {"tensor": "a", "box": [64, ROWS], "swizzle": 128}, "right": {"tensor": "b", "box": [64, 64], "swizzle": 128}})
    def specialised(k, a, b, d, left, right):
        A, B = k.tiles("f16", ROWS, 64, SLOTS), k.tiles("f16", 64, COLUMNS, SLOTS)
        full, empty = k.barriers(SLOTS), k.barriers(SLOTS)
        row, column = k.block // across * ROWS, k.block % across * COLUMNS
        with k.when(k.thread == 0):
            full.init(1)
            empty.init(WARPS)
            k.fence_init()
        k.sync()
        with k.warpgroup(2, registers=40) as roles:
            with k.when(k.thread == 256), k.loop(0, steps, slot=0, phase=1) as it:
                empty[it.slot].wait(it.phase)
                full[it.slot].expect(left.bytes + COLUMNS // 64 * right.bytes)
                left.load(A[it.slot], full[it.slot], it.index * 64, row)
                for box in range(COLUMNS // 64):
                    right.load(B[it.slot].box(box), full[it.slot], column + 64 * box, it.index * 64)
                it.slot, it.phase = turn(k, it.slot, it.phase, SLOTS)
        with roles.others(registers=232):
            group, leads = k.thread >> 7, (k.thread & 31) == 0
            with k.loop(0, steps, slot=0, phase=0, before=0, acc=k.acc(64, COLUMNS)) as it:
                full[it.slot].wait(it.phase)
                it.acc += A[it.slot].half(group) @ B[it.slot]
                it.acc.wait(1)
                with k.when(leads & (it.index > 0)):
                    empty[it.before].arrive()
                it.before = it.slot
                it.slot, it.phase = turn(k, it.slot, it.phase, SLOTS)
            it.acc.wait()
            it.acc.store(d, row + group * 64, column)

    return specialised


if __name__ == "__main__":
    product(make)
