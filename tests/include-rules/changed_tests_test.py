#!/usr/bin/env python3
"""Every test is of a room, and what a change reaches has the tests that would find it. Usage: changed_tests_test.py BUILD [unittest arguments]"""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "scripts"), str(pathlib.Path(__file__).resolve().parent)]
import changed_tests  # noqa: E402
import rooms_of_tests  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
# Files of rooms: tests that a fault in them can fail, and tests that it cannot reach.
ROOMS = {
    "schemas/corsair/Isa.cpp": ("corsair.CorsairImage cli.corsair-graphs runtime.CorsairSimd lit.targets/corsair", "cli.aie torch.Aten conformance.node"),
    "schemas/aie/Verify.cpp": ("aie. cli.aie runtime.exports.aie", "cli.corsair-graphs conformance.zoo"),
    "targets/corsair/decide/Ops.cpp": ("cli.corsair-range lit.targets/corsair corsair.stages fuzz.nets", "runtime.CorsairSimd cli.aie cuda.models cli.dynamic-shapes"),
    "targets/aie/place/Placement.h": ("cli.aie aie.AieConv lit.targets/aie cuda.joins", "cli.corsair-range torch.Aten"),
    "targets/cuda/CMakeLists.txt": ("cuda.models lit.targets/cuda conformance.cuda", "cli.aie torch.Aten fuzz.graphs-corsair"),
    "targets/cpu/CpuTarget.cpp": ("conformance.node ProductRegion. cli.dynamic-shapes torch.Aten", "cuda.models cli.corsair-shapes runtime.CudaSim"),
    "runtime/devices/cuda/sim/Bulk.cpp": ("runtime.CudaSim cuda.models fuzz.cuda", "torch.Aten conformance.node runtime.CorsairSimd"),
    "runtime/devices/corsair/Card.cpp": ("runtime.CorsairSimd cli.corsair-range", "runtime.CudaSim lit.targets/cpu"),
    "runtime/session/Session.cpp": ("runtime.CorsairSimd runtime.CudaSim conformance.node cli.aie torch.Aten", "lit_without"),
    "frontends/onnx/Import.cpp": ("frontends.onnx conformance.node lit.frontends/onnx fuzz.onnx", "torch.Aten frontends.torch ProductRegion."),
    "frontends/torch/reader/Archive.cpp": ("frontends.torch torch.Aten fuzz.torch models.fixtures", "conformance.node frontends.onnx"),
    "targets/common/roots/Loops.cpp": ("conformance.node cuda.models cli.aie TargetsCommonTest", "runtime.CudaSim frontends.onnx"),
    "src/Dialect/DMIR/Rows.cpp": ("dialect. reference. frontends.onnx frontends.torch cli.corsair-range conformance.node", "runtime.CudaSim support."),
    "src/Support/Json.cpp": ("support. unit.Bundle conformance.node cuda.models", "runtime.CudaSim"),
    "src/Phases/Partition/CutConcats.cpp": ("lit.Phases/Partition conformance.node cuda.models cli.aie", "frontends.onnx reference. runtime.CudaSim"),
}
# Of pages, tests and scripts: all of those that they reach but what runs for every change.
OWN = {
    "tests/cli/aie_test.py": ("cli.aie", "cli.dmxc"),
    "tests/lit/targets/corsair/functions.mlir": ("lit.targets/corsair", "cli."),
    "tests/cli/dynamic_shapes.py": ("cli.dynamic-shapes cli.corsair-range cli.corsair-rotations", "torch."),
    "tests/runtime/cuda/CudaBody.h": ("runtime.CudaSim", "cli."),
    "tests/models/TRAINED.md": ("models.trained", "cli."),
    "tests/unit/TargetsCpu/RowRegionTest.cpp": ("RowRegion.", "cli."),
    "tools/scripts/longest_tests.py": ("", "cli.dmxc runtime."),
}


class Changes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tests = changed_tests.Tests(BUILD)

    def test_every_test_has_a_room(self):
        self.assertEqual(rooms_of_tests.unknown_rooms(ROOT), [])
        self.assertEqual([test for test in self.tests.words if rooms_of_tests.row_of(test) is None], [])

    def has(self, chosen, word):
        """Of a suite any; of what this build has no test of, any."""
        fitting = {test for test in self.tests.words if test == word or test.startswith(word if word.endswith(".") else word + ".")}
        return not fitting or bool(fitting & chosen)

    def check(self, table):
        for name, (reached, others) in table.items():
            chosen, _, _ = changed_tests.reached([name], self.tests)
            for word in reached.split():
                with self.subTest(name, reaches=word):
                    self.assertTrue(self.has(chosen, word))
            for word in others.split():
                with self.subTest(name, leaves=word):
                    self.assertFalse([test for test in chosen if test.startswith(word)])
            with self.subTest(name):
                self.assertIn("include-rules", chosen)

    def test_rooms(self):
        self.check(ROOMS)

    def test_pages_tests_and_scripts(self):
        self.check(OWN)

    def test_how_things_are_built(self):
        for name in ("CMakeLists.txt", "tests/CMakeLists.txt", "tools/cmake/DmxcHelpPages.cmake", ".ci/run", "tools/test"):
            with self.subTest(name):
                self.assertEqual(len(changed_tests.reached([name], self.tests)[0]), len(self.tests.words))

    def test_patterns(self):
        self.assertEqual(changed_tests.pattern_of({"runtime.CudaSim.Runs", "runtime.CudaSim.Ends", "fuzz.cuda"}), "fuzz[.]cuda|runtime[.]CudaSim")
        self.assertEqual(changed_tests.pattern_of(set()), "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
