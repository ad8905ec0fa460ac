#!/usr/bin/env python3
"""Each of these changes to a product by tensor cores, in its PTX or in the launch table, is found by the simulator's checks or in the result, as
in mutants.py. Usage: product_mutants.py BIN. Exit 77 where numpy is not there."""

import pathlib
import sys
import tempfile

import mutants  # exits where numpy is not there
import numpy as np
import products

# Six steps through two slots; four tiles, of which three end behind the result, by two blocks.
CASE = products.Case("rounded", (), (100, 72, 360), "as it is", "constant", True, "bias residual", True, False, ("64x64", 2))
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
    def __init__(self, programs, place):
        super().__init__(programs, place)
        subject = products.Subject(CASE, np.random.default_rng(1))
        if products.compile_case(place, CASE, subject.model()) != products.SPECIALISED:
            raise RuntimeError("the product is not by tensor cores")
        for name, value in subject.inputs.items():
            np.save(place / f"{name}.npy", value)
            self.words += ["--input", f"{name}={place}/{name}.npy"]
        for name, (value, _) in subject.outputs.items():
            self.expect(f"{name}.npy", value.astype(np.float32))
        self.take()
        self.text = self.text.replace('"grid":4,', '"grid":2,')


def main():
    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
        return 1 if mutants.judge_mutants(Product(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place)), MUTANTS, seeds=4) else 0


if __name__ == "__main__":
    sys.exit(main())
