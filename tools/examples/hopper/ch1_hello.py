#!/usr/bin/env python3
"""Chapter 1: hello. Two blocks of four threads say who they are."""
from chapter import chapter, kernel, np


@kernel(grid=2, block=4, operands={"x": ("i32", [8])}, results={"y": ("i32", [8])}, prints=4)
def hello(k, x, y):
    who = k.block * 4 + k.thread
    y[who] = x[who] + who
    with k.when(k.thread == 0):
        k.printf("hello from block %d", k.block)
    with k.when(who % 2 == 1):
        k.printf("thread %d of block %d has %d", k.thread, k.block, x[who])


x = np.arange(8, dtype=np.int32) * 10
chapter(hello, {"x": x}, {"y": x + np.arange(8, dtype=np.int32)})
