"""What stands in for a package's inference session: the same interface, and behind it a bundle of dmxc. The package's own session computes
each call too, so that outputs are compared on the same feeds.

    with replaced(Bundles(...)) as bundles:     # from here on, sessions that the package makes are ours
        ...                                     # the package's own results
        bundles.active = True
        ...                                     # the bundles' results"""

import collections
import contextlib
import hashlib
import math
import pathlib

import numpy as np

import dmxrt
import process
import rule

COMPILE_SECONDS, MEMORY = 600, 12 << 30
CONTROL_NOISE = 10.0  # of the root of the mean square: no task result should stand that


class Refused(Exception):
    """dmxc made no bundle; its sentence."""


class Bundles:
    """Compiles the files that sessions are made of, once a file, or once a file and its sizes where `fixed`, and measures outputs. The
    package's own session goes on for a file that dmxc or the runtime refuses.
    `control`: no bundle, but the package's outputs with noise, which must not pass for right."""

    def __init__(self, place, programs, library, arguments=(), fixed=False, control=False):
        self.place, self.programs, self.library = pathlib.Path(place), pathlib.Path(programs), str(library)
        self.arguments, self.fixed, self.control = list(arguments), fixed, control
        self.active, self.sessions, self.calls, self.compile_seconds, self.bytes, self.error = False, {}, 0, 0.0, 0, 0.0
        self.power = collections.defaultdict(lambda: [0.0, 0.0])
        self.files, self.refused = set(), {}
        self.random = np.random.default_rng(1)

    def outputs(self, file, feed, reference):
        """The bundle's outputs by name; reference: the package's own of the same call, by name."""
        self.files.add(file)
        if self.control:
            return {name: self.noisy(values) for name, values in reference.items()}
        try:
            session = self.session(file, feed)
            got = session.run(**by_place([tensor.name for tensor in session.inputs], feed))
        except (Refused, dmxrt.Error) as refusal:
            text = str(refusal)
            self.refused[file] = text if isinstance(refusal, Refused) else f"{pathlib.Path(file).name}: {text}"
            return reference
        got = by_place(list(reference), got)
        for name, values in reference.items():
            self.measure((file, name), got[name], values)
        self.calls += 1
        return got

    def noisy(self, values):
        if values.dtype.kind != "f":
            return np.roll(values, 1)
        noise = self.random.standard_normal(values.shape) * np.sqrt(np.mean(values.astype(np.float64) ** 2))
        return (values + CONTROL_NOISE * noise).astype(values.dtype)

    def session(self, file, feed):
        shapes = [word for name, values in feed.items() if values.ndim for word in ("--shape", name + "=" + "x".join(map(str, values.shape)))]
        shapes = shapes if self.fixed else []
        key = (file, *shapes)
        if file in self.refused:
            raise Refused(self.refused[file])
        if key not in self.sessions:
            self.sessions[key] = dmxrt.Session(self.compile(file, shapes), threads=1, library=self.library)
        return self.sessions[key]

    def compile(self, file, shapes):
        bundle = self.place / (hashlib.sha256(repr((str(file), shapes, self.arguments)).encode()).hexdigest()[:16] + ".bundle")
        command = [self.programs / "dmxc", file, "-o", bundle, "--color", "never", "--progress", "none", "--quiet", "--reproducer", self.place]
        done = process.run([*command, *self.arguments, *shapes], COMPILE_SECONDS, MEMORY)
        self.compile_seconds += done.seconds
        if done.code or done.stopped:
            raise Refused(f"{pathlib.Path(file).name}: {done.reason().split(' error: ')[-1]}")
        self.bytes += bundle.stat().st_size
        return bundle

    def measure(self, key, got, reference):
        if reference.dtype.kind != "f" or got.shape != reference.shape:
            return
        self.error = max(self.error, rule.worst(got, reference))
        signal, noise = np.square(reference.astype(np.float64)).sum(), np.square(got.astype(np.float64) - reference).sum()
        self.power[key][0] += signal
        self.power[key][1] += noise if np.isfinite(noise) else math.inf

    def sqnr(self):
        """Of the worst output in decibels: over all calls the power of the package's output to that of the difference."""
        ratios = [signal / noise if noise else math.inf for signal, noise in self.power.values() if signal]
        worst = min(ratios, default=math.inf)
        return None if math.isinf(worst) else 10 * math.log10(worst) if worst else -math.inf


def by_place(names, arrays):
    """Arrays under these names: their own where they have them, by place where not, as of programs of torch."""
    known = all(name in arrays for name in names)
    return {name: arrays[name] for name in names} if known else dict(zip(names, arrays.values(), strict=True))


KINDS = {"float": "float32", "double": "float64"}


def arrays(own, feed):
    """The feed as arrays of the types that the model has: packages also give lists."""
    kinds = {each.name: each.type.removeprefix("tensor(").rstrip(")") for each in own.get_inputs()}
    return {name: np.asarray(values, KINDS.get(kinds[name], kinds[name]), order="C") for name, values in feed.items()}


@contextlib.contextmanager
def replaced(bundles):
    """onnxruntime.InferenceSession is ours meanwhile; before the package is imported, for it may import the name."""
    import onnxruntime

    real = onnxruntime.InferenceSession

    class InferenceSession:
        def __init__(self, model, *arguments, **named):
            self.own = real(model, *arguments, **named)
            self.file = model
            if isinstance(model, bytes):
                self.file = bundles.place / (hashlib.sha256(model).hexdigest()[:16] + ".onnx")
                self.file.write_bytes(model)

        def __getattr__(self, name):
            return getattr(self.own, name)

        def run(self, names, feed, *rest):
            feed = arrays(self.own, feed)
            names = names or [each.name for each in self.own.get_outputs()]
            own = self.own.run(names, feed, *rest)
            if not bundles.active:
                return own
            got = bundles.outputs(str(self.file), feed, dict(zip(names, own)))
            return [got[name] for name in names]

    onnxruntime.InferenceSession = InferenceSession
    try:
        yield bundles
    finally:
        onnxruntime.InferenceSession = real
