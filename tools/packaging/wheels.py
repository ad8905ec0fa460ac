"""The wheel: programs with what they need, libdmxrt with its devices, and the Python modules dmxrt and dmxsched."""
import base64
import hashlib
import pathlib
import re
import shutil
import time
import zipfile

import common

METADATA = """Metadata-Version: 2.1
Name: dmxc
Version: {version}
Summary: {summary}
Requires-Python: >=3.9
Requires-Dist: numpy
License-File: LICENSES.md
Description-Content-Type: text/markdown

{description}
"""
DESCRIPTION = """`dmxc model.onnx -o model.bundle` compiles a model; `dmx-run`, `dmx-inspect`, `dmx-compare` and `dmx-sign` run, show, compare and sign
bundles; `dmx-generate` takes and gives token ids of language models; `import dmxrt` runs them from Python, and `import dmxsched` writes
schedules. Needs Linux on x86-64 with glibc {glibc} or newer and numpy; libstdc++ and libgcc are the
system's. `dmxc --help=man`, `=bash`, `=zsh` and `=fish` write what a package would install.
"""


def collect(stage, folder):
    """Fills folder with the files of a staged install, flat: bin/ and lib/ of the package, the modules dmxrt and dmxsched beside it."""
    package = folder / "dmxc"
    (package / "bin").mkdir(parents=True)
    (package / "lib").mkdir()
    for program in common.BUILT:  # no wheel has links: dmx-compare is dmxc by that name
        shutil.copy2(stage / "usr/bin" / program, package / "bin")
    for library in sorted((stage / "usr/lib").rglob("libdmxrt*.so*")):
        if not library.is_symlink():
            # By the name that programs ask for.
            shutil.copy2(library, package / "lib" / re.sub(r"(\.so\.\d+)\..*", r"\1", library.name))
    shutil.copytree(stage / "usr/lib/python3/dist-packages", folder, dirs_exist_ok=True)
    return package


def vendor(package):
    """Copies the libraries that are not of every system beside libdmxrt. The Debian packages that they are of."""
    packages = set()
    for path in sorted(package.glob("*/*")):
        for name, file in common.found_libraries(path).items():
            if name not in common.OF_EVERY_SYSTEM and not (package / "lib" / name).exists():
                shutil.copy2(file.resolve(), package / "lib" / name)
                packages.add(common.package_of(file))
    return sorted(packages)


def check(package):
    """The newest glibc that any file asks for."""
    newest = (2, 17)  # the oldest that there is a tag for
    for path in sorted(package.glob("*/*")):
        versions = common.symbol_versions(common.run("objdump", "-T", path))
        common.check_symbols(versions, path.name)
        newest = max(newest, versions.get("GLIBC", newest)[:2])
        for name in common.needed(path):
            if name not in common.OF_EVERY_SYSTEM and not (package / "lib" / name).exists():
                common.fail(f"{path.name} needs {name}, which is neither in the wheel nor on every system")
    return newest


def write_wheel(folder, file, when):
    """A wheel of all files in folder. The same files give the same bytes: names are sorted, dates are one."""
    info = next(folder.glob("*.dist-info"))
    rows = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, data, executable):
            item = zipfile.ZipInfo(name, time.gmtime(when)[:6])
            item.compress_type = zipfile.ZIP_DEFLATED
            item.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(item, data)
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data, name = path.read_bytes(), path.relative_to(folder).as_posix()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
            add(name, data, name.startswith("dmxc/bin/"))
        record = f"{info.name}/RECORD"
        add(record, "\n".join(rows + [f"{record},,"]) + "\n", False)


def describe(folder, glibc, packages):
    """Writes the launcher and the metadata; the licences of these Debian packages lie beside it. The wheel's name."""
    version, tag = common.version(), f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_x86_64"
    launcher = (common.ROOT / "tools/packaging/wheel/__init__.py").read_text()
    (folder / "dmxc/__init__.py").write_text(re.sub(r"^GLIBC = \(.*?\)", f"GLIBC = {glibc}", launcher, flags=re.M))
    info = folder / f"dmxc-{version}.dist-info"
    info.mkdir()
    description = DESCRIPTION.format(glibc=".".join(map(str, glibc)))
    (info / "METADATA").write_text(METADATA.format(version=version, summary=common.SUMMARY, description=description))
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: tools/package\nRoot-Is-Purelib: false\nTag: {tag}\n")
    (info / "entry_points.txt").write_text("[console_scripts]\n" + "".join(f"{name} = dmxc:{name.replace('-', '_')}\n" for name in common.PROGRAMS))
    shutil.copy2(common.ROOT / "LICENSES.md", info)
    for name in packages:
        shutil.copy2(pathlib.Path("/usr/share/doc") / name / "copyright", info / f"{name}.copyright")
    return f"dmxc-{version}-{tag}.whl"


def make_wheel(stage, work, out, when):
    """The wheel's path."""
    folder = work / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    package = collect(stage, folder)
    packages = vendor(package)
    file = out / describe(folder, check(package), packages + ["llvm-22-dev", "libmlir-22-dev", "liblld-22", "libcli11-dev", "nlohmann-json3-dev"])
    write_wheel(folder, file, when)
    return file
