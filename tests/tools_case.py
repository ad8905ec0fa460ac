"""What tests that run tools in one folder do alike. sys.argv[1] is the folder of the tools."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = pathlib.Path(sys.argv[1]).resolve()


class ToolsCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix=f"dmxc-{cls.__name__.lower()}-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)

    def tool(self, tool, *arguments, code=0):
        """What it prints, with the exit code that is expected."""
        done = subprocess.run([BIN / tool, *map(str, arguments)], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr
