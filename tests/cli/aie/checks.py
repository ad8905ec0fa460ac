"""What the tests of the array share: BIN, the folder of the programs; numpy, without which they end with 77; the tests' own modules of models
and samples; `expect`, `run`, and `failures`, which decides the exit code."""
import pathlib
import subprocess
import sys

try:
    import numpy as np  # noqa: F401
except ImportError:
    print("SKIPPED: numpy is not installed (python3-numpy)")
    sys.exit(77)

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]
import onnx_file  # noqa: E402, F401
import sampling  # noqa: E402, F401

BIN = pathlib.Path(sys.argv[1]).resolve()

failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("FAIL:", what)


def run(*command, code=0):
    """What a command said, which has to end with this exit code."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    text = done.stdout + done.stderr
    expect(done.returncode == code, f"{' '.join(map(str, command))}: exit code {done.returncode}, not {code}:\n{text[-2000:]}")
    return text
