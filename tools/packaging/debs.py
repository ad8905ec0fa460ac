"""Debian packages, by CPack, of a staged install."""
import gzip
import os
import shutil
import subprocess
import textwrap

import common

MAINTAINER = "The dmxc authors <dmxc@dmxc.invalid>"
SECTIONS = {"dmxc": "devel", "dmx-tools": "devel", "libdmxrt0": "libs", "libdmxrt0-devices": "libs", "libdmxrt-dev": "libdevel",
            "python3-dmxrt": "python", "python3-dmxsched": "python", "python3-dmxkernels": "python"}
# package -> (what of the staged /usr is in it, the rest of its dependencies, its description)
PACKAGES = {
    "dmxc": (["bin/dmxc", "bin/dmx-compare", "share/man/man1/dmxc.1", "share/man/man1/dmx-compare.1", "share/*/*/*dmxc*", "share/*/*/*dmx-compare*"],
             "", "The programs dmxc, which compiles ONNX models and exported PyTorch programs to bundles, and dmx-compare, which holds a bundle "
             "against a reference interpreter."),
    "dmx-tools": (["bin/dmx-*", "share/man/man1/dmx-*", "share/*/*/*dmx-*"], "",
                  "The programs dmx-run, dmx-generate, dmx-inspect and dmx-sign, which run, show, check and sign bundles. They need no compiler."),
    "libdmxrt0": (["lib/*/libdmxrt.so.*"], "", "The C library that opens and runs bundles on the processor."),
    "libdmxrt0-devices": (["lib/*/libdmxrt-*.so"], "libdmxrt0 (= {version})", "What libdmxrt0 opens for bundles for devices other than the processor: "
                          "NVIDIA GPUs, and the simulated accelerators corsair and aie."),
    "python3-dmxrt": (["lib/python3/dist-packages/dmxrt"], "libdmxrt0 (>= {version}), python3, python3-numpy", "The module dmxrt, which runs bundles on arrays of numpy, and dmxrt.generate, which writes text with those of language models (with dmx-tools)."),
    "python3-dmxsched": (["lib/python3/dist-packages/dmxsched"], "python3", "The module dmxsched, which writes schedules for dmxc; python3 -m dmxsched prints those of a file."),
    "python3-dmxkernels": (["lib/python3/dist-packages/dmxkernels"], "python3", "The module dmxkernels, which writes kernels for GPUs as texts that dmxc takes (--kernels)."),
    "libdmxrt-dev": (["include", "lib/*/*.a", "lib/*/libdmxrt.so", "lib/*/cmake", "lib/*/pkgconfig"],
                     "libdmxrt0 (= {version}), libsodium-dev", "Headers, static libraries, and what CMake and pkg-config need to find libdmxrt."),
}
CONFIG = """
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME {name})
set(CPACK_PACKAGE_VERSION {version})
set(CPACK_PACKAGE_VENDOR "dmxc")
set(CPACK_PACKAGE_CONTACT "{maintainer}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "{summary}")
set(CPACK_PACKAGE_DESCRIPTION "{description}")
set(CPACK_PACKAGE_FILE_NAME {name}_{version}_{arch})
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE {arch})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "{maintainer}")
set(CPACK_DEBIAN_PACKAGE_SECTION {section})
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "{depends}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS {shlibdeps})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS {library})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "{control}")
set(CPACK_STRIP_FILES OFF)
set(CPACK_INSTALLED_DIRECTORIES "{tree};/")
set(CPACK_PACKAGING_INSTALL_PREFIX "/")
set(CPACK_SET_DESTDIR OFF)
"""


