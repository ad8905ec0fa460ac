"""Lies: JSON texts, protobuf messages, archives and bytes with some of their values changed, without any of their meaning kept."""
import io
import json
import zipfile

NUMBERS = [0, 1, -1, 2, 3, 7, 63, 64, 65, 127, 255, 256, 4095, 65536, 2 ** 20, 2 ** 24, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 62, 2 ** 63 - 1, -2 ** 31,
           -2 ** 63]
TEXTS = ["", "x", "main", "n", "f32", "i64", "bool", "bf16", "str", "cpu", "corsair", "add", "mul", "max", "floordiv", "arena", "const", "alias", "input", "dispatch", "copy", "if",
         "loop", "../x", "/", "%s%n", "\u0000", "\u20ac" * 40, "a" * 300]


def other_number(rng, value):
    near = [value + 1, value - 1, 2 * value, value // 2, -value, value + 64, value ^ 1 << rng.randrange(62)]
    return rng.choice(near if rng.random() < 0.6 else NUMBERS)


# --- JSON -------------------------------------------------------------------------------------------------------------
def places(value, found):
    """All (container, key) below a value."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        places(value[key], found)
    return found


def other(rng, value, everything):
    if isinstance(value, bool):
        return not value
    if rng.random() < 0.15:
        return rng.choice([None, 1.5, 1e300, [], {}, "", 0, True])
    if isinstance(value, int):
        return other_number(rng, value)
    if isinstance(value, str):  # most often another name that is there
        names = [c[k] for c, k in everything if isinstance(c[k], str)]
        return rng.choice(names) if rng.random() < 0.7 else rng.choice(TEXTS)
    if isinstance(value, list) and value:
        kind, i, j = rng.randrange(5), rng.randrange(len(value)), rng.randrange(len(value))
        if kind == 0:
            return value + value
        if kind == 1:
            return value[:i]
        if kind == 2:
            return value[:i] + value[i + 1:]
        if kind == 3:
            return value[:i] + [value[j]] + value[i:]
        return [value[j] if k == i else value[i] if k == j else v for k, v in enumerate(value)]
    return rng.choice([None, [value], {"a": value}, 0])


def lie_json(rng, text):
    """The text with up to four values replaced, taken out or exchanged."""
    whole = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        everything = places(whole, [])
        if not everything:
            break
        container, key = rng.choice(everything)
        roll = rng.random()
        if roll < 0.1 and isinstance(container, dict):
            del container[key]
        elif roll < 0.2:
            giver, taken = rng.choice(everything)
            container[key] = json.loads(json.dumps(giver[taken]))
        else:
            container[key] = other(rng, container[key], everything)
    return json.dumps(whole).encode()


# --- protobuf ---------------------------------------------------------------------------------------------------------
def varint(value):
    out, value = bytearray(), value & (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """[number, wire type, value] of a message; raises ValueError where it is none."""
    found, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError
        if at > len(data):
            raise ValueError
        found.append([number, wire, value])
    return found


def message(parts):
    out = bytearray()
    for number, wire, value in parts:
        out += varint(number << 3 | wire)
        out += varint(value) if wire == 0 else varint(len(value)) + value if wire == 2 else value
    return bytes(out)


def flip(rng, data):
    """Bytes changed, cut out, repeated."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at:at + rng.randrange(9)]
        elif kind == 2:
            data[at:at] = data[at:at + rng.randrange(9)]
        else:
            data[at:at + 1] = bytes([rng.choice((0, 1, 127, 128, 255))])
    return bytes(data)


def lie_message(rng, data, depth=0):
    """A message with one field changed, somewhere below."""
    try:
        parts = fields(data) if depth < 12 else []
    except ValueError:
        parts = []
    if not parts:
        return flip(rng, data) if data else rng.choice((b"", b"\x08\x01", b"x"))
    i = rng.randrange(len(parts))
    number, wire, value = parts[i]
    roll = rng.random()
    if roll < 0.06:
        del parts[i]
    elif roll < 0.12:
        parts.insert(i, list(rng.choice(parts)))
    elif roll < 0.18:
        j = rng.randrange(len(parts))
        parts[i][2], parts[j][2] = (parts[j][2], parts[i][2]) if parts[j][1] == wire else (parts[i][2], parts[j][2])
    elif roll < 0.21:
        parts[i][0] = rng.randrange(1, 30)
    elif wire == 0:
        parts[i][2] = other_number(rng, value if value < 2 ** 63 else value - 2 ** 64)
    elif wire == 2 and value.isascii() and value and rng.random() < 0.2:
        texts = [p[2] for p in parts if p[1] == 2 and p[2].isascii()] + [t.encode() for t in TEXTS]
        parts[i][2] = rng.choice(texts)
    elif wire == 2:
        parts[i][2] = lie_message(rng, value, depth + 1)
    else:
        parts[i][2] = flip(rng, value)[:len(value)].ljust(len(value), b"\0")
    return message(parts)


# --- archives ---------------------------------------------------------------------------------------------------------
def lie_archive(rng, data):
    """A ZIP archive with right checksums whose JSON lies, whose records are cut, missing or doubled; or with wrong bytes."""
    if rng.random() < 0.25:
        return flip(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        records = [(info.filename, archive.read(info)) for info in archive.infolist()]
    i = rng.randrange(len(records))
    texts = [k for k, (name, _) in enumerate(records) if name.endswith(".json")]
    if texts and rng.random() < 0.7:
        i = rng.choice(texts)
    name, content = records[i]
    if name.endswith(".json") and rng.random() < 0.9:
        records[i] = (name, lie_json(rng, content))
    elif rng.random() < 0.2:
        del records[i]
    elif rng.random() < 0.2:
        records.append(records[i])
    elif rng.random() < 0.2:
        records[i] = (rng.choice(TEXTS[1:]) + name, content)
    else:
        records[i] = (name, flip(rng, content))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in records:
            archive.writestr(zipfile.ZipInfo(name.replace("\0", "_") or "_"), content)
    return out.getvalue()
