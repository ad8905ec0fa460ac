"""What tests of dmxsched share: an author's file, and its script. They are called with BIN REPO [unittest arguments]."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from dmxc_case import REPO, Base  # noqa: E402

HEAD = "from dmxsched import *\n\n\n"


class Author(Base):
    """`write` puts a file into an empty folder, where all commands run."""

    def write(self, text, file="s.py"):
        (self.dir / file).write_text(text)
        return file

    def dmxsched(self, *arguments, code=0):
        environment = {**os.environ, "PYTHONPATH": str(REPO / "tools/python"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-S", "-m", "dmxsched", *arguments], cwd=self.dir, capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done.stderr if code else done.stdout

    def printed(self, text):
        """The script of an author's text, which dmx-opt takes; in MLIR's short form, without its module."""
        self.write(text)
        self.dmxsched("s.py", "-o", "s.mlir")
        return self.run_tool("s.mlir", tool="dmx-opt").stdout
