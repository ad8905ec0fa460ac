#!/usr/bin/env python3
"""Each of these changes to a product by tensor cores, in its PTX or in the launch table, is found by the simulator's checks or in the result, as
in mutants.py. Usage: product_mutants.py BIN. Exit 77 where numpy is not there."""

import dataclasses
import pathlib
import re
import sys
import tempfile

import mutants  # exits where numpy is not there
import numpy as np
import products

# Six steps through two slots; four tiles, of which three end behind the result, by two blocks.
CASE = products.Case("rounded", (), (100, 72, 360), "as it is", "constant", True, "bias residual", True, False, ("64x64", 2))
# The same with rows of an odd number of terms, which threads copy.
COPIED = dataclasses.replace(CASE, sizes=(100, 72, 357), tile=("128x64", 2))
COPIED_MUTANTS = [
    ("nothing shows products what threads stored", r"fence\.proxy\.async;", "", -1),
    ("units of a row do not change places", r"(\txor\.b64 \t?%rd\d+, %rd\d+), %rd\d+;", r"\1, 0;", -1),
    ("a slot is full without the threads", r"(mov\.b32 \t?%r\d+), 5;", r"\1, 1;", 0),
    ("a term is stored in the place of its neighbour", r"(st\.shared\.b32 \t?\[%rd\d+)\]", r"\1+4]", 0),
    ("a term is left out", r"shl\.b32 (\t?%r\d+), %r\d+, 16;", r"mov.b32 \1, 0;", -1),
]
WAIT, ARRIVE = r"(try_wait\.parity\.shared\.b64 \t?P1, \[%r\d+\]), %r\d+,", r"mbarrier\.arrive\.shared\.b64 \t?%rd\d+, \[[^\]]*\];"
COPY, MMA = r"cp\.async\.bulk\.tensor[^;]*;", r"wgmma\.mma_async[^;]*;"
# Copies wait in the text before products do.
MUTANTS = [
    ("copies wait for the phase that has just begun", WAIT, r"\1, 0,", 0),
    ("copies wait for no phase", WAIT, r"\1, 1,", 0),
    ("products wait for the phase before the first", WAIT, r"\1, 1,", 1),
    ("products wait for even phases alone", WAIT, r"\1, 0,", 1),
    ("no fence shows the barriers", r"fence\.mbarrier_init\.release\.cluster;\s*fence\.proxy\.async;", "", 0),
    ("threads do not wait for the barriers", r"bar\.sync \t?0;", "", 0),
    ("there is no fence before products", r"wgmma\.fence\.sync\.aligned;", "", 0),
    ("a slot is released while products read it", r"wgmma\.wait_group\.sync\.aligned \t?1;", "wgmma.wait_group.sync.aligned 7;", 0),
    ("sums are read before products end", r"wgmma\.wait_group\.sync\.aligned \t?0;", "", 0),
    ("products are in no group", r"wgmma\.commit_group\.sync\.aligned;", "", 0),
    ("fewer bytes are expected than come", r"(mov\.b32 \t?%r\d+), 16384;", r"\1, 8192;", 0),
    ("more bytes are expected than come", r"(mov\.b32 \t?%r\d+), 16384;", r"\1, 20480;", 0),
    ("a barrier wants an arrival less", r"(mov\.b32 \t?%r\d+), 4;", r"\1, 3;", 0),
    ("a barrier wants an arrival more", r"(mov\.b32 \t?%r\d+), 4;", r"\1, 5;", 0),
    ("slots are not released", ARRIVE, "", 0),
    ("the last slot of a tile is not released", ARRIVE, "", -1),
    ("an operand is not copied", COPY, "", -1),
    ("coordinates are swapped", r"(cp\.async\.bulk\.tensor[^;]*\{)(%r\d+), (%r\d+)\}", r"\1\3, \2}", 0),
    ("a copy goes to another row", r"(add\.s64 \t?%rd\d+, %rd\d+), 16384;", r"\1, 16512;", -1),
    ("a copy has the other operand's map", r"(mov\.b64 \t?%rd\d+, \w+_param_)10;", r"\g<1>9;", 0),
    ("patterns are half as far apart in a descriptor", r"46116862933053603(\d\d)", "4611686155866406944", 0),
    ("a descriptor is of other terms", r"(\tor\.b64[^;]*, 46116862933053603)86", r"\g<1>88", 0),
    ("terms are taken as columns", r"(wgmma\.mma_async[^;]*p, 1, +1, 0, +)0;", r"\g<1>1;", 0),
    ("numbers are taken as f16", r"f32\.bf16\.bf16", "f32.f16.f16", 0),
    ("a product is left out", MMA, "", 1),
    ("the table gives less shared memory", r'"shared":\d+', '"shared":32768', 0),
    ("the table has another swizzle", r'"swizzle":128', '"swizzle":0', 0),
    ("the table has a smaller box", r'"box":\[64,64\]', '"box":[64,32]', 0),
    ("the table has the maps the other way round", r'"maps":\[(\{[^}]*\}),(\{[^}]*\})\]', r'"maps":[\2,\1]', 0),
    ("the table has a longer pitch", r'"strides":\[720\]', '"strides":[736]', 0),
    ("the table has fewer rows of an operand", r'"sizes":\[360,100\]', '"sizes":[360,90]', 0),
    ("the table has items of threads", r'"item":"block"', '"item":"thread"', 0),
]


class Product(mutants.Bundle):
    def __init__(self, programs, place, case):
        super().__init__(programs, place)
        subject = products.Subject(case, np.random.default_rng(1))
        if products.compile_case(place, case, subject.model()) != products.SPECIALISED:
            raise RuntimeError("the product is not by tensor cores")
        for name, value in subject.inputs.items():
            np.save(place / f"{name}.npy", value)
            self.words += ["--input", f"{name}={place}/{name}.npy"]
        for name, (value, _) in subject.outputs.items():
            self.expect(f"{name}.npy", value.astype(np.float32))
        self.take()
        self.text = self.text.replace('"grid":4,', '"grid":2,')


def shown(product):
    """ "" or what dmx-inspect lacks of the kernel, whose inline assembly has blocks of its own."""
    name = re.search(r"\.entry (\w+_specialised)\(", product.text)[1]
    _, said = product.run("dmx-inspect", product.bundle, "--what", "kernels", "--kernel", name)
    body = product.text[product.text.index(f".entry {name}(") :]
    whole = all(said.count(each) == body.count(each) for each in (".entry", "wgmma.mma_async", "cp.async.bulk", "\tret;"))
    return "" if whole else f"dmx-inspect does not show all of {name}"


def main():
    bad = 0
    for case, changes in (CASE, MUTANTS), (COPIED, COPIED_MUTANTS):
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
            subject = Product(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place), case)
            bad += mutants.judge_mutants(subject, changes, seeds=4)
            if lacks := shown(subject):
                bad += 1
                print(f"FAIL {lacks}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
