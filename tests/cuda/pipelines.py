#!/usr/bin/env python3
"""The stop schedule.pipeline: short, taken up again to the same bundle, and what it says is what is compiled. Usage: pipelines.py BIN.

Each edit of the text of a 128 x 256 x 256 product is obeyed (other code, the result that numpy has) or refused by name with exit code 1; of ten
kernels a fill and a drain of the ring are taken out, each of which is refused by the ring's name. Exit 77 where numpy is not there."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import products  # exits where numpy is not there
from products import Case

np = products.np
BIN = products.BIN
MOST_LINES = 300
PRODUCT = Case("rounded", (), (128, 256, 256), "as it is", "constant", True, "bias relu", True, False, ("128x128", 4))
# Operands by maps both ways round and by threads, of a batch, of open rows; convolutions are in CONVOLUTIONS.
OTHERS = [
    Case("bf16", (), (128, 64, 64), "as it is", "as it is", True, "", True, False, ("64x64", 2)),
    Case("f16", (3,), (72, 80, 128), "turned", "turned", False, "bias", True, False, ("64x128", 3)),
    Case("rounded", (), (100, 72, 357), "as it is", "constant", True, "bias residual", True, False, ("128x64", 2)),
    Case("rounded", (), (100, 71, 100), "as it is", "as it is", True, "bias both", True, False, ("64x256", 2)),
    Case("rounded", (2, 2), (40, 56, 72), "as it is", "constant turned", True, "scale bias residual", True, True, ("128x128", 2)),
    Case("bf16", (3, 5), (40, 56, 72), "turned", "as it is", False, "bias relu", True, False, ("64x64", 3)),
    Case("f16", (), (712, 264, 72), "as it is", "as it is", True, "residual bias", True, False, ("128x256", 3)),
]
CONVOLUTIONS = """func.func @main(%x: tensor<2x16x8x16xbf16> {dmir.name = "x"}) -> (tensor<2x40x8x16xf32> {dmir.name = "y"}) {
  %w = dmir.constant dense<0.5> : tensor<40x16xTAPSxbf16>
  %y = dmir.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: PAD>, high = array<i64: PAD>}
      : (tensor<2x16x8x16xbf16>, tensor<40x16xTAPSxbf16>) -> tensor<2x40x8x16xf32> loc("y")
  return %y : tensor<2x40x8x16xf32>
}
"""
OBEYED = None
# One row of tiles has one order, and the work follows from the tiles.
SAME_CODE = ["tiles column by column", "other work"]


def replaced(*pairs):
    """An edit: each pattern is there, and all its places change."""
    def edit(text):
        for pattern, by in pairs:
            text, count = re.subn(pattern, by, text)
            assert count, f"'{pattern}' is not in the text"
        return text
    return edit


def tile(rows, columns):
    """The tile with all that follows from it."""
    return replaced((r"tile 128 x 128", f"tile {rows} x {columns}"), (r"size 32768 on", f"size {(rows + columns) * 128} on"),
                    (r'(cuda.role "multiply" warpgroups) 2 registers \d+', rf"\1 {rows // 64}"), (r'(cuda.role "copy" warpgroups 1) registers \d+', r"\1"),
                    (r"multiply 64 x 128 x 16", f"multiply 64 x {columns} x 16"),
                    (r'("left" map [^\n]*box) \[64, 128\]', rf"\1 [64, {rows}]"), (r'("right" map [^\n]*box) \[64, 128\]', rf"\1 [64, {columns}]"))  # fmt: skip


def body_of(lines, op):
    """Where an op with a body begins and ends: at a line that is set in as far."""
    begin = next(i for i, line in enumerate(lines) if line.lstrip().startswith(op + " "))
    indent = lines[begin][:len(lines[begin]) - len(lines[begin].lstrip())]
    return begin, next(i for i in range(begin + 1, len(lines)) if lines[i].startswith(indent + "}")) + 1


def without(op):
    """The text without an op and its body."""
    def edit(text):
        lines = text.splitlines()
        begin, end = body_of(lines, op)
        return "\n".join(lines[:begin] + lines[end:])
    return edit


def swapped(text):
    """The roles in the other order."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if "cuda.role" in line)
    return "\n".join(lines[:first] + [lines[first + 1], lines[first]] + lines[first + 2:])


def twice(op):
    """An op and its body two times."""
    def edit(text):
        lines = text.splitlines()
        begin, end = body_of(lines, op)
        return "\n".join(lines[:end] + lines[begin:])
    return edit


