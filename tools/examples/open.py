"""The open values of open.mlir, in Python: python3 -m dmxsched tools/examples/open.py -o open.mlir"""
from dmxsched import param, schedule


@schedule(at="partition")
def open_values(model):
    conv = model.match("dmir.conv", nth=0, expect=2)
    items = param("items", divides=conv.dim(0), default=8)
    conv.decide(grain=param("grain", range=(1, items, 3)))
