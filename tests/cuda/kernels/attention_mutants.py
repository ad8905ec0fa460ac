#!/usr/bin/env python3
"""Each of these changes to an attention by tensor cores, in its PTX or in the launch table, is found by the simulator's checks or in the result, as in
../mutants.py: keys by tensor maps under a mask for which a block looks at all keys again, and keys that threads copy.

Usage: attention_mutants.py BIN. A plain run takes one of twelve, with DMXC_LONG=1 all. Exit 77 where numpy is not there."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import attention  # noqa: E402  exits where numpy is not there
import mutants  # noqa: E402
from attention import LEAST, Case, np  # noqa: E402
from sampling import sample  # noqa: E402

LEAST_SQNR = 40  # powers are rounded to bf16
# Five tiles through three slots; the last row sees nothing. The result is by values whose columns are neighbours.
MASKED = Case(1, 1, 300, 300, 64, 64, "blind", LEAST)
COPIED = Case(1, 1, 150, 330, 20, 40)
# Copies wait in the text before products do, and those before the first tile before those of the tile that follows.
WAIT, ARRIVE = r"(try_wait\.parity\.shared\.b64 \t?P1, \[%r\d+\]), %r\d+,", r"mbarrier\.arrive\.shared\.b64 \t?%rd\d+, \[[^\]]*\];"
COPY, COMMIT = r"cp\.async\.bulk\.tensor[^;]*;", r"wgmma\.commit_group\.sync\.aligned;"
PROXY, OWN = r"fence\.proxy\.async;", r"bar\.sync \t?%r\d+, 128;"
OF_WORDS = r"\{ \.reg \.pred p; setp\.eq\.u32 p, 0, 0; wgmma\.mma_async[^{]*\{[^}]*\}, \{%r\d+, %r\d+, %r\d+, %r\d+\}[^}]*\}"
MUTANTS = [
    ("copies wait for the phase that has just begun", WAIT, r"\1, 0,", 0),
    ("a slot is filled again while it is read", WAIT, r"\1, 1,", 0),
    ("the first scores wait for the phase before the first", WAIT, r"\1, 1,", 1),
    ("scores that follow wait for even phases alone", WAIT, r"\1, 0,", 2),
    ("no fence shows the barriers", r"fence\.mbarrier_init\.release\.cluster;\s*fence\.proxy\.async;", "", 0),
    ("threads do not wait for the barriers", r"bar\.sync \t?0;", "", 0),
    ("products are not shown the queries", PROXY, "", -1),
    ("a warp does not wait for the others' queries", OWN, "", -1),
    ("there is no fence before the first scores", r"wgmma\.fence\.sync\.aligned;", "", 0),
    ("there is no fence before scores that follow", r"wgmma\.fence\.sync\.aligned;", "", 1),
    ("there is no fence before the result's products", r"wgmma\.fence\.sync\.aligned;", "", -1),
    ("the first scores are read while they are made", r"wgmma\.wait_group\.sync\.aligned \t?0;", "", 0),
    ("sums are read, and slots released, while products run",
     r"wgmma\.wait_group\.sync\.aligned \t?0;([^;]*)wgmma\.wait_group\.sync\.aligned \t?0;", r"\1", -1),
    ("the result's products are in no group", COMMIT, "", -1),
    ("fewer bytes are expected than come", r"(mov\.b32 \t?%r\d+), 16384;", r"\1, 8192;", 0),
    ("more bytes are expected than come", r"(mov\.b32 \t?%r\d+), 16384;", r"\1, 20480;", 0),
    ("a slot's readers want an arrival less", r"(mov\.b32 \t?%r\d+), 8;", r"\1, 7;", 0),
    ("a slot's readers want an arrival more", r"(mov\.b32 \t?%r\d+), 8;", r"\1, 9;", 0),
    ("slots are not released", ARRIVE, "", -1),
    ("keys are not copied", COPY, "", 0),
    ("values are not copied", COPY, "", -1),
    ("coordinates are swapped", r"(cp\.async\.bulk\.tensor[^;]*\{)(%r\d+), (%r\d+)\}", r"\1\3, \2}", -1),
    ("values are copied by the keys' map", r"(mov\.b64 \t?%rd\d+, \w+_param_)9;", r"\g<1>8;", 0),
    ("patterns are half as far apart in a descriptor", r"46116862933053603(\d\d)", "4611686155866406944", 0),
    ("values are taken along the other axis", r"(setp\.eq\.u32 p, 0, 0; wgmma\.mma_async[^;]*p, 1, 1, )1;", r"\g<1>0;", 0),
    ("queries are taken as f16", r"f32\.bf16\.bf16", "f32.f16.f16", 0),
    ("a product of values is left out", OF_WORDS, "", -1),
    ("words of powers change places", r"(setp\.eq\.u32 p, 0, 0; wgmma\.mma_async[^{]*\{[^}]*\}, \{%r\d+), (%r\d+), (%r\d+)", r"\1, \3, \2", 0),
    ("no warp asks to look again", r"vote\.sync\.any\.pred (\t?%p\d+), %p\d+, -1;", r"setp.ne.u32 \1, 0, 0;", 0),
    ("a warp does not tell whether it asks", r"st\.shared\.b32 \t?\[%rd\d+\+\d+\], %r\d+;", "", -1),
    ("others are told before all have read", r"bar\.sync \t?0;", "", -1),
    ("the table gives less shared memory", r'"shared":\d+', '"shared":49152', 0),
    ("the table has another swizzle", r'"swizzle":128', '"swizzle":0', 0),
    ("the table has a smaller box", r'"box":\[64,64\]', '"box":[64,32]', 0),
    ("the table has the maps the other way round", r'"maps":\[(\{[^}]*\}),(\{[^}]*\})\]', r'"maps":[\2,\1]', 0),
    ("the table has fewer keys", r'"sizes":\[64,300\]', '"sizes":[64,250]', 0),
]  # fmt: skip
COPIED_MUTANTS = [
    ("nothing shows products what threads stored", PROXY, "", 1),
    ("a slot is full without a warp", r"(mov\.b32 \t?%r\d+), 4;", r"\1, 3;", 0),
    ("a slot waits for a warp more", r"(mov\.b32 \t?%r\d+), 4;", r"\1, 5;", 0),
    ("a term is stored in the place of its neighbour", r"(st\.shared\.b32 \t?\[%rd\d+)\]", r"\1+4]", 0),
    ("a term is stored in the place of its neighbour, of queries", r"(st\.shared\.b32 \t?\[%rd\d+)\]", r"\1+4]", -1),
    ("copies wait for the phase that has just begun", WAIT, r"\1, 0,", 0),
    ("warpgroups take more registers than there are", r"(setmaxnreg\.inc\.sync\.aligned\.u32 \t?)200;", r"\g<1>248;", 0),
    ("slots are not released", ARRIVE, "", -1),
]

class Subject(mutants.Bundle):
    def __init__(self, programs, place, case):
        super().__init__(programs, place)
        shapes = attention.compile_case(place, case, "--bundle-format", "dir")
        inputs = attention.inputs_of(case, shapes, np.random.default_rng(1))
        for name, value in inputs.items():
            np.save(place / f"{name}.npy", value)
            self.words += ["--input", f"{name}={place}/{name}.npy"]
        self.expect("y.npy", attention.wanted(case, inputs, rounds=True).astype(np.float32))
        self.words += ["--min-sqnr", LEAST_SQNR]
        self.take()
        if "attention_specialised" not in self.text:
            raise RuntimeError("it is not by tensor cores")


def main():
    bad = 0
    for case, changes in (MASKED, MUTANTS), (COPIED, COPIED_MUTANTS):
        with tempfile.TemporaryDirectory(prefix="dmxc-cuda-") as place:
            subject = Subject(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(place), case)
            bad += mutants.judge_mutants(subject, sample(changes, 12), seeds=4)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
