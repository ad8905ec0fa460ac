"""The programs of dmxc in a wheel: `dmxc`, `dmx-run` and the others run what lies in bin/ beside this file. `import dmxrt` runs bundles."""
import os
import pathlib
import sys

GLIBC = (2, 36)  # tools/packaging/wheels.py writes what the programs need here
FOLDER = pathlib.Path(__file__).resolve().parent


def unfit():
    """Why this machine cannot run the programs, with the next step; None where it can."""
    system, machine = os.uname().sysname, os.uname().machine
    if (system, machine) != ("Linux", "x86_64"):
        return f"these programs are for Linux on x86-64, this is {system} on {machine}; build dmxc from its sources here"
    needed = ".".join(map(str, GLIBC))
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, OSError):
        return f"these programs need glibc {needed} or newer, and this system has another C library; use a container with Debian 12 or newer"
    if tuple(int(part) for part in version.split(".")[:2]) < GLIBC:
        return f"these programs need glibc {needed} or newer, this system has {version}; use a container with Debian 12 or newer, or build dmxc from its sources here"
    return None


def run(program, file=None):
    reason = unfit()
    if reason:
        sys.exit(f"{program}: error: {reason}")
    path = FOLDER / "bin" / (file or program)
    try:
        os.execv(path, [program, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{program}: error: '{path}' cannot be run: {error.strerror}; install the wheel again: pip install --force-reinstall dmxc")


def dmxc():
    run("dmxc")


def dmx_run():
    run("dmx-run")


def dmx_generate():
    run("dmx-generate")


def dmx_inspect():
    run("dmx-inspect")


def dmx_compare():
    run("dmx-compare", "dmxc")  # which is both, by the name that it is called by


def dmx_sign():
    run("dmx-sign")
