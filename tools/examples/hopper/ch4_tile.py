#!/usr/bin/env python3
"""Chapter 4: a product of one tile, 128 x 128 with 64 terms, by one warpgroup: tiles come by TMA, swizzled, wgmma reads them where they lie."""
from chapter import chapter, eighths, kernel, np

M, N, K = 128, 128, 64


@kernel(grid=1, block=128, operands={"a": ("f16", [M, K]), "b": ("f16", [K, N])}, results={"d": ("f32", [M, N])},
        maps={"left": {"tensor": "a", "box": [64, M], "swizzle": 128}, "right": {"tensor": "b", "box": [64, K], "swizzle": 128}})
def tile(k, a, b, d, left, right):
    A, B = k.tiles("f16", M, 64)[0], k.tiles("f16", K, N)[0]
    full = k.barriers(1)
    with k.when(k.thread == 0):
        full[0].init(1)
        k.fence_init()
    k.sync()
    with k.when(k.thread == 0):
        full[0].expect(left.bytes + 2 * right.bytes)
        left.load(A, full[0], 0, 0)
        for box in range(N // 64):
            right.load(B.box(box), full[0], 64 * box, 0)
    full[0].wait(0)
    acc = k.acc(M, N)
    acc += A @ B
    acc.wait()
    acc.store(d, 0, 0)


random = np.random.default_rng(4)
a, b = eighths(random, M, K), eighths(random, K, N)
chapter(tile, {"a": a.astype(np.float16), "b": b.astype(np.float16)}, {"d": (a @ b).astype(np.float32)})
