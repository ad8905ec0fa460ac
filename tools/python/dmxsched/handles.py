"""Handles and parameters: what a schedule's author holds, whose methods are the compiler's transforms."""
from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple, Sequence

from . import ops
from .attributes import dictionary, text_of, told
from .forms import Form, form_of
from .places import Place, assigned_names, here, near, wrong
from .recording import ANY_OP, ANY_PARAM, PARAM, TYPES, Block, Entered, block_now, recorder


class Value:
    """A value of a script: its name there, its type, and whether it is still there."""

    kind = "any"

    def __init__(self, block: Block, wish: str, type_: str):
        self._block, self._wish, self._type = block, wish, type_
        self._name = block.fresh(wish)
        self._gone: tuple[str, Place] | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} '{self._wish}'>"

    def _use(self, by: str) -> str:
        """Its name in the script, for an op that reads it now."""
        if self._gone:
            how, place = self._gone
            wrong(f"'{self._wish}' was consumed by '{how}' at {place}; go on with the handles that it returned", "consumed")
        block = block_now(f"'{by}'")
        if block.is_within(self._block):
            return self._name
        if self._block.is_done or not block.whole.of:
            wrong(f"'{self._wish}' is of the body of '{self._block.of}' at {self._block.place} and not known here; return it from there")
        return wrong(f"'{self._wish}' is from outside of '{block.whole.of}' at {block.whole.place}, which knows its own arguments alone")

    def _becomes(self, other: Value) -> None:
        """Goes on as what a transform made of it."""
        self._block, self._type, self._name, self._gone = other._block, other._type, other._name, None


class Param(Value):
    """A number or a text that the script has when it runs: of `param`, or a size of the model's, of `dim`."""

    kind = "param"

    def _no(self, *_: Any) -> Any:
        wrong(f"'{self._wish}' has its value when the script runs, so Python cannot compute with it; let a param rest on it "
              "(divides=, range=), or give the number itself")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __truediv__ = __mod__ = _no
    __bool__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = _no