# What is edited, how, and what a refusal says.
EDITS = [
    ("fewer slots", replaced((r"slots 4", "slots 3")), OBEYED),
    ("as many slots as fit", replaced((r"slots 4", "slots 7")), OBEYED),
    ("more slots than fit", replaced((r"slots 4", "slots 8")), r"ring 'operands' has `slots` 8, they are 1 to 7 of 32768 bytes in shared"),
    ("a slot for products that run on", replaced((r"slots 4", "slots 1")), r'dlir\.ring "operands" has slots 1; it is 2 to 7'),
    ("no slots", replaced((r"slots 4", "slots 0")), r"ring 'operands' has `slots` 0, they are 1 to 7"),
    ("negative slots", replaced((r"slots 4", "slots -2")), r"ring 'operands' has `slots` -2"),
    ("smaller slots", replaced((r"size 32768 on", "size 16384 on")), r'dlir\.ring "operands" has size 16384; .* has 32768'),
    ("slots that no memory holds", replaced((r"size 32768 on", "size 9000000000000000000 on")), r"ring 'operands' has a `size` of 9000000000000000000 bytes, it is 1 to 232448"),
    ("another memory", replaced((r'ring "shared"', 'ring "global"')), r"ring 'operands' lies in global, which the device does not have; it has shared"),
    ("filled by whom it is drained", replaced((r'from "copy" 0 to "multiply" 0', 'from "multiply" 0 to "copy" 0')), r"does not drain: `to` says which do"),
    ("products that end with their step", replaced((r"behind 1", "behind 0")), OBEYED),
    ("products that run on for longer", replaced((r"behind 1", "behind 2")), r"cuda\.multiply has behind 2; it is 0 to 1"),
    ("tiles column by column", replaced((r"raster 8", "raster 1")), OBEYED),
    ("no order of tiles", replaced((r"raster 8", "raster 0")), r"cuda\.pipeline has raster 0; it is 1 to"),
    ("a smaller tile", tile(64, 128), OBEYED),
    ("a tile that no decision has", tile(192, 192), OBEYED),
    ("a wide tile", tile(64, 256), OBEYED),
    ("another tile alone", replaced((r"tile 128 x 128", "tile 64 x 128")), r'dlir\.ring "operands" has size 32768; a slot .* has 24576'),
    ("a tile of odd rows", replaced((r"tile 128 x 128", "tile 100 x 128")), r"cuda\.pipeline has a tile of 100 rows; it is a multiple of 64 up to 256"),
    ("an endless tile", replaced((r"tile 128 x 128", "tile 128 x 4096")), r"has a tile of 4096 columns"),
    ("fewer registers", replaced((r"registers 240", "registers 200")), OBEYED),
    ("no registers are moved", replaced((r" registers \d+", "")), OBEYED),
    ("one role without registers", replaced((r" registers 24 ", " ")), r'cuda\.role "copy" has no registers, but the other role'),
    ("more registers than there are", replaced((r"registers 240", "registers 248")), r"has registers 248, .* have 66560; .* has 65536"),
    ("registers that the copier cannot keep", replaced((r"registers 24 ", "registers 16 ")), r'cuda\.role "copy" has registers 16; it is 24 to 168'),
    ("odd registers", replaced((r"registers 240", "registers 236")), r"registers 236; they are a multiple of 8"),
    ("a third warpgroup that multiplies", replaced((r"(\"multiply\" warpgroups) 2", r"\1 3")), r'cuda\.role "multiply" has warpgroups 3; it is 2'),
    ("two warpgroups that copy", replaced((r"(\"copy\" warpgroups) 1", r"\1 2")), r'cuda\.role "copy" has warpgroups 2; it is 1'),
    ("a role of another name", replaced((r'role "copy"', 'role "fetch"')), r'it has two, first "multiply", then "copy"'),
    ("the same name twice", replaced((r'role "copy"', 'role "multiply"')), r"another one has the name 'multiply'"),
    ("roles the other way round", swapped, r'it has two, first "multiply", then "copy"'),
    ("more steps than the product has", replaced((r"times\[4\]", "times[5]")), r"dlir\.loop of queue \"multiply\" has other trips than a tile has steps of 64 terms: 4"),
    ("more steps that are filled", replaced((r"(?s)times\[4\](.*?fill)", r"times[5]\1")), r"ring 'operands' is filled"),
    ("a tile more often", replaced((r"times\[%\w+\]", "times[2]")), r"has other trips than the block has tiles: those of dlir\.register 0"),
    ("the left operand by threads", replaced((r'"left" map [^\n]*', '"left" threads 8')), OBEYED),
    ("both by threads, a pair at a time", replaced((r'("left"|"right") map [^\n]*', r"\1 threads 1")), OBEYED),
    ("pairs that share out badly", replaced((r'"left" map [^\n]*', '"left" threads 7')), r'cuda\.copy "left" has threads that load 7 pairs'),
    ("a smaller box", replaced((r"box \[64, 128\]", "box [64, 64]")), r'cuda\.copy "left" has a map of other box'),
    ("another pitch", replaced((r'strides <"512">', 'strides <"528">')), r'cuda\.copy "left" has a map of other strides'),
    ("an operand twice", replaced((r'copy "right" [^\n]*', 'copy "left" threads 8')), r'cuda\.copy "left" stands where the right operand'),
    ("an operand alone", replaced((r'\n[^\n]*copy "right" [^\n]*', "")), r"dlir\.fill holds 1 copies"),
    ("a third operand", replaced((r'copy "right"', 'copy "middle"')), r"copies 'middle'; a product has the operands left and right"),
    ("no way of copying", replaced((r'"left" map [^\n]*', '"left"')), r"left operand is by a map or by threads"),
    ("sums by the eighth", replaced((r"write columns 64", "write columns 16")), OBEYED),
    ("sums in no whole parts", replaced((r"write columns 64", "write columns 48")), r"cuda\.write has columns 48"),
    ("sums that are not written", replaced((r"\n[^\n]*cuda.write [^\n]*", "")), r"has 0 times cuda\.write; there is one"),
    ("a product of fewer columns", replaced((r"multiply 64 x 128 x 16", "multiply 64 x 64 x 16")), r"cuda\.multiply has columns 64; it is 128"),
    ("no product", replaced((r"\n[^\n]*cuda.multiply [^\n]*", "")), r"has 0 times cuda\.multiply; there is one"),
    ("no pipeline", without("cuda.pipeline"), r"has no cuda\.pipeline, which the stage schedule\.pipeline makes"),
    ("a fill twice", twice("dlir.fill"), r"ring 'operands' is filled 2 times where it is drained 1"),
    ("a drain twice", twice("dlir.drain"), r"ring 'operands' is filled 1 times where it is drained 2"),
    ("other work", replaced((r"work = 2 : i64", "work = 999 : i64")), OBEYED),
]  # fmt: skip