def split(stage, work):
    """A folder a package; what no package takes is an error, so that nothing that is installed is lost."""
    trees = work / "debs"
    shutil.rmtree(trees, ignore_errors=True)
    usr = stage / "usr"
    whose = {}  # the first package that names a file has it; all are found before any is moved, links too
    for name, (patterns, _, _) in PACKAGES.items():
        for pattern in patterns:
            for path in sorted(usr.glob(pattern)):
                whose.setdefault(path, name)
    for path, name in whose.items():
        to = trees / name / "usr" / path.relative_to(usr)
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)
    left = [path for path in usr.rglob("*") if not path.is_dir()]
    if left:
        common.fail(f"no package has {left[0].relative_to(stage)}; name it in tools/packaging/debs.py")
    return trees


def add_documents(tree, name, when):
    """What Debian's policy asks of every package, and dates that are one."""
    documents = tree / "usr/share/doc" / name
    documents.mkdir(parents=True)
    shutil.copy(common.ROOT / "tools/packaging/debian/copyright", documents / "copyright")
    # Of the manual level, without a name or a date: the same bytes every time.
    with open(documents / "changelog.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(common.debian_changelog(name, MAINTAINER, when).encode())
    overrides = common.ROOT / f"tools/packaging/debian/{name}.lintian-overrides"
    if overrides.exists():
        (tree / "usr/share/lintian/overrides").mkdir(parents=True)
        shutil.copy(overrides, tree / "usr/share/lintian/overrides" / name)
    for page in tree.glob("usr/share/man/man*/*"):
        with open(page.with_name(page.name + ".gz"), "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
            packed.write(page.read_bytes())
        page.unlink()
    functions = tree / "usr/share/zsh/site-functions"
    if functions.exists():  # where Debian's zsh looks
        functions.rename(functions.with_name("vendor-completions"))
    for path in [*tree.rglob("*"), tree]:
        if not path.is_symlink():
            executable = path.is_dir() or path.parent.name == "bin"
            path.chmod(0o755 if executable else 0o644)
            os.utime(path, (when, when))


def prepare(tree, work):
    """ELF files as Debian has them: no folders to look for libraries in, archives with one date."""
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        if path.suffix == ".a":
            common.run("strip", "--strip-debug", "--enable-deterministic-archives", path)
        elif common.is_elf(path):
            script = work / "rpath.cmake"
            script.write_text(f'file(RPATH_REMOVE FILE "{path}")\n')
            common.run("cmake", "-P", script)
            common.check_symbols(common.symbol_versions(common.run("objdump", "-T", path)), path.name)


def make_debs(stage, work, out, when):
    """The packages' paths."""
    version = common.version()
    trees = split(stage, work)
    made = []
    for name, (_, depends, description) in PACKAGES.items():
        tree = trees / name
        if not tree.exists():
            common.fail(f"nothing was built for the package {name}")
        prepare(tree, work)
        add_documents(tree, name, when)
        arch = "all" if name.startswith("python") else "amd64"
        (work / "triggers").write_text("activate-noawait ldconfig\n")
        config = work / f"{name}.cmake"
        config.write_text(CONFIG.format(
            name=name, version=version, summary=f"{common.SUMMARY}: {name}", description="\\n".join(textwrap.wrap(description, 75)), arch=arch, maintainer=MAINTAINER, section=SECTIONS[name],
            depends=depends.format(version=version), tree=tree,
            control=work / "triggers" if name == "libdmxrt0" else "", library="ON" if name == "libdmxrt0" else "OFF",
            shlibdeps="ON" if arch == "amd64" and name != "libdmxrt-dev" else "OFF"))
        common.run("cpack", "--config", config, "-B", work / "cpack", env={**os.environ, "SOURCE_DATE_EPOCH": str(when), "TZ": "UTC"})
        made.append(shutil.move(work / "cpack" / f"{name}_{version}_{arch}.deb", out / f"{name}_{version}_{arch}.deb"))
    return made


def lintian(files):
    """Lintian's errors end it; without lintian that is said."""
    if not shutil.which("lintian"):
        print("lintian is not installed: packages are not checked by it (apt install lintian)")
        return
    if subprocess.run(["lintian", "--fail-on", "error", "--tag-display-limit", "0", *files]).returncode:
        common.fail("lintian finds errors in the packages; they are above")