class Handle(Value):
    """Ops of the model. Any transform of the compiler is a method, by its name: `loop.unroll(factor=4)`, `loop.dmx.unroll(factor=4)`."""

    kind = "op"

    # What the table cannot say better is below; the rest is looked up in it.

    def __iter__(self) -> Any:
        wrong(f"how many ops '{self._wish}' has is known when the script runs; @{self._wish}.foreach is for each of them")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ops.namespaces():
            return _Namespace(self, name)  # type: ignore[return-value]
        op = ops.find(name)
        return lambda *positional, **named: apply(op, self, *positional, **named)

    def __dir__(self) -> list:
        return sorted({*super().__dir__(), *ops.namespaces(), *(name.split(".", 1)[-1] for name in ops.known())})

    def match(self, op: str | None = None, *, kind: str | None = None, node: str | None = None, device: str | None = None, algorithm: str | None = None,
              where: dict | None = None, nth: int | None = None, expect: int | str | None = None) -> Handle:
        """Regions (kind "region", without another), ops, products, loops or nests in this, that have all these properties, in program order.
        expect: how many there must be, or "any"; without it at least one."""
        given = {"kind": kind, "op": op, "node": node, "where": where, "device": device, "algorithm": algorithm, "nth": nth}
        if expect is not None and expect != "any" and (not _is_number(expect) or int(expect) < 0):
            wrong(f"expect is a number of matches from 0 on, or 'any', not {told(expect)}")
        wanted = {"filter": {key: value for key, value in given.items() if value is not None}}
        return apply(ops.find("match", "dmx"), self, **wanted, **({"may_be_none": True} if expect == "any" else {"expected": expect}))

    def match_ops(self, op: str, **properties: Any) -> Handle:
        """Ops of a name in this: match(op, kind="op")."""
        return self.match(op, kind="op", **properties)

    def decide(self, decided: dict | None = None, **values: Any) -> Handle:
        """Sets decisions of regions (`dmxc --explain-decisions` lists them): decide(grain=8), decide({"quads": 8, "/fc": {"split": "rows"}})."""
        every = {**(decided if isinstance(decided, dict) else {}), **values}
        if not every or not isinstance(decided or {}, dict):
            wrong(f"decide takes decisions by name, decide(grain=8), or a dictionary, not {told(decided)}")
        params = {key: value for key, value in every.items() if isinstance(value, Param)}
        apply(ops.find("decide", "dmx"), self, decisions={key: value for key, value in every.items() if key not in params}, params=list(params.values()),
              knobs=list(params))
        return self

    def dim(self, dim: int, of_operand: int | None = None) -> Param:
        """An extent of the one op's first result, or of an operand, as a parameter."""
        return apply(ops.find("dim", "dmx"), self, dim=dim, of_operand=of_operand)

    def swap(self, outer: int, inner: int) -> None:
        """Exchanges two loops of a nest, counted from the outermost, which is 0. The handle goes on as the nest."""
        for index in (outer, inner):
            if not _is_number(index) or not 0 <= index < 64:
                wrong(f"swap takes numbers of loops, 0 for the outermost, not {told(index)}")
        if outer == inner:
            wrong(f"swap takes two loops, not {outer} twice")
        order = list(range(max(outer, inner) + 1))
        order[outer], order[inner] = inner, outer
        self._becomes(apply(ops.find("interchange", "dmx"), self, order=order))

    def normalize(self, form: Form | str) -> None:
        """Brings a form about in all nests of this, where it is not there."""
        apply(ops.find("normalize", "dmx"), self, form=form_of(form).use())

    def check(self, form: Form | str, ensured: bool = False) -> None:
        """Fails where a form is not there; `ensured`: what came before promised it."""
        apply(ops.find("check", "dmx"), self, form=form_of(form).use(), ensured=ensured)

    def note(self, text: str) -> None:
        """A remark at each op of the handle."""
        apply(ops.find("emit_remark_at", "debug"), self, message=text)

    def apply_patterns(self, *names: str, **options: Any) -> None:
        """Patterns by their names, as `canonicalization`, all at once; options are those of the op, as max_iterations=4."""
        known = [name[len("apply_patterns."):] for name in ops.known() if name.startswith("apply_patterns.")]
        for name in names or ("",):
            if name not in known:
                wrong(f"there are no patterns '{name}'{near(str(name), known)}; there are {', '.join(known)}")
        inner = [f'"transform.apply_patterns.{name}"() : () -> () {here().location()}' for name in names]
        op = ops.find("apply_patterns")
        emit(op, [self], attributes_of(op, op.bound((self,), (), options)), [], regions=[inner])

    def foreach(self, body: Callable[[Handle], Any]) -> Any:
        """The function, or the one written below `@handle.foreach`, for each op of the handle alone. Handles that it returns are gathered."""
        return _with_body(ops.find("foreach"), self, [body], "foreach")

    def alternatives(self, *bodies: Callable[[Handle], Any]) -> Any:
        """The first of the functions that does not fail, on what the handle has."""
        if not bodies:
            wrong("alternatives takes functions of one handle, which are tried in their order")
        return _with_body(ops.find("alternatives"), self, list(bodies), "alternatives")


ops.methods.update(name for name in vars(Handle) if not name.startswith("_"))


class _Namespace(NamedTuple):
    handle: Handle
    name: str

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """dmxc's own op of the extension's name: nest.loop(1)."""
        return apply(ops.find(self.name, "dmx"), self.handle, *positional, **named)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        op = ops.find(name, self.name)
        return lambda *positional, **named: apply(op, self.handle, *positional, **named)


KINDS = {"op": Handle, "param": Param, "value": Value}


def value_of(kind: str, block: Block, wish: str, type_: str | None = None) -> Value:
    made = KINDS.get(kind, Value)(block, wish, type_ or TYPES[kind])
    made.kind = kind  # type: ignore[misc]
    return made


#
# Ops
#


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _constant(value: Any, what: str) -> Param:
    """A number where a parameter is taken."""
    block = block_now(what)
    made = Param(block, "constant", PARAM if _is_number(value) else ANY_PARAM)
    block.write(f'{made._name} = "transform.param.constant"() <{{value = {text_of(value, what)}}}> : () -> {made._type}', here())
    return made


