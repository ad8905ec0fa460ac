"""@schedule and @transform: functions of the author's that become sequences of a script."""
from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

from . import ops, table
from .attributes import told
from .forms import Form, form_of, own
from .handles import Handle, Value, emit, returned, value_of
from .places import Place, assigned_names, here, near, of_function, quoted, wrong
from .recording import ANY_OP, Block, Entered, Recorder, recorder, sequence_text

every: list[Schedule] = []  # the schedules of the file that is read, in its order


class Schedule:
    """A function of the model that is run by the compiler at a stop, and its text."""

    def __init__(self, function: Callable, at: str, place: Place):
        self.function, self.at, self.place = function, at, place
        self.name = function.__name__
        functools.update_wrapper(self, function)

    def text(self) -> str:
        """The script, in MLIR's generic form, each op with the place of the author's line."""
        if Recorder.current:
            wrong("a script is recorded already; print it outside of @schedule and @transform")
        Recorder.current = Recorder()
        try:
            self._record(Recorder.current)
            return Recorder.current.text()
        finally:
            Recorder.current = None

    def _record(self, owner: Recorder) -> None:
        block = Block()
        module = Handle(block, next(iter(inspect.signature(self.function).parameters)), ANY_OP)
        name, before = owner.symbol(self.name), module._name
        with Entered(owner, block):
            if returned(self.function, self.function(module)):
                wrong(f"the schedule '{self.name}' returns handles, which nothing takes", place=self.place)
        argument = (before, ANY_OP, module._gone is not None or module._name != before)
        owner.sequences.append(sequence_text(name, [argument], block, [], self.function, self.at))

    def __call__(self, *_: Any) -> None:
        wrong(f"the schedule '{self.name}' is run by the compiler; what several schedules share is a function with @transform above it")


def schedule(*arguments: Any, at: str = "") -> Callable[[Callable], Schedule]:
    """Above a function of one argument, the model: `@schedule(at="partition")`. `dmxc --print-phases` lists the stops."""
    place = here()
    if arguments or not isinstance(at, str) or not at:
        said = f", not {told(at)}" if at and not isinstance(at, str) else ""
        wrong(f'@schedule takes the stop that it runs at{said}: @schedule(at="partition"); `dmxc --print-phases` lists them', "script", place)

    def decorate(function: Callable) -> Schedule:
        if not inspect.isfunction(function):
            wrong(f"@schedule is written above a function, not {told(function)}", "script", place)
        parameters = inspect.signature(function).parameters
        if len(parameters) != 1:
            wrong(f"the schedule '{function.__name__}' takes one argument, the model, not {len(parameters)}", "script", of_function(function))
        made = Schedule(function, at, of_function(function))
        if any(other.name == made.name for other in every):
            wrong(f"there is another schedule '{made.name}'; give one of them another name", "script", made.place)
        every.append(made)
        return made

    return decorate


