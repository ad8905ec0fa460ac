#!/usr/bin/python3
"""What of packages is tested without building any: packages_test.py BIN LIB SOURCE BUILD [unittest arguments]. tools/package checks the rest as it
makes them."""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
import zipfile

BIN, LIB, SOURCE, BUILD = map(pathlib.Path, sys.argv[1:5])
sys.path.insert(0, str(SOURCE / "tools/packaging"))
import common  # noqa: E402
import debs  # noqa: E402
import wheels  # noqa: E402

LAUNCHER = SOURCE / "tools/packaging/wheel/__init__.py"


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def refused(self, function, *arguments):
        """The sentence of a SystemExit."""
        with self.assertRaises(SystemExit) as caught:
            function(*arguments)
        return str(caught.exception)


class Version(Folder):
    def test_everything_says_that_of_the_header(self):
        version = common.version()
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        for program in common.PROGRAMS:
            if (BIN / program).exists():
                out = subprocess.run([BIN / program, "--version"], capture_output=True, text=True, check=True).stdout
                self.assertEqual(out.split()[:2], [program, version])
        self.assertTrue((LIB / f"libdmxrt.so.{version}").exists())
        page = subprocess.run([BIN / "dmx-run", "--help=man"], capture_output=True, text=True, check=True).stdout
        self.assertIn(f'"dmxc {version}"', page.splitlines()[0])

    def test_the_python_module_too(self):
        if subprocess.run([sys.executable, "-c", "import setuptools"], capture_output=True).returncode:
            self.skipTest("setuptools is not installed (python3-setuptools)")
        said = subprocess.run([sys.executable, "setup.py", "--version"], cwd=SOURCE / "tools/python", capture_output=True, text=True).stdout
        self.assertEqual(said.split()[-1:], [common.version()])

    def test_no_other_file_has_one_of_its_own(self):
        self.assertIn("project(dmxc VERSION ${DMXC_VERSION}", (SOURCE / "CMakeLists.txt").read_text())
        self.assertNotRegex((SOURCE / "tools/python/pyproject.toml").read_text(), r"(?m)^version\s*=")

    def test_the_changelog_begins_with_it(self):
        self.assertEqual(common.changes()[0][0], common.version())
        self.assertTrue(common.changes()[0][1])
        text = common.debian_changelog("dmxc", debs.MAINTAINER, 86400)
        self.assertRegex(text, rf"^dmxc \({re.escape(common.version())}\) unstable; urgency=medium\n\n  \* ")
        self.assertIn(f"\n -- {debs.MAINTAINER}  Fri, 02 Jan 1970 00:00:00 +0000\n", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        if not shutil.which("dpkg-parsechangelog"):
            self.skipTest("dpkg-parsechangelog is not installed (dpkg-dev)")
        done = subprocess.run(["dpkg-parsechangelog", "-l", "-", "-S", "Version"], input=text, capture_output=True, text=True)
        self.assertEqual((done.stdout.strip(), done.stderr), (common.version(), ""))


class Licences(Folder):
    def test_each_library_that_is_linked_is_listed(self):
        listed = (SOURCE / "LICENSES.md").read_text()
        files = [BIN / program for program in common.PROGRAMS if (BIN / program).exists()] + sorted(LIB.glob("libdmxrt*.so"))
        self.assertGreater(len(files), 3)
        for file in files:
            for library in common.needed(file):
                self.assertIn(f"`{library.split('.so')[0]}`", listed, f"{file} is linked with {library}")

    def test_what_is_compiled_in_is_listed(self):
        listed, debian = (SOURCE / "LICENSES.md").read_text(), (SOURCE / "tools/packaging/debian/copyright").read_text()
        for name in ("LLVM", "MLIR", "LLD", "CLI11", "nlohmann"):
            self.assertIn(name, listed)
            self.assertIn(name, debian)
        self.assertIn("not chosen yet", listed)
        self.assertIn("not chosen yet", debian)


class Symbols(Folder):
    def test_newest_of_each(self):
        text = "0000 DF *UND* 0000 (GLIBC_2.9)  fopen\n 0 DF *UND* (GLIBC_2.17) x\n 0 (GLIBCXX_3.4.30) y\n 0 g DF .text (CXXABI_1.3.13) z"
        self.assertEqual(common.symbol_versions(text), {"GLIBC": (2, 17), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)})

    def test_too_new_is_refused(self):
        common.check_symbols({"GLIBC": (2, 36)}, "dmxc")
        for versions, text in (({"GLIBC": (2, 38)}, "dmxc needs GLIBC_2.38, newer than GLIBC_2.36"), ({"GLIBCXX": (3, 4, 32)}, "GLIBCXX_3.4.32")):
            self.assertIn(text, self.refused(common.check_symbols, versions, "dmxc"))

    def test_the_runtime_needs_no_newer_one(self):
        for file in [BIN / "dmx-run", *LIB.glob("libdmxrt*.so")]:
            versions = common.symbol_versions(subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=True).stdout)
            self.assertIn("GLIBC", versions)
            if pathlib.Path("/etc/debian_version").exists() and pathlib.Path("/etc/debian_version").read_text().startswith("12"):
                common.check_symbols(versions, file)


