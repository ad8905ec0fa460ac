#!/usr/bin/env python3
"""Archives of exported PyTorch programs, compiled and run. Usage: pt2_test.py BIN LIBDMXRT FILES [unittest arguments]: see pt2_case.py."""
import json
import re

from pt2_case import BIN, FILES, LIBRARY, Pt2, main, np, real, run
import dmxrt


class Fixtures(Pt2):
    """Archives with what torch computes for them."""

    def outputs_of(self, folder, states=False):
        """The expected results that a run gives back, in order: buffers that change stay in the session."""
        paths = sorted(folder.glob("out*.npy"), key=lambda path: int(re.match(r"out(\d+)", path.name)[1]))
        return [(path.name, np.load(path)) for path in paths if states or "_buffer_mutation_" not in path.name]

    def check(self, model, folder, is_text=False):
        self.assertNotIn("warning", self.compile(model))
        inputs = self.inputs_of(folder)
        got = self.run_bundle({f"arg{i}": values for i, values in enumerate(inputs.values())} if is_text else inputs)
        expected = self.outputs_of(folder, states=is_text)
        self.assertEqual(len(got), len(expected), f"{model}: {sorted(got)}")
        for (name, values), result in zip(expected, got.values()):
            self.close(result, values, f"{model} {name}")

    def test_archives(self):
        archives = sorted((FILES / "gen").glob("*.pt2")) + [FILES / "real/executorch_linear.pt2"]
        self.assertEqual(len(archives), 17)
        for archive in archives:
            with self.subTest(archive=archive.name):
                self.check(archive, archive.with_suffix(""))

    def test_torch_dialect_text(self):
        """The same programs as torch-mlir writes them: what an archive keeps as state is a result there."""
        texts = sorted((FILES / "gen").glob("*/model.torch.mlir"))
        self.assertEqual(len(texts), 16)
        for text in texts:
            with self.subTest(text=text.parent.name):
                self.check(text, text.parent, is_text=True)

    def test_broken_archives(self):
        archives = sorted((FILES / "bad").glob("*.pt2"))
        self.assertEqual(len(archives), 33)
        for archive in archives:
            with self.subTest(archive=archive.name):
                result = run(BIN / "dmxc", archive, "-o", self.dir / "m.bundle", "--color", "never")
                self.assertIn(result.returncode, (1, 3), result.stderr)
                self.assertRegex(result.stderr, r"\.pt2: .*error: .{20,}")
                self.assertFalse((self.dir / "m.bundle").exists())

    def test_other_packages(self):
        text = self.compile(FILES / "real/executorch_aoti_only_b4277d6.pt2", code=1)
        self.assertIn("compiled package without an exported program", text)

    def test_joint_graph_names_its_gradients(self):
        self.compile(FILES / "gen/hello_nn_joint.pt2")
        got = self.run_bundle(self.inputs_of(FILES / "gen/hello_nn_joint"))
        self.assertEqual(sorted(got), ["grad.linear.bias", "grad.linear.weight", "loss"])

    def test_buffers_live_in_the_session(self):
        folder = FILES / "gen/buffer_mutation"
        self.compile(FILES / "gen/buffer_mutation.pt2")
        x, = self.inputs_of(folder).values()
        program = json.loads((folder / "model.json").read_text())
        first, = self.outputs_of(folder)
        weight = first[1] / (x - np.load(folder / "out1_buffer_mutation_ema.npy"))
        self.assertEqual(len(program["graph_module"]["graph"]["nodes"]), 7)
        ema = np.load(folder / "out1_buffer_mutation_ema.npy")
        with dmxrt.Session(self.dir / "m.bundle", library=LIBRARY) as session:
            for step in range(3):
                got, = session.run(x=x).values()
                self.close(got, (x - ema) * weight, f"run {step}")
                ema = ema * np.float32(0.9) + x.mean(0) * np.float32(0.1)
            session.reset_state()
            self.close(next(iter(session.run(x=x).values())), first[1], "after a reset")

    def test_dims(self):
        archive = FILES / "gen/dynamic_batch_core.pt2"
        self.compile(archive)
        for batch in (2, 5, 64):
            x = np.random.default_rng(batch).standard_normal((batch, 4, 8)).astype(np.float32)
            whole = self.run_bundle({"x": x})
            halves = [self.run_bundle({"x": part}) for part in (x[:2], x[-2:])]
            for name, values in whole.items():
                self.close(values[:2], halves[0][name], name)
                self.close(values[-2:], halves[1][name], name)
        np.save(self.dir / "in_x.npy", np.zeros((65, 4, 8), np.float32))  # outside of what the exporter has checked
        self.assertNotEqual(run(BIN / "dmx-run", self.dir / "m.bundle", "--inputs", self.dir).returncode, 0)
        self.compile(archive, "--dim", "s77=3")
        self.assertIn("exported for 2 to 64", self.compile(archive, "--dim", "s77=65", code=2))
        self.compile(archive, "--dim", "s77=1")  # exporters say 2 of what may be 1: what a 1 would be, they would fix
        for name, values in self.run_bundle({"x": x[:1]}).items():
            self.close(values, whole[name][:1], name)
        self.assertIn("did you mean 's77'", self.compile(archive, "--dim", "s78=3", code=2))
        self.compile(archive, "--shape", "x=3x4x8")
        self.assertIn("fixes dim 1 to 4", self.compile(archive, "--shape", "x=3x5x8", code=2))


if __name__ == "__main__":
    main()
