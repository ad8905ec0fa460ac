"""The Python of tools/models, for tests that need a newer torch than Debian's."""
import importlib
import os
import pathlib
import sys


def enter(*modules):
    """Goes on where these can be imported: here, or in the environment that `tools/models --export --keep-envs` leaves. Exit 77 without."""
    try:
        for name in modules:
            importlib.import_module(name)
    except ImportError:
        environments = sorted(pathlib.Path(__file__).resolve().parents[1].glob("build/models/venv-2*/bin/python"))
        if environments and pathlib.Path(sys.prefix).resolve() != environments[-1].parents[1]:
            os.execv(environments[-1], [environments[-1], *sys.argv])
        print(f"SKIPPED: no Python with {', '.join(modules)}; tools/models --export --keep-envs makes one")
        sys.exit(77)