def _cast(op: ops.Op, value: Value, type_: str) -> Value:
    """The same ops, for an op that takes those of one name alone."""
    block = block_now(op.short)
    made = value_of("op", block, value._wish, type_)
    block.write(f'{made._name} = "transform.cast"({value._use(op.short)}) : ({value._type}) -> {type_}', here())
    if any(row["name"] in op.row["consumes"] and row.get("type") == type_ for row in op.row["operands"]):
        value._gone = (op.short, here())
    return made


def _operand(op: ops.Op, operand: dict, value: Any) -> Value:
    of, name = operand["of"].split("|"), f"'{ops.python_name(operand['name'])}' of '{op.short}'"
    if not isinstance(value, Value):
        if "param" in of and isinstance(value, (int, str, bool)):
            return _constant(value, name)
        words = " or ".join({"op": "a handle", "param": "a parameter", "value": "a handle of values"}[kind] for kind in of)
        wrong(f"{name} is {words}, not {told(value)}")
    if value.kind not in of:
        wrong(f"{name} is {' or '.join(of)}, and {value!r} is none".replace("op", "a handle of ops", 1))
    if operand.get("type") and value._type == ANY_OP:
        return _cast(op, value, operand["type"])
    return value


def _numbers(op: ops.Op, argument: ops.Argument, value: Any) -> Any:
    """What stands in the attribute of an argument that is numbers and parameters."""
    row = argument.attribute or {}
    if row["type"] == "int":
        return None if isinstance(value, Value) and row.get("optional") else _static(value)
    if not isinstance(value, (list, tuple)):
        wrong(f"'{argument.name}' of '{op.short}' is a list of numbers or parameters, not {told(value)}")
    return [_static(part) for part in value]


def _static(part: Any) -> Any:
    return ops.DYNAMIC if isinstance(part, Value) else part


def apply(op: ops.Op, first: Any, /, *positional: Any, **named: Any) -> Any:
    """Records an op; what it returns."""
    if op.row["regions"]:
        wrong(f"'{op.short}' has a body, which is for foreach, alternatives, apply_patterns and functions with @transform; write it as text")
    count, type_, marks = (named.pop(key, None) for key in ("results", "result_type", "attributes"))
    if marks is not None and not isinstance(marks, dict):
        wrong(f"attributes of '{op.short}' are a dictionary, {{\"dmx.may_be_none\": Attribute(\"unit\")}}, not {told(marks)}")
    given = op.bound(() if first is None else (first,), positional, named)
    sizes = [given[key] for key, argument in op.arguments.items() if argument.operand and argument.attribute and isinstance(given.get(key), (list, tuple))]
    if "scalable_sizes" in op.arguments and sizes:  # MLIR's short form fills them in, its generic one does not
        given.setdefault("scalable_sizes", [False] * len(sizes[0]))
    operands: list = []
    for key, argument in op.arguments.items():
        if argument.operand:
            value = given.get(key)
            parts = [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]
            if argument.attribute:
                parts = [part for part in parts if isinstance(part, Value)]
            operands.append([_operand(op, argument.operand, part) for part in parts])
    return emit(op, operands, attributes_of(op, given), _results(op, operands, count, type_), named_by=assigned_names(),
                marks=f" {dictionary(marks, f'attributes of {op.short}')}" if marks else "")


def attributes_of(op: ops.Op, given: dict) -> dict:
    """{attribute: its text} of the arguments that were given."""
    texts = {}
    for key, argument in op.arguments.items():
        value = given.get(key)
        if argument.attribute and value is not None:
            value = _numbers(op, argument, value) if argument.operand else value
            text = None if value is None else ops.words_of(argument.attribute, value, f"'{key}' of '{op.short}'")
            if text is not None:
                texts[argument.attribute["name"]] = text
    return texts


def op(name: str, /, *positional: Any, **named: Any) -> Any:
    """Any transform by its whole name, for those that take no handle: op("tune.knob", name="k", options=[1, 2])."""
    if name not in ops.known():
        wrong(f"there is no transform '{name}'{near(str(name), ops.known())}")
    return apply(ops.known()[name], *(positional or (None,)), **named)


def include(file: str, name: str | None = None, *values: Value, results: int = 0) -> Any:
    """A sequence of another file, which dmxc looks for beside the script, in the folders of --schedule-path and among those that targets ship,
    and how many handles it returns; without a name what the file runs itself, before this script."""
    if not isinstance(file, str) or not file:
        wrong(f"include takes the file's name, not {told(file)}")
    recorder("'include'").files.setdefault(file, here())
    if name is None:
        return None
    return apply(ops.known()["include"], list(values), target=name, failure_propagation_mode="propagate", results=results)