class Transform:
    """A function of the author's own: a sequence of its own in the script, which each call includes."""

    def __init__(self, function: Callable, requires: Any, ensures: Any):
        self.function, self.name, self.signature = function, function.__name__, inspect.signature(function)
        self.requires, self.ensures = (self._forms(given) for given in (requires, ensures))
        functools.update_wrapper(self, function)

    def _forms(self, given: Any) -> dict[str | None, Form]:
        """{argument: form}; None is every handle."""
        if not isinstance(given, dict):
            return {} if given is None else {None: form_of(given)}
        for name in given:
            if name not in self.signature.parameters:
                wrong(f"'{self.name}' has no argument '{name}'{near(str(name), self.signature.parameters)}", "form")
        return {name: form_of(form) for name, form in given.items()}

    def __call__(self, *positional: Any, **named: Any) -> Any:
        owner, place = recorder(f"'{self.name}'"), here()
        try:
            bound = self.signature.bind(*positional, **named)
        except TypeError as error:
            wrong(f"'{self.name}' {error}; it is {self.name}{self.signature}", place=place)
        bound.apply_defaults()
        taken = {name: value for name, value in bound.arguments.items() if isinstance(value, Value)}
        for value in taken.values():
            value._use(self.name)
        key = (self.function, tuple((name, (value.kind, value._type) if name in taken else repr(value)) for name, value in bound.arguments.items()))
        if self.function in owner.running:
            wrong(f"'{self.name}' calls itself; a script has no recursion", place=place)
        if key not in owner.included:
            owner.running.append(self.function)
            owner.included[key] = self._record(owner, dict(bound.arguments))
            owner.running.pop()
        return self._include(owner, owner.included[key], taken, place)

    def _record(self, owner: Recorder, arguments: dict) -> tuple:
        """(symbol, {argument that is gone: by whom}, [arguments that go on as something else], what the function returns)."""
        block, name = Block(None, self.name, of_function(self.function)), owner.symbol(self.name)
        inner = {key: value_of(value.kind, block, key, value._type) for key, value in arguments.items() if isinstance(value, Value)}
        taken = [(value._name, value._type) for value in inner.values()]
        with Entered(owner, block):
            self._hold(self.requires, inner, "normalize")
            results = returned(self.function, self.function(**{**arguments, **inner}))
            changed = [key for (key, value), (before, _) in zip(inner.items(), taken) if value._name != before]
            gone = {key: value._gone for key, value in inner.items() if value._gone}
            left = {key: value for key, value in {**inner, **dict(enumerate(results))}.items() if not value._gone}
            self._hold(self.ensures, left, "check", ensured="unit")
            yields = [inner[key] for key in changed] + results
            texts = [(value._use(f"the end of '{self.name}'"), value._type) for value in yields]
        consumed = [key in gone or key in changed for key in inner]
        owner.sequences.append(sequence_text(name, [(*one, how) for one, how in zip(taken, consumed)], block, texts, self.function))
        return name, gone, changed, [(value._wish, value.kind, value._type) for value in results]

    def _of_form(self, owner: Recorder) -> str:
        """The symbol of this as a part of a form, whose one argument stays what it is."""
        block, symbol = Block(None, self.name, of_function(self.function)), owner.symbol(self.name)
        with Entered(owner, block):
            handle = Handle(block, next(iter(self.signature.parameters)), ANY_OP)
            before = handle._name
            returned(self.function, self.function(handle))
            if handle._gone or handle._name != before:
                wrong(f"'{self.name}' consumes '{handle._wish}', which a form needs afterwards; work on what is inside of it", "form", of_function(self.function))
        owner.sequences.append(sequence_text(symbol, [(before, ANY_OP, False)], block, [], self.function))
        return symbol

    def _hold(self, forms: dict, values: dict, op: str, **flags: str) -> None:
        for name, form in forms.items():
            for key, value in values.items():
                if name in (None, key) and isinstance(value, Handle):
                    emit(ops.find(op, "dmx"), [value], {"form": quoted(form.use()), **flags}, [], place=of_function(self.function))

    def _include(self, owner: Recorder, made: tuple, taken: dict, place: Place) -> Any:
        name, gone, changed, results = made
        every_result = [(key, taken[key].kind, taken[key]._type) for key in changed] + results
        attributes = {"target": f"@{name}", "failure_propagation_mode": "1 : i32"}
        out = emit(ops.known()["include"], [list(taken.values())], attributes, every_result, ["" for _ in changed] + assigned_names())
        values = [] if out is None else list(out) if isinstance(out, tuple) else [out]
        for key in gone:
            taken[key]._gone = (self.name, place)
        for key, value in zip(changed, values):
            taken[key]._becomes(value)
        rest = values[len(changed):]
        return None if not rest else rest[0] if len(rest) == 1 else tuple(rest)


def define_form(name: str, *, check: Callable, reach: Callable, extends: Form | str | None = None) -> Form:
    """A form of the author's own: `check` is a function of one handle that fails where the form is not there, `reach` one that brings it about."""
    base = form_of(extends) if extends is not None else None
    for what, function in (("check", check), ("reach", reach)):
        if not inspect.isfunction(function) or len(inspect.signature(function).parameters) != 1:
            wrong(f"'{what}' of the form '{name}' is a function of one handle, not {told(function)}", "form")
    if not isinstance(name, str) or not name or "+" in name:
        wrong(f"a form's name is a text without '+', not {told(name)}", "form")
    if name in table.FORMS or name in own:
        wrong(f"there is a form '{name}' already; give this one another name", "form")
    place = here()

    def record() -> None:
        owner = recorder(f"the form '{name}'")
        symbols = [Transform(function, None, None)._of_form(owner) for function in (check, reach)]
        extended = f"base = {quoted(base.use())}, " if base else ""
        owner.sequences.append(f'  "transform.dmx.define_form"() <{{sym_name = {quoted(name)}, {extended}checker = @{symbols[0]}, fixer = @{symbols[1]}}}> '
                               f": () -> () {place.location()}\n")
    own[name] = record
    return Form(name)


def transform(function: Callable | None = None, *, requires: Any = None, ensures: Any = None) -> Any:
    """Above a function of the author's own: `@transform(requires=PerfectNest, ensures=PerfectNest)`. Before it runs, what its handles lack of
    `requires` is brought about; after it `ensures` is checked of those that are left. A dictionary says it of single arguments."""
    if function is None:
        place = here()

        def decorate(function: Callable) -> Transform:
            if not inspect.isfunction(function):
                wrong(f"@transform is written above a function, not {told(function)}", place=place)
            return Transform(function, requires, ensures)
        return decorate
    if not inspect.isfunction(function):
        wrong("@transform takes forms by name: @transform(requires=PerfectNest, ensures=PerfectNest)", "form")
    return Transform(function, requires, ensures)
