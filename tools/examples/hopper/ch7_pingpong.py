#!/usr/bin/env python3
"""Chapter 7: ping-pong: blocks stay and take tile after tile; two warpgroups have a tile each, in turns, so that one stores while the other multiplies."""
from chapter import kernel, product, turn

SLOTS, ROWS, COLUMNS = 6, 128, 128
PROCESSORS = 132
TURN = 5  # named barriers 5 and 6: whose products it is


def make(m, n, terms):
    steps, across = terms // 64, n // COLUMNS
    tiles = m // ROWS * across

    @kernel(grid=min(tiles, PROCESSORS), block=384, operands={"a": ("f16", [m, terms]), "b": ("f16", [terms, n])}, results={"d": ("f32", [m, n])},
            maps={"left": {"tensor": "a", "box": [64, ROWS], "swizzle": 128}, "right": {"tensor": "b", "box": [64, 64], "swizzle": 128}})
    def pingpong(k, a, b, d, left, right):
        A, B = k.tiles("f16", ROWS, 64, SLOTS), k.tiles("f16", 64, COLUMNS, SLOTS)
        full, empty, blocks = k.barriers(SLOTS), k.barriers(SLOTS), k.blocks

        def place(tile):
            """Four rows of tiles at a time, column after column: neighbours read the same of b."""
            rows = min(4, m // ROWS)
            group, rest = tile // (rows * across), tile % (rows * across)
            return (group * rows + rest % rows) * ROWS, rest // rows * COLUMNS

        with k.when(k.thread == 0):
            full.init(1)
            empty.init(4)  # warps of the one that has the tile
            k.fence_init()
        k.sync()
        with k.warpgroup(2, registers=40) as roles:
            with k.when(k.thread == 256), k.loop(k.block, tiles, blocks, slot=0, phase=1) as tile:
                row, column = place(tile.index)
                with k.loop(0, steps, slot=tile.slot, phase=tile.phase) as it:
                    empty[it.slot].wait(it.phase)
                    full[it.slot].expect(left.bytes + COLUMNS // 64 * right.bytes)
                    left.load(A[it.slot], full[it.slot], it.index * 64, row)
                    for box in range(COLUMNS // 64):
                        right.load(B[it.slot].box(box), full[it.slot], column + 64 * box, it.index * 64)
                    it.slot, it.phase = turn(k, it.slot, it.phase, SLOTS)
                tile.slot, tile.phase = it.slot, it.phase
        with roles.others(registers=232):
            group, leads = k.thread >> 7, (k.thread & 31) == 0
            skipped = group * steps
            with k.when(group == 1):
                k.arrive(TURN, 256)
            with k.loop(k.block + group * blocks, tiles, blocks * 2, slot=skipped % SLOTS, phase=(skipped // SLOTS) & 1) as tile:
                row, column = place(tile.index)
                k.sync(group + TURN, 256)
                with k.loop(0, steps, slot=tile.slot, phase=tile.phase, before=0, acc=k.acc(ROWS, COLUMNS)) as it:
                    full[it.slot].wait(it.phase)
                    it.acc += A[it.slot] @ B[it.slot]
                    it.acc.wait(1)
                    with k.when(leads & (it.index > 0)):
                        empty[it.before].arrive()
                    it.before = it.slot
                    it.slot, it.phase = turn(k, it.slot, it.phase, SLOTS)
                with k.when(tile.index + blocks < tiles):  # the other one has a tile yet
                    k.arrive((TURN + 1) - group, 256)
                it.acc.wait()
                with k.when(leads):
                    empty[it.before].arrive()
                it.acc.store(d, row, column)
                behind = it.slot + steps  # the other one's slots
                tile.slot, tile.phase = behind % SLOTS, (it.phase + behind // SLOTS) & 1

    return pingpong


if __name__ == "__main__":
    product(make)
