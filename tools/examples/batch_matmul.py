"""The loops of a batch of products on corsair, whose trips are tiles of 64x64, in another order and cut once more.

    python3 -m dmxsched tools/examples/batch_matmul.py -o batch_matmul.mlir"""
from dmxsched import PerfectNest, param, schedule, transform


@transform(requires=PerfectNest, ensures=PerfectNest)
def interchange(nest, outer, inner):
    nest.swap(outer, inner)


@schedule(at="schedule.tiles")
def tiled(module):
    product = module.match(kind="nest", expect=1)
    interchange(product, 0, 1)
    columns = param("columns", one_of=[1, 2, 5], default=2)
    tiles, points = product.tile([2, columns])
    points.unroll(full=True)
