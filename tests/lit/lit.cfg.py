# How the IR tests run; the site file that CMake writes gives the folders.
import os

import lit.formats

config.name = "dmxc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.dmxc_build_lit
config.environment["PATH"] = os.pathsep.join([config.dmxc_tools, config.llvm_tools, os.environ.get("PATH", "/usr/bin:/bin")])
# Reproducers of crashes belong to the test's folder, not to the machine's.
config.environment["TMPDIR"] = config.dmxc_build_lit
config.substitutions.append(("%repo", config.dmxc_source))
# A folder of one target's tests asks for it in its lit.local.cfg.
config.available_features.update("target-" + target for target in config.dmxc_targets)
# The same of a front end's.
config.available_features.update("frontend-" + frontend for frontend in config.dmxc_frontends)
