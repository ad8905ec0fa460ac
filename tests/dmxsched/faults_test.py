#!/usr/bin/python3
"""Faults of an author in Python: each is told with the file and the line of hers that has it. Usage: faults_test.py BIN REPO [unittest arguments]

The line of a fault is that with the mark `# here`."""
import sys
import unittest

from case import REPO, Author

AT = '@schedule(at="partition")\n'
START = f"from dmxsched import *\n\n\n{AT}def s(module):\n    r = module.match(nth=0)\n"

# What Python sees: (text behind START, or a whole text, what is said).
FAULTS = [
    ("    r.loop.unroll(factor=2)\n    r.decide(grain=3)  # here\n", "'r' was consumed by 'loop.unroll' at s.py:7; go on with the handles that it returned [schedule-consumed]"),
    ("    r.vectorise()  # here\n", "there is no transform 'vectorise'; did you mean 'vectorize'?"),
    ("    r.structured.vectorise()  # here\n", "there is no transform 'structured.vectorise'; did you mean 'structured.vectorize'?"),
    ("    r.annotate(param=1)  # here\n", "'annotate' needs 'name' (str); it is annotate(target: handle, name: str, param: param = ...)"),
    ("    r.coalesce(1, 2, 3)  # here\n", "'loop.coalesce' takes 0 arguments besides the handle, not 3"),
    ("    r.loop.unroll(facto=2)  # here\n", "'loop.unroll' has no argument 'facto'; did you mean 'factor'?"),
    ("    r.loop.unroll(factor='two')  # here\n", "'factor' of 'loop.unroll' is a number, not 'two' (str)"),
    ("    r.loop.unroll(factor=True)  # here\n", "'factor' of 'loop.unroll' is a number, not True (bool)"),
    ("    r.loop.unroll()  # here\n", "'loop.unroll' needs 'factor' (int)"),
    ("    r.structured.tile_using_for(sizes=4, results=1)  # here\n", "'sizes' of 'structured.tile_using_for' is a list of numbers or parameters, not 4 (int)"),
    ("    r.structured.tile_using_for(sizes=[4])  # here\n", "give results=N, how many 'loops' there are"),
    ("    r.structured.fuse_into_containing_op(7)  # here\n", "'containing_op' of 'structured.fuse_into_containing_op' is a handle, not 7 (int)"),
    ("    r.structured.fuse_into_containing_op(r.dim(0))  # here\n", "and <param 'extent'> is none"),
    ("    r.structured.match(interface='LoopLike')  # here\n", "is one of 'LinalgOp', 'LoopLikeInterface', 'TilingInterface', not 'LoopLike' (str)"),
    ("    r.apply_patterns('canonicalize')  # here\n", "there are no patterns 'canonicalize'; did you mean 'canonicalization'?"),
    ("    param('p', one_of=[1, 2], default=3)  # here\n", "'p' cannot be 3, its default; its values are [1, 2]"),
    ("    param('p', range=(8, 64, 8), default=12)  # here\n", "'p' cannot be 12, its default; its values are 8 to 64 by 8"),
    ("    param('p', divides=12, default=5)  # here\n", "'p' cannot be 5, its default; its values are what divides 12"),
    ("    param('p', one_of=[1], divides=2)  # here\n", "the parameter 'p' has one_of and divides"),
    ("    param('p', range=(1,))  # here\n", "the range of 'p' is (first, last) or (first, last, step), not (1,)"),
    ("    if r.dim(0) > 4:  # here\n        pass\n", "'extent' has its value when the script runs, so Python cannot compute with it"),
    ("    r.decide(3)  # here\n", "decide takes decisions by name, decide(grain=8), or a dictionary, not 3 (int)"),
    ("    r.decide(grain=object())  # here\n", "'grain' of 'decisions' of 'dmx.decide' is <object object"),
    ("    module.match(expect=-1)  # here\n", "expect is a number of matches from 0 on, or 'any', not -1 (int)"),
    ("    module.match(opp='dmir.conv')  # here\n", "TypeError: Handle.match() got an unexpected keyword argument 'opp'"),
    ("    q = []\n    r.foreach(q.append)  # here\n", "'foreach' takes functions of one handle, not <built-in method append"),
    ("    r.foreach(lambda x: 3)  # here\n", "'<lambda>' returns 3 (int); it may return handles and parameters"),
    ("    for x in r:  # here\n        pass\n", "how many ops 'r' has is known when the script runs; @r.foreach is for each of them"),
    ("    op('match.structured', r)  # here\n", "'match.structured' has a body"),
    ("    r.foreach(3)  # here\n", "'foreach' takes functions of one handle, not 3 (int)"),
    ("    seen = []\n    r.foreach(lambda x: seen.append(x))\n    seen[0].decide(grain=2)  # here\n", "'x' is of the body of 'foreach' at s.py:8 and not known here; return it from there"),
    ("    p = param('p', one_of=[1])\n    r.alternatives(lambda x:\n                   x.decide(grain=p))  # here\n", "'p' is from outside of 'alternatives' at s.py:8, which knows its own arguments alone"),
    ("    @transform\n    def t():\n        r.decide(grain=1)  # here\n    t()\n", "'r' is from outside of 't' at s.py:7, which knows its own arguments alone"),
    ("    r.alternatives()  # here\n", "alternatives takes functions of one handle"),
    (AT.replace("\n", "  # here\n") + "def s(module):\n    return module\n", "the schedule 's' returns handles, which nothing takes"),
    ("    prodct.decide(grain=2)  # here\n", "NameError: name 'prodct' is not defined"),
    ("    s(module)  # here\n", "the schedule 's' is run by the compiler"),
    ("    module.match(  # here\n", "'(' was never closed"),
    ("@transform\ndef twice(nest):\n    twice(nest)  # here\n\n\n" + AT + "def s(module):\n    twice(module.match(nth=0))\n", "'twice' calls itself; a script has no recursion"),
    ("@transform\ndef twice(nest):\n    nest.decide(grain=2)\n\n\n" + AT + "def s(module):\n    twice(module.match(nth=0), 3)  # here\n",
     "'twice' too many positional arguments; it is twice(nest)"),
    ("@transform\ndef gone(loop):\n    loop.loop.unroll(factor=2)\n\n\n" + AT + "def s(module):\n    r = module.match(nth=0)\n    gone(r)\n    r.decide(grain=1)  # here\n",
     "'r' was consumed by 'gone' at s.py:12; go on with the handles that it returned"),
    ("@schedule  # here\ndef s(module):\n    pass\n", "@schedule takes the stop that it runs at"),
    ("@schedule()  # here\ndef s(module):\n    pass\n", "@schedule takes the stop that it runs at"),
    ("@schedule(at=3)  # here\ndef s(module):\n    pass\n", "@schedule takes the stop that it runs at, not 3 (int)"),
    (AT.replace("\n", "  # here\n") + "def s():\n    pass\n", "the schedule 's' takes one argument, the model, not 0"),
    (AT + "def s(module):\n    pass\n\n\n" + AT.replace("\n", "  # here\n") + "def s(module):\n    pass\n", "there is another schedule 's'"),
    ("param('p', one_of=[1])  # here\n", "is outside of a schedule"),
    ("@transform(requires='nest.perfct')  # here\ndef t(nest):\n    pass\n", "there is no form 'nest.perfct'"),
    ("from dmxsched import PerfctNest  # here\n", "dmxsched has no 'PerfctNest'"),
    ("define_form('nest.even', check=3, reach=print)  # here\n", "'check' of the form 'nest.even' is a function of one handle, not 3 (int)"),
    (AT + "def s(module):\n    pass\n\n\n" + AT.replace("\n", "  # here\n") + "def t(module):\n    pass\n", "the file has the schedules s and t, and a script has one"),
    ("    module.macth('dmir.conv')  # here\n", "there is no transform 'macth'; did you mean 'match'?"),
    ("    module.match_op('dmir.conv')  # here\n", "there is no transform 'match_op'; did you mean 'match_ops'?"),
    ("    s.text()  # here\n", "a script is recorded already"),
    ("    include(1.5)  # here\n", "include takes the file's name, not 1.5 (float)"),
    ("    include('f.mlir', 'f', 1.5)  # here\n", "'operands' of 'include' is a handle or a parameter or a handle of values, not 1.5 (float)"),
    ("x = 1\n", "the file has no schedule: a function of the model with @schedule(at=...) above it"),
]