class Wheel(Folder):
    def tree(self, name):
        """What a wheel is made of, with a program that says its arguments."""
        folder = self.folder / name
        (folder / "dmxc/bin").mkdir(parents=True)
        program = folder / "dmxc/bin/dmxc"
        program.write_text('#!/bin/sh\necho "$(basename "$0")" "$@"\n')
        program.chmod(0o755)
        return folder

    def test_the_same_bytes_twice(self):
        files = []
        for name, stamp in (("a", 1), ("b", 1000000000)):
            folder = self.tree(name)
            wheel = wheels.describe(folder, (2, 36), [])
            for path in folder.rglob("*"):
                os.utime(path, (stamp, stamp))
            files.append(self.folder / f"{name}.whl")
            wheels.write_wheel(folder, files[-1], 1700000000)
        self.assertEqual(wheel, f"dmxc-{common.version()}-py3-none-manylinux_2_36_x86_64.whl")
        self.assertEqual(files[0].read_bytes(), files[1].read_bytes())
        with zipfile.ZipFile(files[0]) as archive:
            record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
            rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
            self.assertEqual(sorted(row[0] for row in rows), sorted(archive.namelist()))
            for name, digest, size in rows:
                if name != record:
                    data = archive.read(name)
                    self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="))
                    self.assertEqual(int(size), len(data))

    def test_pip_installs_it(self):
        if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode:
            self.skipTest("pip is not installed (python3-pip)")
        folder = self.tree("tree")
        file = self.folder / wheels.describe(folder, (2, 17), [])
        wheels.write_wheel(folder, file, 1700000000)
        to = self.folder / "to"
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", to, file], check=True, capture_output=True)
        for program in ("dmxc", "dmx-compare"):
            done = subprocess.run([to / "bin" / program, "m.onnx", "-o", "a b"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(to)})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "dmxc m.onnx -o a b\n", ""))
        self.assertEqual((to / "dmxc/__init__.py").read_text().count("GLIBC = (2, 17)"), 1)

    def test_machines_that_it_is_not_for(self):
        module = types.ModuleType("launcher")
        module.__file__ = str(self.folder / "__init__.py")
        exec(compile(LAUNCHER.read_text(), LAUNCHER, "exec"), module.__dict__)
        here = types.SimpleNamespace(sysname="Linux", machine="x86_64")
        for confstr, uname, text in (("glibc 2.31", here, "dmxc: error: these programs need glibc 2.36 or newer, this system has 2.31; use a container"),
                                     (None, here, "this system has another C library; use a container"),
                                     ("glibc 2.36", types.SimpleNamespace(sysname="Linux", machine="aarch64"), "this is Linux on aarch64; build dmxc"),
                                     ("glibc 2.36", here, "bin/dmxc' cannot be run: No such file or directory; install the wheel again")):
            with unittest.mock.patch.object(module.os, "confstr", lambda name, value=confstr: value), unittest.mock.patch.object(module.os, "uname", lambda value=uname: value):
                self.assertIn(text, self.refused(module.dmxc))


