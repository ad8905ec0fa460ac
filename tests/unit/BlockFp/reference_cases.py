#!/usr/bin/env python3
"""Cases computed by the executable form of the numerics specification: reference_cases.py KIND COUNT SEED > stream

bfp_ref.py lies beside the checkout (../shared/design); without it the exit status is 77 and the tests skip. The stream is
little-endian records; ReferenceTest.cpp reads them. KIND is
  blocks   quantization of COUNT random blocks: p, B, rounding and A, exponents over all of f32
  numbers  COUNT each of: BFP32_1, f16, f32, narrow floats, SBFP12_16, dot products with reduction and OB
  mlp      a Linear-ReLU-Linear network in BASIC numerics: BFP16_64 operands, BFP32_1 bias in OB, f16 results
"""
import math
import pathlib
import random
import struct
import sys

DESIGN = pathlib.Path(__file__).resolve().parents[4] / "shared" / "design"
if not (DESIGN / "bfp_ref.py").exists():
    print(f"{DESIGN / 'bfp_ref.py'} is not there", file=sys.stderr)
    sys.exit(77)
sys.dont_write_bytecode = True
sys.path.insert(0, str(DESIGN))
import bfp_ref as ref  # noqa: E402

MODES = ["RNE", "RTN", "RTP", "SR"]  # the order of dmx::blockfp::Rounding
out = sys.stdout.buffer


def floats(bits):
    return struct.unpack(f"<{len(bits)}f", struct.pack(f"<{len(bits)}I", *bits))


def f32_bits(value):
    """Bits of a reference result; its one NaN and its infinities too."""
    return ref.f2b(float(value))


def random_bits(r, exponent):
    """An f32 number of at most this (unbiased) exponent; often with few significand bits, so that ties are frequent."""
    biased = max(0, min(exponent, exponent - min(int(r.expovariate(0.4)), 40)) + 127)
    width = r.choice((23, 23, 23, 12, 10, 9, 8, 6, 5, 4, 2))
    fraction = r.getrandbits(width) << (23 - width)
    if r.random() < 0.1:
        fraction = (1 << 23) - 1 - (fraction >> r.randrange(8, 24))  # just below the next power of two
    return r.getrandbits(1) << 31 | biased << 23 | fraction


def block_bits(r, size, exponent):
    bits = [0 if r.random() < 0.05 else random_bits(r, exponent) for _ in range(size)]
    bits[r.randrange(size)] = r.getrandbits(1) << 31 | (exponent + 127) << 23 | r.getrandbits(23)
    special = r.random()
    if special < 0.01:
        bits[r.randrange(size)] = r.choice((0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345))
    elif special < 0.02:
        bits = [b & 0x807fffff for b in bits]  # a subnormal block
    return bits


def blocks(r, count):
    for _ in range(count):
        p, size, mode, a = r.choice((4, 6, 8, 16)), r.choice((16, 32, 64, 128)), r.randrange(4), r.randrange(2)
        bits = block_bits(r, size, r.randint(-126, 127))
        u = [r.getrandbits(16) if r.random() < 0.9 else r.choice((0, 1, 0xffff)) for _ in range(size)]
        e, m = ref.quant_block(floats(bits), p, MODES[mode], not a, u)
        out.write(struct.pack(f"<6H{size}I{size}H{size}h", p, size, mode, a, e, 0, *bits, *u, *m))


def numbers(r, count):
    def put(kind, *words):
        out.write(struct.pack("<2I8I", kind, 0, *words, *[0] * (8 - len(words))))

    def number(low=-126, high=127):
        bits = random_bits(r, r.randint(low, high))
        return bits, ref.Fr(floats([bits])[0])

    for _ in range(count):
        bits, q = number()
        put(0, bits, f32_bits(ref.bfp32(q)))
        bits, q = number(-20, 17)
        wide = ref.f16(q, sat=False)
        put(1, bits, ref.f16bits(ref.f16(q)), (0xfc00 if wide < 0 else 0x7c00) if math.isinf(wide) else ref.f16bits(wide))
        a, qa = number()
        b, qb = number()
        put(2, a, b, f32_bits(ref.f32(qa + qb)), f32_bits(ref.f32(qa * qb)), f32_bits(ref.f32(qa / qb)) if qb else 0)
        narrow(r, put, *number(-22, 20))
        sbfp(r, put)
        dots(r, put)