class Faults(Author):
    def test_each_is_at_its_line(self):
        for text, said in FAULTS:
            whole = START + text if text.startswith("    ") else "from dmxsched import define_form, schedule, transform, param\n\n\n" + text
            with self.subTest(said=said):
                line = next((i for i, row in enumerate(whole.splitlines(), 1) if "# here" in row), 1)
                (self.dir / "s.mlir").write_text("before")
                self.write(whole)
                error = self.dmxsched("s.py", "-o", "s.mlir", code=1)
                self.assertTrue(error.startswith(f"s.py:{line}: error: "), error)
                self.assertIn(said, error)
                self.assertRegex(error, r" \[schedule-\w+\]\n\Z")
                self.assertEqual(error.count("\n"), 1, error)
                self.assertEqual((self.dir / "s.mlir").read_text(), "before")

    def test_what_only_the_compiler_sees_is_at_the_line_of_python(self):
        for text, said in (("    module.match('dmir.conv', expect=3)  # here\n", "'dmx.match' found 2 regions, expected 3 [schedule-match]"),
                           ("    module.match('dmir.convv')  # here\n", "there is no op 'dmir.convv'; did you mean 'dmir.conv'?"),
                           ("    r.decide(grain=-4)  # here\n", "[schedule-refused]"),
                           ("    param('p', range=(1, r.dim(0)), default=5000)  # here\n", "'p' cannot be 5000, its default"),
                           ("    module.match(kind='regoin')  # here\n", "knows no kind 'regoin'"),
                           ("    r.foreach(lambda x:\n              x.decide(grain=-1))  # here\n", "[schedule-refused]")):
            with self.subTest(said=said):
                self.write(START + text)
                self.dmxsched("s.py", "-o", "s.mlir")
                line = next(i for i, row in enumerate((START + text).splitlines(), 1) if "# here" in row)
                error = self.run_tool(REPO / "tools/digits/digits.onnx", "--dim", "batch=2", "--schedule", "s.mlir", "-o", "o", code=1).stderr
                self.assertRegex(error, rf"(?m)^s\.py:{line}:\d+: ")
                self.assertIn(said, error)

    def test_a_stop_that_there_is_not(self):
        self.write("from dmxsched import *\n\n\n@schedule(at='schedule.tilse')\ndef s(m):\n    m.match()\n")
        self.dmxsched("s.py", "-o", "s.mlir")
        error = self.run_tool(self.small, "-t", "corsair", "--schedule", "s.mlir", "-o", "o", code=1).stderr
        self.assertIn('s.py:4:1: error: @s is to run at "schedule.tilse"; in this compile scripts run behind ', error)
        self.assertIn("; did you mean 'schedule.tiles'?", error)

    def test_what_is_inside_of_what_was_consumed(self):
        """Python does not see that the one handle is inside of the other; the compiler has both names from her text."""
        self.write("from dmxsched import *\n\n\n@schedule(at='partition')\ndef s(m):\n    region = m.match(nth=0)\n    inner = region.match(kind='op', nth=0)\n"
                   "    other = region.run_pass('canonicalize')\n    inner.annotate('mark')\n")
        self.dmxsched("s.py", "-o", "s.mlir")
        self.assertIn("s.py:9:5: error: 'inner' was consumed by 'transform.dmx.run_pass' at s.py:8; go on with the handles that it returned [schedule-consumed]",
                      self.run_tool(self.small, "--schedule", "s.mlir", "-o", "o", code=1).stderr)

    def test_the_column_is_that_of_the_call(self):
        self.write(START + "    a = r.dim(0); r.decide(grain=a); 'ü'; module.match(expect=77)\n")
        self.dmxsched("s.py", "-o", "s.mlir")
        error = self.run_tool(REPO / "tools/digits/digits.onnx", "--dim", "batch=2", "--schedule", "s.mlir", "-o", "o", code=1).stderr
        self.assertIn("s.py:7:43: error: 'dmx.match' found ", error)

    def test_commands(self):
        self.assertIn("error: 'absent.py': No such file", self.dmxsched("absent.py", code=3))
        self.write(START)
        self.assertIn("error: 'no/s.mlir': No such file", self.dmxsched("s.py", "-o", "no/s.mlir", code=3))
        self.assertIn("there is no schedule 't'; there are s", self.dmxsched("s.py", "--schedule", "t", code=1))
        self.assertIn("give a file of Python", self.dmxsched(code=2))
        self.assertIn("did you mean 'unroll'", self.dmxsched("--ops", "unrol", code=1))
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["s.py", "small.mlir"])

    def test_the_compiler_runs_no_python(self):
        self.write(START)
        error = self.run_tool(self.small, "--schedule", "s.py", "-o", "o", code=1).stderr
        self.assertIn("s.py: error: is Python, which dmxc does not run; print its script and give that: python3 -m dmxsched s.py -o s.mlir [schedule-script]", error)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
