#!/usr/bin/env python3
"""Complex tensors and Fourier transforms of exported programs, against numpy. Usage: complex_test.py BIN [unittest arguments].
Exit 77 where numpy is not installed. A program takes complex inputs as real ones of [.., 2] and gives its complex results so."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

import pt2file

BIN = pathlib.Path(sys.argv[1]).resolve()


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, errors="replace")


def parts(values):
    return np.stack([values.real, values.imag], -1).astype(np.float32)


class Calls:
    """A program of calls; each is judged by what numpy gives."""

    def __init__(self, seed=1):
        self.program, self.inputs, self.expected = pt2file.Program(), {}, []
        self.random = np.random.default_rng(seed)

    def new(self, kind="v"):
        return f"{kind}{len(self.program.nodes)}"

    def call(self, target, arguments, count=1):
        names = [f"{self.new()}_{i}" for i in range(count)]
        outputs = [{"as_tensor": {"name": name}} for name in names]
        self.program.node(f"torch.ops.aten.{target}", arguments, outputs if count == 1 else [{"as_tensors": [o["as_tensor"] for o in outputs]}],
                          name=names[0])
        return names if count > 1 else names[0]

    @staticmethod
    def of(name):
        return {"as_tensor": {"name": name}}

    def real(self, *shape, declared=None):
        name = f"x{len(self.inputs)}"
        values = self.random.normal(size=shape).astype(np.float32)
        self.program.input(name, "f32", declared or shape)
        self.inputs[name] = values
        return name, values

    def complex(self, *shape):
        name, values = self.real(*shape, 2)
        return self.call("view_as_complex.default", {"self": self.of(name)}), values[..., 0] + 1j * values[..., 1]

    def expect(self, name, values):
        values = np.asarray(values)
        if np.iscomplexobj(values):
            name, values = self.call("view_as_real.default", {"self": self.of(name)}), parts(values)
        self.program.values[name] = pt2file.meta("f32", values.shape)
        self.program.output(name)
        self.expected.append((name, values.astype(np.float32)))


class Complex(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dmxc-complex-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def compile(self, calls, code=0):
        calls.program.write(self.dir / "m.pt2")
        result = run(BIN / "dmxc", self.dir / "m.pt2", "-o", self.dir / "m.bundle", "-O1", "-t", "cpu:x86-64-v3", "--color", "never")
        self.assertEqual(result.returncode, code, result.stderr[-3000:])
        return result.stderr

    def check(self, calls):
        self.compile(calls)
        for name, values in calls.inputs.items():
            np.save(self.dir / f"in_{name}.npy", values)
        ran = run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir, "--output-dir", self.dir)
        self.assertEqual(ran.returncode, 0, ran.stderr[-3000:])
        for place, (name, values) in enumerate(calls.expected):
            got = np.load(self.dir / f"out_out{place}.npy")
            self.assertEqual(got.shape, values.shape, name)
            np.testing.assert_allclose(got, values, rtol=1e-4, atol=2e-5 * max(1, np.abs(values).max()), err_msg=name)

    def test_transforms_of_one_axis(self):
        c = Calls()
        for shape, axis in (((3, 8), -1), ((5, 2, 3), 0), ((7,), 0)):
            for norm in (None, "ortho", "forward"):
                for n in (None, shape[axis] + 3, max(shape[axis] - 2, 1)):
                    arguments = {"dim": {"as_int": axis}}
                    if norm:
                        arguments["norm"] = {"as_string": norm}
                    if n:
                        arguments["n"] = {"as_int": n}
                    real, x = c.real(*shape)
                    both, z = c.complex(*shape)
                    for name, values, of in (("fft", z, both), ("fft", x, real), ("ifft", z, both), ("rfft", x, real), ("irfft", z, both)):
                        if name == "irfft" and n is None and shape[axis] == 1:
                            continue
                        c.expect(c.call(f"fft_{name}.default", {"self": c.of(of), **arguments}), getattr(np.fft, name)(values, n, axis, norm))
        self.check(c)

    def test_transforms_of_several_axes(self):
        c = Calls()
        both, z = c.complex(2, 6, 5)
        real, x = c.real(2, 6, 5)
        for name, values, of in (("fft2", x, real), ("ifft2", z, both), ("rfft2", x, real), ("irfft2", z, both)):
            c.expect(c.call(f"fft_{name}.default", {"self": c.of(of)}), getattr(np.fft, name)(values))
            sizes = {"s": {"as_ints": [4, 7]}, "dim": {"as_ints": [1, 0]}, "norm": {"as_string": "ortho"}}
            c.expect(c.call(f"fft_{name}.default", {"self": c.of(of), **sizes}), getattr(np.fft, name)(values, (4, 7), (1, 0), "ortho"))
        for name, values, of in (("fftn", z, both), ("ifftn", z, both), ("rfftn", x, real), ("irfftn", z, both)):
            c.expect(c.call(f"fft_{name}.default", {"self": c.of(of)}), getattr(np.fft, name)(values))
            c.expect(c.call(f"fft_{name}.default", {"self": c.of(of), "dim": {"as_ints": [1, 2]}}), getattr(np.fft, name)(values, axes=(1, 2)))
        # As decomposed.
        axes = {"dim": {"as_ints": [1, 2]}}
        c.expect(c.call("_fft_r2c.default", {"self": c.of(real), **axes, "normalization": {"as_int": 1}, "onesided": {"as_bool": True}}),
                 np.fft.rfftn(x, axes=(1, 2), norm="ortho"))
        c.expect(c.call("_fft_r2c.default", {"self": c.of(real), **axes, "normalization": {"as_int": 0}, "onesided": {"as_bool": False}}),
                 np.fft.fftn(x, axes=(1, 2)))
        c.expect(c.call("_fft_c2c.default", {"self": c.of(both), **axes, "normalization": {"as_int": 2}, "forward": {"as_bool": False}}),
                 np.fft.ifftn(z, axes=(1, 2)))
        c.expect(c.call("_fft_c2r.default", {"self": c.of(both), **axes, "normalization": {"as_int": 2}, "last_dim_size": {"as_int": 9}}),
                 np.fft.irfftn(z, (6, 9), axes=(1, 2)))
        self.check(c)

    def test_transforms_of_what_is_real_the_other_way_round(self):
        c = Calls()
        both, z = c.complex(2, 6, 5)
        real, x = c.real(2, 6, 5)
        for norm in ("backward", "ortho", "forward"):
            named = {"norm": {"as_string": norm}}
            c.expect(c.call("fft_hfft.default", {"self": c.of(both), **named}), np.fft.hfft(z, norm=norm))
            c.expect(c.call("fft_hfft.default", {"self": c.of(both), "n": {"as_int": 7}, "dim": {"as_int": 1}, **named}), np.fft.hfft(z, 7, 1, norm))
            c.expect(c.call("fft_ihfft.default", {"self": c.of(real), **named}), np.fft.ihfft(x, norm=norm))
            # numpy has them of one axis alone; the others are transformed as complex ones are.
            c.expect(c.call("fft_hfft2.default", {"self": c.of(both), **named}), np.fft.hfft(np.fft.fft(z, axis=1, norm=norm), norm=norm))
            c.expect(c.call("fft_hfftn.default", {"self": c.of(both), "dim": {"as_ints": [1, 0]}, **named}),
                     np.fft.hfft(np.fft.fft(z, axis=1, norm=norm), axis=0, norm=norm))
            c.expect(c.call("fft_ihfft2.default", {"self": c.of(real), **named}), np.fft.ifft(np.fft.ihfft(x, norm=norm), axis=1, norm=norm))
            c.expect(c.call("fft_ihfftn.default", {"self": c.of(real), **named}), np.fft.ifft2(np.fft.ihfft(x, norm=norm), axes=(0, 1), norm=norm))
        self.check(c)

    def test_short_time_transforms_and_back(self):
        c = Calls()
        window, w = c.real(16)
        inner, v = c.real(10)
        signal, x = c.real(2, 90)
        for hop, kernel, options in ((4, w, {"window": window}), (5, np.pad(v, (3, 3)), {"window": inner}), (16, np.ones(16), {})):
            frames = np.stack([x[:, at:at + 16] * kernel for at in range(0, 90 - 15, hop)], 1)
            arguments = {"self": c.of(signal), "n_fft": {"as_int": 16}, "hop_length": {"as_int": hop}, "return_complex": {"as_bool": True}}
            arguments |= {name: c.of(value) for name, value in options.items()}
            if options.get("window") == inner:
                arguments["win_length"] = {"as_int": 10}
            spectrum = c.call("stft.default", arguments)
            c.expect(spectrum, np.fft.rfft(frames).swapaxes(1, 2))
            del arguments["self"]
            back = c.call("istft.default", {"self": c.of(spectrum), **{k: a for k, a in arguments.items() if k != "return_complex"}, "center": {"as_bool": False}})
            total, share = np.zeros((2, 16 + hop * (frames.shape[1] - 1))), np.zeros(16 + hop * (frames.shape[1] - 1))
            for i in range(frames.shape[1]):
                total[:, i * hop:i * hop + 16] += frames[:, i] * kernel
                share[i * hop:i * hop + 16] += kernel ** 2
            if (share > 1e-3).all():
                c.expect(back, total / share)
            else:
                c.program.values[back] = pt2file.meta("f32", total.shape)
        centred = c.call("stft.center", {"self": c.of(signal), "n_fft": {"as_int": 16}, "window": c.of(window), "normalized": {"as_bool": True}})
        padded = np.pad(x, ((0, 0), (8, 8)), "reflect")
        frames = np.stack([padded[:, at:at + 16] * w for at in range(0, 106 - 15, 4)], 1)
        c.expect(centred, parts(np.fft.rfft(frames, norm="ortho").swapaxes(1, 2)))
        self.check(c)

    def test_arithmetic(self):
        c = Calls()
        a, x = c.complex(3, 4)
        b, y = c.complex(4)
        r, z = c.real(3, 4)
        two = {"as_float": 2.5}
        for name, function in (("mul.Tensor", np.multiply), ("div.Tensor", np.divide), ("add.Tensor", np.add), ("sub.Tensor", np.subtract)):
            c.expect(c.call(name, {"self": c.of(a), "other": c.of(b)}), function(x, y))
            c.expect(c.call(name, {"self": c.of(r), "other": c.of(b)}), function(z, y))
            c.expect(c.call(name, {"self": c.of(a), "other": c.of(r)}), function(x, z))
            c.expect(c.call(name, {"self": c.of(a), "other": two}), function(x, 2.5))
        for name, function in (("abs", np.abs), ("angle", np.angle), ("exp", np.exp), ("neg", np.negative), ("real", np.real), ("imag", np.imag),
                               ("_conj", np.conj), ("conj_physical", np.conj)):
            c.expect(c.call(f"{name}.default", {"self": c.of(a)}), function(x))
        c.expect(c.call("angle.default", {"self": c.of(r)}), np.angle(z))
        c.expect(c.call("pow.Tensor_Scalar", {"self": c.of(a), "exponent": {"as_int": 2}}), x ** 2)
        c.expect(c.call("sum.dim_IntList", {"self": c.of(a), "dim": {"as_ints": [1]}}), x.sum(1))
        c.expect(c.call("polar.default", {"abs": c.of(r), "angle": c.of(r)}), z * np.exp(1j * z))
        c.expect(c.call("complex.default", {"real": c.of(r), "imag": c.of(r)}), z + 1j * z)
        c.expect(c.call("permute.default", {"self": c.of(a), "dims": {"as_ints": [1, 0]}}), x.T)
        c.expect(c.call("unsqueeze.default", {"self": c.of(c.call("select.int", {"self": c.of(a), "dim": {"as_int": 1}, "index": {"as_int": -1}})),
                                              "dim": {"as_int": 1}}), x[:, -1:])
        m, w = c.complex(2, 4, 3)
        k, v = c.complex(2, 3, 4)
        for first, second, pair in ((a, m, (x, w)), (r, m, (z, w)), (a, b, (x, y)), (k, m, (v, w))):
            c.expect(c.call("matmul.default", {"self": c.of(first), "other": c.of(second)}), np.matmul(*pair))
        c.expect(c.call("bmm.default", {"self": c.of(k), "mat2": c.of(m)}), v @ w)
        c.expect(c.call("mv.default", {"self": c.of(a), "vec": c.of(b)}), x @ y)
        half = c.call("chalf.default", {"self": c.of(a)})
        c.expect(c.call("_cast_Float.default", {"self": c.of(c.call("imag.default", {"self": c.of(half)}))}), x.imag.astype(np.float16))
        left, right = c.call("split.Tensor", {"self": c.of(a), "split_size": {"as_int": 2}, "dim": {"as_int": 1}}, count=2)
        c.expect(c.call("cat.default", {"tensors": {"as_tensors": [{"name": right}, {"name": left}]}, "dim": {"as_int": 1}}), np.roll(x, 2, 1))
        self.check(c)

    def test_types(self):
        """To complex and back: what torch does without the imaginary part."""
        c = Calls()
        a, x = c.complex(3, 4)
        r, z = c.real(3, 4)
        for target in ("to.dtype", "to.dtype_layout", "_to_copy.default"):
            for kind in ("c64", "c128"):
                whole = c.call(target, {"self": c.of(r), "dtype": {"as_scalar_type": pt2file.SCHEMA[kind]}})
                single = c.call("to.dtype", {"self": c.of(whole), "dtype": {"as_scalar_type": pt2file.SCHEMA["c64"]}})
                c.expect(c.call("mul.Tensor", {"self": c.of(single), "other": c.of(a)}), z * x)
            c.expect(c.call(target, {"self": c.of(a), "dtype": {"as_scalar_type": pt2file.SCHEMA["f32"]}}), x.real)
        ones = c.call("ones.default", {"size": {"as_ints": [3, 4]}, "dtype": {"as_scalar_type": pt2file.SCHEMA["c64"]}})
        c.expect(c.call("add.Tensor", {"self": c.of(ones), "other": c.of(a)}), x + 1)
        c.expect(c.call("ones_like.default", {"self": c.of(a)}), np.ones_like(x))
        c.expect(c.call("zeros_like.default", {"self": c.of(a), "dtype": {"as_scalar_type": pt2file.SCHEMA["f32"]}}), np.zeros(x.shape, np.float32))
        self.check(c)

    def test_parameters(self):
        """Complex weights, whole and as a view of every other element."""
        c = Calls()
        a, x = c.complex(2, 3)
        w = (c.random.normal(size=(3, 8)) + 1j * c.random.normal(size=(3, 8))).astype(np.complex64)
        c.program.tensor("w", "parameter", "c64", (3, 8), w.tobytes())
        c.expect(c.call("einsum.default", {"equation": {"as_string": "bi,io->bo"}, "tensors": {"as_tensors": [{"name": a}, {"name": "w"}]}}), x @ w)
        folder, about, data = c.program.payloads["w"]
        about |= {"sizes": pt2file.sizes((3, 3)), "strides": [{"as_int": 8}, {"as_int": 2}], "storage_offset": {"as_int": 1}}
        c.program.values["w"] = about
        c.expected.clear(), c.program.outputs.clear(), c.program.output_specs.clear(), c.program.nodes.__delitem__(slice(1, None))
        r, z = c.real(2, 3)
        c.expect(c.call("einsum.default", {"equation": {"as_string": "bi,io->bo"}, "tensors": {"as_tensors": [{"name": a}, {"name": "w"}]}}), x @ w[:, 1:6:2])
        c.expect(c.call("einsum.default", {"equation": {"as_string": "bi,io->bo"}, "tensors": {"as_tensors": [{"name": r}, {"name": "w"}]}}), z @ w[:, 1:6:2])
        self.check(c)

    def test_a_part_is_written(self):
        c = Calls()
        a, x = c.complex(4, 2)
        size = {"size": {"as_ints": [4, 5]}, "dtype": {"as_scalar_type": pt2file.SCHEMA["c64"]}}
        whole = c.call("zeros.default", size)
        part = c.call("slice.Tensor", {"self": c.of(whole), "dim": {"as_int": 1}, "start": {"as_int": 1}, "end": {"as_int": 3}})
        c.call("copy_.default", {"self": c.of(part), "src": c.of(a)})
        expected = np.zeros((4, 5), np.complex64)
        expected[:, 1:3] = x
        c.expect(whole, expected)
        self.check(c)

    def test_refusals(self):
        for target, arguments, message in (("relu.default", {}, "a real tensor is expected"), ("view_as_complex.default", {}, "a real tensor is expected"),
                                           ("fft_rfft.default", {}, "takes a real tensor"),
                                           ("pow.Tensor_Scalar", {"exponent": {"as_int": 3}}, "only the power 2")):
            c = Calls()
            a, _ = c.complex(3, 4)
            result = c.call(target, {"self": c.of(a), **arguments})
            c.program.values[result] = pt2file.meta("f32", (3, 4))
            c.program.output(result)
            self.assertIn(message, self.compile(c, code=1))
        c = Calls()
        a, _ = c.complex(3, 4)
        c.program.output(a)
        self.assertIn("torch.view_as_real", self.compile(c, code=1))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