def _results(op: ops.Op, operands: list, count: Any, type_: Any) -> list:
    """[(name, kind, type)] of what an op returns."""
    rows = op.row["results"]
    variadic = [row for row in rows if row.get("count")]
    if variadic and (not _is_number(count) or not 0 <= count < 1000):
        wrong(f"'{op.short}' returns as many as the script says: give results=N, how many '{variadic[0]['name']}' there are")
    if count is not None and not variadic:
        wrong(f"'{op.short}' returns {len(rows)}, which results= cannot change")
    made = []
    for row in rows:
        like = operands[0][0] if "|" in row["of"] and operands and operands[0] else None
        kind = like.kind if like is not None else row["of"].split("|")[0]
        type_of = type_ or row.get("type") or (like._type if like is not None else TYPES[kind])
        made += [(row["name"], kind, type_of)] * (count if row.get("count") else 1)
    return made


def emit(op: ops.Op, operands: list, attributes: dict, results: list, named_by: Sequence[str] = (), regions: Sequence[list] = (),
         place: Place | None = None, marks: str = "") -> Any:
    """Writes an op in MLIR's generic form, which every op has; handles that it consumes are gone."""
    place, block = place or here(), block_now(f"'{op.short}'")
    flat: list = []
    segments = []
    for group in operands:
        group = group if isinstance(group, list) else [group]
        flat += group
        segments.append(len(group))
    names = [value._use(op.short) for value in flat]
    for row, group in zip(op.row["operands"], operands):
        if row["name"] in op.row["consumes"]:
            for value in group:
                value._gone = (op.short, place)
    for part, sizes in (("operand", segments), ("result", [1] * len(results))):
        if part in op.row["segments"]:
            attributes[f"{part}SegmentSizes"] = f"array<i32: {', '.join(map(str, sizes))}>"
    made = [value_of(kind, block, named_by[i] if i < len(named_by) and named_by[i] else name, type_) for i, (name, kind, type_) in enumerate(results)]
    left = f"{', '.join(value._name for value in made)} = " if made else ""
    properties = f" <{{{', '.join(f'{key} = {value}' for key, value in attributes.items())}}}>" if attributes else ""
    inside = f" ({', '.join(map(_region, regions))})" if regions else ""
    types = f"({', '.join(value._type for value in flat)}) -> ({', '.join(value._type for value in made)})"
    block.write(f'{left}"{op.name}"({", ".join(names)}){properties}{inside}{marks} : {types}', place)
    return None if not made else made[0] if len(made) == 1 else tuple(made)


def _region(lines: list) -> str:
    return "\n".join(["{", *(f"  {line}" for line in lines), "}"])


def returned(function: Callable, result: Any) -> list:
    """The values that a function of the author's returned."""
    parts = [] if result is None else list(result) if isinstance(result, (tuple, list)) else [result]
    for part in parts:
        if not isinstance(part, Value):
            wrong(f"'{function.__name__}' returns {told(part)}; it may return handles and parameters")
    return parts


def _with_body(op: ops.Op, handle: Handle, bodies: list, name: str) -> Any:
    """An op whose regions are functions of one handle."""
    owner, place = recorder(f"'{name}'"), here()
    handle._use(name)
    regions, results, consumed = [], None, name == "alternatives"
    for body in bodies:
        if not inspect.isfunction(body):
            wrong(f"'{name}' takes functions of one handle, not {told(body)}")
        outside = None if name == "alternatives" else owner.block  # those know nothing of what is outside
        with Entered(owner, Block(outside, name, place)) as block:
            element = Handle(block, body.__code__.co_varnames[0] if body.__code__.co_argcount else "element", handle._type)
            made = returned(body, body(element))
            texts = [value._use(f"the end of '{name}'") for value in made]
            types = [value._type for value in made]
            block.write(f"\"transform.yield\"({', '.join(texts)}) : ({', '.join(types)}) -> ()", place)
        kinds = [(value._wish, value.kind, value._type) for value in made]
        if results is not None and [kind[1:] for kind in kinds] != [kind[1:] for kind in results]:
            wrong(f"the functions of '{name}' return different things: {[k[1] for k in results]} and {[k[1] for k in kinds]}", place=place)
        results, consumed = kinds, consumed or element._gone is not None
        regions.append([f"^bb0({element._name}: {element._type}):", *block.lines])
    assert results is not None
    gone = (name, place)
    out = emit(op, [handle], {}, results, assigned_names(), regions)
    if consumed:
        handle._gone = gone
    return out


