"""What tests of dmx-generate share: where programs are, tiny decoders that are compiled once."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tiny_decoder

BIN = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
DECODERS = {}
STATES = ("--state", "past_key_values.*=present.*", "--dim", "past=0..64")  # with a length
PLACE = tempfile.TemporaryDirectory(prefix="dmxc-generate-")


def compiled(*dmxc, **options):
    """The bundle of a decoder; options are those of tiny_decoder.write, arguments those of dmxc."""
    key = (dmxc, tuple(sorted(options.items())))
    if key not in DECODERS:
        model = tiny_decoder.write(pathlib.Path(PLACE.name) / f"m{len(DECODERS)}.onnx", **options)
        DECODERS[key] = model.with_suffix(".bundle")
        subprocess.run([BIN / "dmxc", model, "-q", "-o", DECODERS[key], "-t", "cpu:x86-64-v2", "-O0", *dmxc], check=True, timeout=120)
    return DECODERS[key]


def run(*arguments, code=0, stdin=""):
    """(stdout, stderr) of dmx-generate."""
    done = subprocess.run([BIN / "dmx-generate", *map(str, arguments)], capture_output=True, text=True, input=stdin, timeout=120,
                          env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def answers(*arguments, **options):
    """Lists of ids, a prompt each."""
    return [[int(word) for word in line.split()] for line in run(*arguments, **options)[0].splitlines()]


def text(ids):
    return " ".join(map(str, ids))


class Case(unittest.TestCase):
    maxDiff = None

    def refused(self, code, words, *arguments, **options):
        """One sentence on stderr with these words, and nothing else."""
        out, err = run(*arguments, code=code, **options)
        self.assertEqual(out, "")
        self.assertEqual(err.count("\n"), 1, err)
        self.assertRegex(err, r"^dmx-generate: error: ")
        for word in words:
            self.assertIn(word, err)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
