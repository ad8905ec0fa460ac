"""What tests of one model on the card do alike: compile self.dir/m.onnx for a number of quads, run it with self.values, ask how near it is."""
import json
import subprocess

from dynamic_shapes import BIN, BundleTest, np


class CardTest(BundleTest):
    def dmxc(self, quads, *arguments, model="m.onnx"):
        return subprocess.run([BIN / "dmxc", self.dir / model, "-q", "-t", f"corsair:quads={quads}", *arguments], capture_output=True, text=True)

    def outcome(self, quads, *arguments, model="m.onnx"):
        """The result and its clocks."""
        done = self.dmxc(quads, "-o", self.dir / "m.bundle", *arguments, model=model)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.run_bundle(self.values, "--device-opt", "skew_seed=3", "--device-opt", f"report={self.dir / 'r.json'}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.dir / "out/out_y.npy"), json.loads((self.dir / "r.json").read_text())["last"][0]["main"]["clocks"]

    def near(self, found, exact):
        noise = np.sum((found.astype(np.float64) - exact) ** 2)
        self.assertGreater(10 * np.log10(np.sum(exact**2) / noise), 30)