def dmxc(*arguments):
    return subprocess.run([str(BIN / "dmxc"), *map(str, arguments)], capture_output=True, text=True, timeout=600)


def must(*arguments):
    done = dmxc(*arguments)
    if done.returncode:
        raise RuntimeError(f"dmxc ended with {done.returncode}: {done.stderr.strip()[-600:]}")


def files_of(bundle):
    """The bundle's files, but for what the manifest says of the model's."""
    files = {path.relative_to(bundle).as_posix(): path.read_bytes() for path in sorted(bundle.rglob("*")) if path.is_file()}
    del files["manifest.sha256"]
    manifest = json.loads(files["manifest.json"])
    del manifest["model"]
    return {**files, "manifest.json": manifest}


class Subject:
    """A case with its model, bundle and text."""

    def __init__(self, place, case):
        self.place, self.case = place, case
        place.mkdir()
        self.random = np.random.default_rng(66)
        self.values = products.Subject(case, self.random)
        (place / "m.onnx").write_bytes(self.values.model())
        (place / "s.mlir").write_text(products.schedule_of(case))
        self.options = ["-q", "-t", "cuda:sm_90a", "--numerics", "bf16" if case.numbers == "rounded" else "strict"]
        must(place / "m.onnx", *self.options, "--schedule", place / "s.mlir", "--bundle-format", "dir", "-o", place / "whole.bundle")
        must(place / "m.onnx", *self.options, "--schedule", place / "s.mlir", "--emit", "schedule.pipeline", "-o", place / "p.mlir")
        self.text = (place / "p.mlir").read_text()

    def resume(self, text):
        """What dmxc says of the text; m.bundle is made of it."""
        (self.place / "e.mlir").write_text(text)
        return dmxc(self.place / "e.mlir", "--from", "schedule.pipeline", *self.options, "--bundle-format", "dir", "-o", self.place / "m.bundle")

    def check_resumed(self):
        done = self.resume(self.text)
        if done.returncode:
            raise RuntimeError(f"its own text ends with {done.returncode}: {done.stderr[-300:]}")
        differs = [name for name, data in files_of(self.place / "whole.bundle").items() if files_of(self.place / "m.bundle").get(name) != data]
        if differs:
            raise RuntimeError(f"the bundle of the text differs in {differs}")


