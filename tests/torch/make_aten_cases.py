#!/usr/bin/python3
"""Writes aten_cases.json: operators of ATen with inputs and what torch computes for them (Debian's python3-torch 1.13).
Usage: make_aten_cases.py > aten_cases.json. Operators that this torch does not have are composed of those that it has. The calls are
in aten/; a new family goes to the end, so that the random numbers of the others stay."""
import json
import sys

from aten.algebra import factors, matrix_functions, singular_values, systems
from aten.arranged import arranged
from aten.calls import cases
from aten.composites import aliases, composites, libraries
from aten.elements import activations, elementwise, reductions
from aten.layers import convolutions, dropouts, losses, norms, plain_recurrent, pools, products, recurrent, resampling
from aten.orders import orders
from aten.shapes import creations, indexing, joins, views
from aten.vision import vision

for family in (elementwise, activations, views, joins, creations, reductions, indexing, products, convolutions, pools, norms, losses,
               resampling, recurrent, dropouts, aliases, plain_recurrent, libraries, composites, orders, vision, arranged, systems, factors,
               singular_values, matrix_functions):
    first = len(cases)
    family()
    for entry in cases[first:]:
        entry["family"] = family.__name__
sys.stdout.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
