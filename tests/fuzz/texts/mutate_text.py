"""Other texts from MLIR's: what a reader of them believes - numbers, kinds of attributes, keys, names, types, the order of lines - is changed,
and the syntax mostly kept, so that the change reaches what stands behind the parser."""
import re

TOKEN = re.compile(r'''//[^\n]*|"(?:[^"\\\n]|\\.)*"|[%#!@^][\w$.-]+|@"[^"\n]*"|->|\d[\w.]*(?:[eE][+-]?\d+)?|[A-Za-z_][\w$.]*|\s+|.''')
NUMBERS = [0, 1, -1, 2, 3, 7, 63, 64, 127, 255, 256, 4095, 4096, 65536, 1000000, 2 ** 20, 2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 40, 2 ** 46, 2 ** 62, 2 ** 63 - 1, -2 ** 31, -2 ** 63,
           2 ** 63, 2 ** 64, 10 ** 30]
VALUES = ["unit", "[]", "{}", '[1, "a", unit]', '""', '"a"', '"a\\00b"', "0 : i64", "1 : i32", "-1 : i64", "9223372036854775807 : i64", "1.5 : f32", "0x7FC00000 : f32", "true", "i32",
          "tensor<2x3xf32>", "array<i64>", "array<i64: 0, -1>", "array<i64: 1, 2, 3, 4, 5, 6, 7, 8>", "array<i32: 1>", "array<i1: true>", "dense<1> : tensor<2xi64>",
          "dense<[1, 2]> : vector<2xi64>", "@main", "@nowhere", "{a = 1 : i64}", '[{}]', '[{a = "b"}, 1 : i64]', "affine_map<(d0) -> (d0)>", '#dmir.dims<"n">', '#dmir.dims<"n", "floordiv(m, 2)">',
          "#dmir.blocked<1, 16>", "#dmir.blocked<0, 0>", '"cpu"', '"corsair"', '"host"', '"aie"', '["main"]', "[[0, 1], [1, 0]]", "4294967296 : i64", "-2147483648 : i32"]
ELEMENTS = ["f32", "f64", "f16", "bf16", "i1", "i8", "i32", "i64", "ui8", "index", "i37", "!dmir.block_fp<BFP16_64R>", "complex<f32>", "f8E4M3FN", "vector<4xf32>"]
DEEP = [("[", "1", "]"), ("{a = ", "1", "}"), ("array<i64: ", "1", ">"), ("tuple<", "i1", ">"), ("(", "", ")"), ("loc(callsite(", '"a"', " at unknown))"), ("affine_map<() -> (", "0", ")>"),
        ("-", "1", "")]
OPEN, CLOSE = set("([{<"), set(")]}>")


def tokens_of(text):
    return TOKEN.findall(text)


def number(rng, value):
    near = [value + 1, value - 1, 2 * value, value // 2, -value, value + 64, value ^ 1 << rng.randrange(63), value * 1000]
    return rng.choice(near if rng.random() < 0.5 else NUMBERS)


def end_of_value(tokens, at):
    """Behind the value that begins at a token: a comma, a line's end or a bracket that closes what is around it ends it."""
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        if token in OPEN:
            depth += 1
        elif token in CLOSE:
            depth -= 1
        if depth < 0 or (depth == 0 and (token == "," or "\n" in token)):
            break
        at += 1
    return at


def pairs(tokens):
    """(key, value, end) of each `key = value`."""
    found = []
    for i, token in enumerate(tokens):
        if token != "=":
            continue
        key = i - 1 - (tokens[i - 1].isspace() if i else 0)
        value = i + 1 + (i + 1 < len(tokens) and tokens[i + 1].isspace())
        if key >= 0 and value < len(tokens) and re.match(r'[A-Za-z_"]', tokens[key]):
            found.append((key, value, end_of_value(tokens, value)))
    return found


def some(rng, tokens, fits):
    places = [i for i, token in enumerate(tokens) if fits(token)]
    return rng.choice(places) if places else None


# Each changes a list of tokens in place, or leaves it where there is nothing of its kind.
def change_number(rng, tokens):
    at = some(rng, tokens, lambda t: t[0].isdigit())
    if at is not None:
        shape = re.split(r"(x)", tokens[at]) if "x" in tokens[at] and not tokens[at].startswith("0x") else [tokens[at]]
        i = rng.choice([k for k, part in enumerate(shape) if part[:1].isdigit()])
        digits = re.match(r"\d+", shape[i])[0]
        new = "?" if len(shape) > 1 and rng.random() < 0.15 else str(number(rng, int(digits[:40])))
        shape[i] = new + shape[i][len(digits):]
        tokens[at] = "".join(shape)


def change_value(rng, tokens):
    all_pairs = pairs(tokens)
    if all_pairs:
        key, value, end = rng.choice(all_pairs)
        same = [pair for pair in all_pairs if tokens[pair[0]] == tokens[key]]
        _, other, other_end = rng.choice(same if rng.random() < 0.6 else all_pairs)
        tokens[value:end] = [rng.choice(VALUES)] if rng.random() < 0.4 else tokens[other:other_end]


def change_key(rng, tokens):
    all_pairs = pairs(tokens)
    if not all_pairs:
        return
    key, value, end = rng.choice(all_pairs)
    kind = rng.randrange(4)
    if kind == 0:  # dropped, with a comma
        end += tokens[end:end + 1] == [","]
        del tokens[key:end]
    elif kind == 1:
        tokens[key:key] = [*tokens[key:end], ", "]
    elif kind == 2:
        tokens[key] = tokens[rng.choice(all_pairs)[0]]
    else:  # the values of two exchanged
        other, other_value, other_end = rng.choice(all_pairs)
        (a, a_end), (b, b_end) = sorted([(value, end), (other_value, other_end)])
        if a_end <= b:
            tokens[a:b_end] = [*tokens[b:b_end], *tokens[a_end:b], *tokens[a:a_end]]


def change_items(rng, tokens):
    """Of what stands between brackets one part dropped, doubled, or exchanged with another."""
    at = some(rng, tokens, lambda t: t in OPEN)
    if at is None:
        return
    items, i = [], at + 1
    while i < len(tokens) and tokens[i] not in CLOSE:
        end = end_of_value(tokens, i)
        items.append(tokens[i:end])
        if end >= len(tokens) or tokens[end] != ",":
            i = end
            break
        i = end + 1
    if not items:
        tokens[at + 1:at + 1] = [rng.choice(VALUES)]
        return
    a, b, kind = rng.randrange(len(items)), rng.randrange(len(items)), rng.randrange(5)
    if kind == 0:
        del items[a]
    elif kind == 1:
        items.insert(b, items[a])
    elif kind == 2:
        items[a], items[b] = items[b], items[a]
    elif kind == 3:
        items = []
    else:
        items[a] = [rng.choice(VALUES)]
    tokens[at + 1:i] = [part for k, item in enumerate(items) for part in ([","] if k else []) + item]


def change_name(rng, tokens):
    """A name becomes another one of its kind."""
    at = some(rng, tokens, lambda t: t[0] in '%#!@^"')
    if at is None:
        return
    old = tokens[at]
    others = sorted({t for t in tokens if t[0] == old[0]})
    odd = ['""', '"a\\00b"', '"' + "n" * 5000 + '"', '"\\FF"', '"../x"', '"n*m"', '"(n+m+k+l+1)*(n+m+k+l+1)*(n+m+k+l+1)*(n+m+k+l+1)*(n+m+k+l+1)*(n+m+k+l+1)*(n+m+k+l+1)*(n+m+k+l+1)"']
    new = rng.choice(odd) if old[0] == '"' and rng.random() < 0.2 else rng.choice(others)
    everywhere = rng.random() < 0.2
    for i, token in enumerate(tokens):
        if i == at or (everywhere and token == old):
            tokens[i] = new


def change_word(rng, tokens):
    """An op, a keyword or an element type becomes another one of the text."""
    at = some(rng, tokens, lambda t: t[0].isalpha())
    if at is not None:
        dotted = "." in tokens[at]
        others = sorted({t for t in tokens if t[0].isalpha() and ("." in t) == dotted})
        tokens[at] = rng.choice(ELEMENTS) if tokens[at] in ELEMENTS else rng.choice(others)


def change_type(rng, tokens):
    """A type or its element becomes another one."""
    starts = [i for i, token in enumerate(tokens[:-1]) if re.match(r"(tensor|memref|vector)$|!", token) and tokens[i + 1] == "<"]
    if not starts:
        return change_number(rng, tokens)

    def end(start):
        depth = 0
        for i in range(start + 1, len(tokens)):
            depth += (tokens[i] in OPEN) - (tokens[i] in CLOSE)
            if depth == 0:
                return i + 1
        return len(tokens)
    at, other = rng.choice(starts), rng.choice(starts)
    old, new = "".join(tokens[at:end(at)]), "".join(tokens[other:end(other)])
    kind = rng.randrange(3)
    if kind == 0:
        new = re.sub(r"(x|<)(f32|f16|bf16|i64|i8|i32|i1)\b", lambda m: m[1] + rng.choice(ELEMENTS), old)
    elif kind == 1:
        new = re.sub(r"\d+(?=x)", lambda m: str(rng.choice((int(m[0]), int(m[0]), int(m[0]) + 1, 2 * int(m[0]), 0, 1, 4096))), old)
    if rng.random() < 0.6:  # everywhere, so that the uses of a value still agree
        tokens[:] = tokens_of("".join(tokens).replace(old, new))
    else:
        tokens[at:end(at)] = [new]


def nest(rng, tokens):
    """A value becomes one in many brackets."""
    all_pairs = pairs(tokens)
    if all_pairs:
        _, value, end = rng.choice(all_pairs)
        opens, inner, closes = rng.choice(DEEP)
        depth = rng.choice((5, 100, 255, 300, 5000, 20000))
        tokens[value:end] = [opens * depth + inner + closes * depth]


def change_lines(rng, tokens):
    """Lines, or ops with their bodies, dropped, doubled or exchanged."""
    lines = "".join(tokens).split("\n")
    a, b, kind = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.randrange(6)
    count = rng.choice((1, 1, 1, 2, 5))
    if kind == 4 or kind == 5:  # an op with its body
        depth, a_end = 0, a
        while a_end < len(lines):
            depth += lines[a_end].count("{") - lines[a_end].count("}")
            a_end += 1
            if depth <= 0:
                break
        count = a_end - a
    if kind in (0, 4):
        del lines[a:a + count]
    elif kind in (1, 5):
        lines[b:b] = lines[a:a + count]
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    else:
        moved = lines[a:a + count]
        del lines[a:a + count]
        lines[b:b] = moved
    tokens[:] = tokens_of("\n".join(lines))


def change_bytes(rng, tokens):
    text = "".join(tokens)
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice("()[]{}<>,:=%#!@^\"x?-+*/ 019aZ\n\\") + text[at + 1:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randrange(1, 9):]
        elif kind == 2:
            text = text[:at] + text[at:at + rng.randrange(1, 30)] + text[at:]
        else:
            text = text[:rng.randrange(len(text) + 1)] if rng.random() < 0.3 else text
    tokens[:] = tokens_of(text)


CHANGES = [(change_number, 26), (change_value, 18), (change_key, 12), (change_items, 12), (change_name, 10), (change_word, 5), (change_type, 7), (change_lines, 8), (nest, 1), (change_bytes, 2)]


def lie_text(rng, text):
    """The text with one to four changes."""
    for _ in range(5):
        tokens = tokens_of(text)
        for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 4))):
            rng.choices([change for change, _ in CHANGES], [weight for _, weight in CHANGES])[0](rng, tokens)
            if not tokens:
                tokens = ["\n"]
        if "".join(tokens) != text:
            break
    return "".join(tokens)