def narrow(r, put, bits, q):
    e, m = r.choice(((4, 3), (5, 2), (4, 4), (3, 2), (2, 1), (8, 7)))
    bias = 127 if e == 8 else r.choice((2 ** (e - 1) - 1, r.randint(0, 18)))
    flush, unsigned, compat = r.getrandbits(1), r.getrandbits(1), r.getrandbits(1)
    value = ref.fp_cast(q, e, m, bias, flush, unsigned, compat)
    put(3, bits, e, m, bias, flush, unsigned, compat, f32_bits(value))


def sbfp(r, put):
    bits = [0 if r.random() < 0.1 else random_bits(r, r.randint(-14, 6)) for _ in range(16)]
    if r.random() < 0.02:
        bits = [0] * 16
    bias = r.randint(4, 18)
    code, scale, mantissas, _ = ref.sbfp12(floats(bits), bias)
    put(4, bias, code, f32_bits(scale))
    out.write(struct.pack("<16I16h", *bits, *mantissas))


def dots(r, put):
    """Up to 8 block pairs, reduced, and added to an OB value."""
    p, size = r.choice(((4, 128), (4, 16), (8, 64), (8, 64), (8, 32), (16, 64)))
    mode = r.randrange(4)
    count = r.randint(1, 1 << mode)
    limit = 2 ** (p - 1) - 1
    center = r.choice((0, 0, 0, -64, 60))
    pairs, parts = [], []
    for _ in range(count):
        pair = [[r.randint(center + 100, center + 150)] + [r.randint(-limit, limit) for _ in range(size)] for _ in range(2)]
        pair = [[max(1, min(254, x[0]))] + x[1:] for x in pair]
        pairs += pair
        parts.append(ref.dimc_dot(pair[0][0], pair[0][1:], pair[1][0], pair[1][1:], p))
    old_bits = f32_bits(ref.bfp32(ref.Fr(floats([random_bits(r, r.randint(-20, 20))])[0])))
    try:
        reduced = ref.ppr(parts, mode)
        total = ref.ob_acc(ref.Fr(floats([old_bits])[0]), reduced)
    except AttributeError:
        return dots(r, put)  # the reference has no arithmetic on infinities
    put(5, p, size, count, mode, old_bits, f32_bits(reduced), f32_bits(total))
    for x in pairs:
        out.write(struct.pack(f"<H{size}h", *x))


def linear(x, w, bias, rows, depth, columns):
    """x[rows][depth] f16 values, w[depth][columns]: f16 values of x w + bias, the bias preloaded into OB."""
    blocks = depth // 64
    qa = [[ref.quant_block([float(v) for v in x[i][64 * b:64 * b + 64]]) for b in range(blocks)] for i in range(rows)]
    qb = [[ref.quant_block([w[64 * b + k][j] for k in range(64)]) for b in range(blocks)] for j in range(columns)]
    mode = (blocks - 1).bit_length()
    result = []
    for i in range(rows):
        row = []
        for j in range(columns):
            new = ref.ppr([ref.dimc_dot(*qa[i][b], *qb[j][b]) for b in range(blocks)], mode)
            row.append(ref.f16(ref.Fr(ref.ob_acc(ref.bfp32(ref.Fr(bias[j])), new))))
        result.append(row)
    return result


def mlp(r, rows):
    depth, hidden, columns = 128, 64, 64
    draw = lambda n, m: [[floats([random_bits(r, r.randint(-6, 0))])[0] for _ in range(m)] for _ in range(n)]
    x, w1, w2 = draw(rows, depth), draw(depth, hidden), draw(hidden, columns)
    b1, b2 = draw(1, hidden)[0], draw(1, columns)[0]
    inner = linear(x, w1, b1, rows, depth, hidden)
    inner = [[max(v, ref.Fr(0)) for v in row] for row in inner]
    result = linear(inner, w2, b2, rows, hidden, columns)
    out.write(struct.pack("<4I", rows, depth, hidden, columns))
    for part in (*x, *w1, b1, *w2, b2):
        out.write(struct.pack(f"<{len(part)}f", *part))
    for row in result:
        out.write(struct.pack(f"<{len(row)}H", *[ref.f16bits(v) for v in row]))


def main():
    kind, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    {"blocks": blocks, "numbers": numbers, "mlp": mlp}[kind](random.Random(seed), count)


main()
