"""The version is that of dmx.h, the one place where it stands."""
import pathlib
import re

import setuptools

header = pathlib.Path(__file__).resolve().parents[2] / "include/dmx/dmx.h"
setuptools.setup(version=".".join(re.findall(r"#define DMX_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read_text())))