def param(name: str, *, one_of: Sequence | None = None, range: Sequence | None = None, divides: int | Param | None = None, default: Any = None) -> Param:
    """A value that is left open: its default, `dmxc --set NAME=VALUE`, or `dmxc tune` chooses it. Of a list, of (first, last[, step]), or what divides
    a number; bounds may be parameters."""
    if not isinstance(name, str) or not name or "=" in name:
        wrong(f"a parameter's name is a text without '=', not {told(name)}")
    domains = {"one_of": one_of, "range": range, "divides": divides}
    given = [key for key, value in domains.items() if value is not None]
    if len(given) != 1:
        wrong(f"the parameter '{name}' has {' and '.join(given) or 'no domain'}; give one of one_of=[...], range=(first, last[, step]), divides=N")
    form = given[0]
    if form != "divides" and not isinstance(domains[form], (list, tuple)):
        wrong(f"{form} of the parameter '{name}' is a list, not {told(domains[form])}")
    bounds = list(range or ()) if form == "range" else [divides] if form == "divides" else []  # type: ignore[arg-type]
    _check_domain(name, form, list(one_of) if one_of is not None else None, bounds, default)
    values = [bound for bound in bounds if isinstance(bound, Param)]
    attributes = {"name": text_of(name, "name"), "form": text_of(form, "form")}
    if one_of is not None:
        attributes["values"] = text_of(list(one_of), f"'{name}'")
    attributes["bounds"] = "array<i64" + (": " if bounds else "") + ", ".join(str(_static(bound)) for bound in bounds) + ">"
    if default is not None:
        attributes["preferred"] = text_of(default, f"the default of '{name}'")
    result = ("value", "param", PARAM if not one_of or _is_number(one_of[0]) else ANY_PARAM)
    return emit(ops.find("param", "dmx"), [values], attributes, [result], assigned_names() or [name])


def _check_domain(name: str, form: str, one_of: list | None, bounds: list, default: Any) -> None:
    """What can be seen without the model."""
    if form == "one_of" and not one_of:
        wrong(f"the parameter '{name}' has no values")
    for value in one_of or []:
        if not isinstance(value, (int, str)):
            wrong(f"a value of the parameter '{name}' is {told(value)}; values are numbers, texts, True and False")
    if form == "range" and len(bounds) not in (2, 3):
        wrong(f"the range of '{name}' is (first, last) or (first, last, step), not {tuple(bounds)!r}")
    for bound in bounds:
        if not isinstance(bound, Param) and not _is_number(bound):
            wrong(f"a bound of the parameter '{name}' is {told(bound)}; bounds are numbers, or parameters that were made before")
    if any(isinstance(bound, Param) for bound in bounds):
        return
    if form == "divides" and bounds[0] < 1:
        wrong(f"the parameter '{name}' is to divide {bounds[0]}; give a number from 1 on")
    if form == "range" and (len(bounds) == 3 and bounds[2] < 1 or bounds[1] < bounds[0]):
        wrong(f"the range of '{name}' has no values: {tuple(bounds)!r}")
    if default is None:
        return
    number = _is_number(default)
    inside = (any(value == default and type(value) is type(default) for value in one_of or []) if form == "one_of"
              else number and default > 0 and bounds[0] % default == 0 if form == "divides"
              else number and bounds[0] <= default <= bounds[1] and (default - bounds[0]) % (bounds[2] if len(bounds) == 3 else 1) == 0)
    if not inside:
        said = one_of if form == "one_of" else f"what divides {bounds[0]}" if form == "divides" else f"{bounds[0]} to {bounds[1]}" + (
            f" by {bounds[2]}" if len(bounds) == 3 else "")
        wrong(f"'{name}' cannot be {default!r}, its default; its values are {said}")
