#!/usr/bin/python3
"""tools/cmake/DmxcInstall.cmake, in a small project: what is built is installed, what is not is left out by name."""
import pathlib
import subprocess
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools/cmake"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(parts C)
include(GNUInstallDirs)
include({tools}/DmxcInstall.cmake)
foreach(name one two three)
  add_library(${{name}} STATIC part.c)
endforeach()
add_executable(program main.c)
dmxc_begin_component("" program)
install(TARGETS program)
dmxc_end_component()
dmxc_begin_component(first one)
install(TARGETS one EXPORT parts COMPONENT first)
install(EXPORT parts DESTINATION lib/cmake COMPONENT first)
dmxc_end_component()
dmxc_begin_component(second two)
install(TARGETS two COMPONENT second)
dmxc_end_component()
dmxc_begin_component(third EXCLUDE_FROM_ALL three)
install(TARGETS three COMPONENT third EXCLUDE_FROM_ALL)
dmxc_end_component()
install(FILES part.c DESTINATION share COMPONENT texts)
dmxc_add_installable()
"""


class Install(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix="dmxc-install-")
        self.addCleanup(place.cleanup)
        self.dir = pathlib.Path(place.name)
        (self.dir / "CMakeLists.txt").write_text(PROJECT.format(tools=TOOLS))
        (self.dir / "part.c").write_text("int part(void) { return 0; }\n")
        (self.dir / "main.c").write_text("int main(void) { return 0; }\n")
        self.cmake("-S", self.dir, "-B", self.dir / "b", "-G", "Ninja")

    def cmake(self, *arguments, code=0):
        done = subprocess.run(["cmake", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return " ".join((done.stdout + done.stderr).split())

    def install(self, *arguments, code=0):
        """What is said, and the names of what was installed."""
        prefix = pathlib.Path(tempfile.mkdtemp(dir=self.dir))
        said = self.cmake("--install", self.dir / "b", "--prefix", prefix, *arguments, code=code)
        return said, {path.name for path in prefix.rglob("*") if path.is_file()}

    def test_what_was_not_built_is_left_out_by_name(self):
        self.cmake("--build", self.dir / "b", "--target", "two")
        said, names = self.install()
        self.assertEqual(names, {"libtwo.a", "part.c"})
        self.assertIn(f"Left out: program, since '{self.dir}/b/program' was not built; to have it: cmake --build {self.dir}/b --target program", said)
        self.assertIn(f"Left out: the component first, since '{self.dir}/b/libone.a' was not built; to have it: cmake --build {self.dir}/b --target one", said)
        self.assertEqual(said.count("Left out"), 2)

    def test_asked_for_by_name_it_is_an_error(self):
        self.cmake("--build", self.dir / "b", "--target", "two")
        self.assertEqual(self.install("--component", "second")[1], {"libtwo.a"})
        for component in ("first", "third"):
            said, names = self.install("--component", component, code=1)
            self.assertEqual(names, set())
            self.assertRegex(said, f"Cannot install the component {component}, since '.*' was not built; to have it: cmake --build .* --target ")

    def test_installable_builds_what_is_installed(self):
        self.cmake("--build", self.dir / "b", "--target", "installable")
        said, names = self.install()
        self.assertNotIn("Left out", said)
        self.assertLessEqual({"program", "libone.a", "libtwo.a", "part.c", "parts.cmake"}, names)
        self.assertFalse((self.dir / "b/libthree.a").exists())
        self.cmake("--build", self.dir / "b", "--target", "three")
        self.assertNotIn("libthree.a", self.install()[1])
        self.assertEqual(self.install("--component", "third")[1], {"libthree.a"})


if __name__ == "__main__":
    unittest.main()
