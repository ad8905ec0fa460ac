"""Schedules that tests write: a sequence, and ops of loops."""
ANY = "!transform.any_op"


def script(at, *lines, name="s", more=""):
    """A script; the first of `lines` is its line 3, indented by four."""
    body = "".join(f"    {line}\n" for line in lines)
    return ("module attributes {transform.with_named_sequence} {\n"
            f'  transform.named_sequence @{name}(%m: {ANY} {{transform.readonly}}) attributes {{dmx.at = "{at}"}} {{\n{body}    transform.yield\n  }}\n{more}}}\n')


def match(properties='kind = "nest"', handle="n", expect=""):
    return f"%{handle} = transform.dmx.match {{{properties}}} in %m{expect} : {ANY} -> {ANY}"


def loop(depth, handle="l", nest="n"):
    return f"%{handle} = transform.dmx.loop %{nest}[{depth}] : {ANY} -> {ANY}"


def interchange(order, nest="n", handle="o"):
    return f"%{handle} = transform.dmx.interchange %{nest} {order} : {ANY} -> {ANY}"


def tile(sizes, nest="n", handle="t"):
    return f"%{handle}, %{handle}p = transform.dmx.tile %{nest} {sizes} : {ANY} -> {ANY}, {ANY}"


def unroll(how, handle="l"):
    return f"%u = transform.dmx.unroll %{handle} {how} : {ANY} -> {ANY}"


def fuse(first, second, depth=""):
    return f"%f = transform.dmx.fuse_into %{first} into %{second}{depth} : {ANY}, {ANY} -> {ANY}"
