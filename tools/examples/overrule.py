"""The choices of overrule.mlir, in Python: python3 -m dmxsched tools/examples/overrule.py -o overrule.mlir"""
from dmxsched import schedule


@schedule(at="partition")
def overrule(model):
    model.match("dmir.conv", nth=0, expect=2).decide(grain=200)
    model.match(algorithm="matmul*", node="/hidden/*", expect=1).decide(algorithm="matmul")