class OldSystem(Folder):
    def test_a_library_for_newer_systems(self):
        """libdmxrt that asks for a version of the C library that no system has yet."""
        data = (LIB / "libdmxrt.so").read_bytes()
        versions = sorted(set(re.findall(rb"\0(GLIBC_2\.\d+)\0", data)))
        self.assertTrue(versions)
        library = self.folder / "libdmxrt.so.0"
        library.write_bytes(data.replace(b"\0" + versions[-1] + b"\0", b"\0" + versions[-1].replace(b"_2", b"_9") + b"\0"))
        done = subprocess.run([sys.executable, "-c", "import dmxrt; dmxrt.load_library()"], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(SOURCE / "tools/python"), "DMXRT_LIBRARY": str(library)})
        self.assertIn(f"needs {versions[-1].decode().replace('_2', '_9')}, which this system's libraries are too old for; use a container", done.stderr)


class Debs(Folder):
    def stage(self, *names):
        for name in names:
            path = self.folder / "stage/usr" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        return self.folder / "stage"

    def test_each_file_is_in_one_package(self):
        triple = "lib/x86_64-linux-gnu"
        stage = self.stage("bin/dmxc", "bin/dmx-run", f"{triple}/libdmxrt.so.9.9.9", f"{triple}/libdmxrt-x.so", f"{triple}/libdmxrt.a", "include/dmx/dmx.h",
                           "share/man/man1/dmxc.1", "share/man/man1/dmx-run.1", "share/zsh/site-functions/_dmx-run", "share/bash-completion/completions/dmxc",
                           "lib/python3/dist-packages/dmxrt/__init__.py", "lib/python3/dist-packages/dmxsched/py.typed", f"{triple}/pkgconfig/dmxrt.pc")
        (stage / f"usr/{triple}/libdmxrt.so.9").symlink_to("libdmxrt.so.9.9.9")
        (stage / f"usr/{triple}/libdmxrt.so").symlink_to("libdmxrt.so.9")
        (stage / "usr/bin/dmx-compare").symlink_to("dmxc")
        trees = debs.split(stage, self.folder)
        has = {tree.name: sorted(path.name for path in tree.rglob("*") if path.is_symlink() or path.is_file()) for tree in trees.iterdir()}
        self.assertEqual(has, {"dmxc": ["dmx-compare", "dmxc", "dmxc", "dmxc.1"], "dmx-tools": ["_dmx-run", "dmx-run", "dmx-run.1"],
                               "libdmxrt0": ["libdmxrt.so.9", "libdmxrt.so.9.9.9"], "libdmxrt0-devices": ["libdmxrt-x.so"],
                               "libdmxrt-dev": ["dmx.h", "dmxrt.pc", "libdmxrt.a", "libdmxrt.so"], "python3-dmxrt": ["__init__.py"], "python3-dmxsched": ["py.typed"]})

    def test_a_file_that_no_package_names(self):
        self.assertIn("no package has usr/lib/other.so; name it in tools/packaging/debs.py", self.refused(debs.split, self.stage("lib/other.so"), self.folder))


class Install(Folder):
    def test_pages_are_installed_with_programs(self):
        for component, programs in (("tools", ["dmx-run", "dmx-generate", "dmx-inspect"]), ("dmxc", ["dmxc", "dmx-compare"])):
            if not (BIN / programs[0]).exists():
                continue
            subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", self.folder], check=True, capture_output=True)
            for program in programs:
                for form, place in (("man", f"share/man/man1/{program}.1"), ("bash", f"share/bash-completion/completions/{program}"),
                                    ("zsh", f"share/zsh/site-functions/_{program}"), ("fish", f"share/fish/vendor_completions.d/{program}.fish")):
                    said = subprocess.run([self.folder / "bin" / program, f"--help={form}"], capture_output=True, text=True, check=True).stdout
                    self.assertEqual((self.folder / place).read_text(), said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
