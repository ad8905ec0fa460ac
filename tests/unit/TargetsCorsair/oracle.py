#!/usr/bin/env python3
"""One 64 x 64 tile of a product by the executable form of the numerics specification: oracle.py K FILE > tile

FILE has 64 x K then K x 64 f32 numbers; the tile's f16 bits go to standard output. bfp_ref.py lies beside the checkout
(../shared/design); without it the exit status is 77 and the tests skip.
"""
import pathlib
import struct
import sys

DESIGN = pathlib.Path(__file__).resolve().parents[4] / "shared" / "design"
if not (DESIGN / "bfp_ref.py").exists():
    print(f"{DESIGN / 'bfp_ref.py'} is not there", file=sys.stderr)
    sys.exit(77)
sys.dont_write_bytecode = True
sys.path.insert(0, str(DESIGN))
import bfp_ref as ref  # noqa: E402

k = int(sys.argv[1])
data = pathlib.Path(sys.argv[2]).read_bytes()
values = struct.unpack(f"<{len(data) // 4}f", data)
a, w = values[:64 * k], values[64 * k:]
chunks = range(0, k, 64)
mode = max(0, (len(chunks) - 1).bit_length())
rows = [[ref.quant_block(list(a[i * k + c:i * k + c + 64])) for c in chunks] for i in range(64)]
columns = [[ref.quant_block([w[(c + i) * 64 + j] for i in range(64)]) for c in chunks] for j in range(64)]
out = []
for row in rows:
    for column in columns:
        parts = [ref.dimc_dot(e, m, f, n) for (e, m), (f, n) in zip(row, column)]
        parts += [(0, 0)] * ((1 << mode) - len(parts))
        out.append(ref.f16bits(ref.f16(ref.Fr(ref.ppr(parts, mode)))))
sys.stdout.buffer.write(struct.pack(f"<{len(out)}H", *out))