def check_edit(subject, edit, refusal):
    done = subject.resume(edit(subject.text))
    if refusal is OBEYED:
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")
        products.check_run(subject.place, subject.values, subject.random)
        return
    if done.returncode != 1 or not re.search(refusal, done.stderr):
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr.strip()[-400:]}")


def check_text(subject):
    subject.check_resumed()
    lines = subject.text.count("\n")
    if lines >= MOST_LINES:
        raise RuntimeError(f"the text has {lines} lines")
    if "schedule.pipeline" not in dmxc("--print-phases", "-t", "cuda:sm_90a").stdout:
        raise RuntimeError("--print-phases does not show the stop")
    must(subject.place / "m.onnx", *subject.options, "--schedule", subject.place / "s.mlir", "--dump-phases", subject.place / "dump", "-o", subject.place / "d.bundle")
    [dumped] = (subject.place / "dump").rglob("*pipeline.mlir")
    if dumped.read_text() != subject.text:
        raise RuntimeError("--dump-phases writes another text than --emit")


def code_of(subject):
    return (subject.place / "m.bundle" / "code" / "cuda" / "sm_90a" / "kernels.ptx").read_bytes()


def check_unbalanced(text, resume):
    """How many of a fill and a drain that are taken out are refused by the ring's name."""
    found = 0
    for op in ("fill", "drain"):
        done = resume(without(f"dlir.{op}")(text))
        if done.returncode == 1 and f"ring 'operands' is never {'filled' if op == 'fill' else 'drained'}" in done.stderr:
            found += 1
        else:
            print(f"FAIL a {op} less: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return found


def check_convolution(place, taps, pad):
    place.mkdir()
    (place / "m.mlir").write_text(CONVOLUTIONS.replace("TAPS", taps).replace("PAD", pad))
    must(place / "m.mlir", "-q", "-t", "cuda:sm_90a", "--emit", "schedule.pipeline", "-o", place / "p.mlir")
    def resume(text):
        (place / "e.mlir").write_text(text)
        return dmxc(place / "e.mlir", "--from", "schedule.pipeline", "-q", "-t", "cuda:sm_90a", "-o", place / "m.bundle")
    done = resume((place / "p.mlir").read_text())
    if done.returncode:
        raise RuntimeError(f"its own text ends with {done.returncode}: {done.stderr[-300:]}")
    return check_unbalanced((place / "p.mlir").read_text(), resume)


def main():
    bad = taken = 0

    def attempt(label, function, *arguments):
        nonlocal bad
        try:
            found = function(*arguments)
            print(f"ok   {label}", flush=True)
            return found
        except (RuntimeError, AssertionError, AttributeError, ValueError) as error:
            bad += 1
            print(f"FAIL {label}: {error}", flush=True)

    with tempfile.TemporaryDirectory(prefix="dmxc-cuda-pipelines-") as folder:
        place = pathlib.Path(folder)
        subject = Subject(place / "product", PRODUCT)
        attempt("the text of a product", check_text, subject)
        whole, codes = code_of(subject), {}
        for label, edit, refusal in EDITS:
            attempt(f"{label}: {'refused' if refusal else 'obeyed'}", check_edit, subject, edit, refusal)
            if refusal is OBEYED:
                codes.setdefault(code_of(subject), []).append(label)
        alike = [labels for labels in codes.values() if len(labels) > 1]
        if alike != [SAME_CODE] or codes.get(whole) != SAME_CODE:
            bad += 1
            print(f"FAIL edits that are obeyed make the same code: {alike}")
        taken += check_unbalanced(subject.text, subject.resume)
        for number, case in enumerate(OTHERS):
            other = attempt(case.label(), Subject, place / str(number), case)
            if other:
                attempt("    taken up again", other.check_resumed)
                taken += check_unbalanced(other.text, other.resume)
        for taps, pad in (("1x1", "0, 0"), ("3x3", "1, 1")):
            taken += attempt(f"a convolution of {taps}", check_convolution, place / taps, taps, pad) or 0
    kernels = 3 + len(OTHERS)
    print(f"{len(EDITS)} edits, of which {sum(refusal is OBEYED for _, _, refusal in EDITS)} are obeyed; {taken} of {2 * kernels} fills and drains that are taken out are refused")
    return int(bool(bad) or taken != 2 * kernels)


if __name__ == "__main__":
    sys.exit(main())
