"""python3 -m dmxsched: prints the script of a file of Python."""
import argparse
import os
import runpy
import sys
import traceback

from . import decorators, ops
from .places import PACKAGE, Error, Place, near


def fail(text, code):
    print(text, file=sys.stderr)
    return code


def author_line(error, file):
    """The last line of the author's that an exception came through."""
    if isinstance(error, SyntaxError) and error.filename:
        return Place(error.filename, error.lineno or 1)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith((PACKAGE, "<frozen "))]
    return Place(frames[-1].filename, frames[-1].lineno or 1) if frames else Place(file, 1)


def read(file):
    """Runs the author's file, whose schedules are then in decorators.every."""
    with open(file, "rb"):  # a file that is none is told of by its name
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    runpy.run_path(file, run_name="__dmxsched__")


def chosen(name, file):
    """The schedule of the file that is asked for: dmxc takes one a script."""
    if not decorators.every:
        raise Error(Place(file, 1), "the file has no schedule: a function of the model with @schedule(at=...) above it", "script")
    known = {one.name: one for one in decorators.every}
    if name is not None and name not in known:
        raise Error(Place(file, 1), f"there is no schedule '{name}'{near(name, known)}; there are {', '.join(known)}", "script")
    if name is None and len(known) > 1:
        raise Error(decorators.every[1].place, f"the file has the schedules {' and '.join(known)}, and a script has one: --schedule {decorators.every[0].name} "
                    "prints that; give dmxc a --schedule for each", "script")
    return known[name] if name is not None else decorators.every[0]


def write(text, out):
    """Whole or not at all."""
    if out == "-":
        sys.stdout.write(text)
        return
    part = f"{out}.part{os.getpid()}"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, out)
    except OSError:
        if os.path.exists(part):
            os.remove(part)
        raise


def list_ops(names):
    known = ops.known()
    for name in names or sorted(known):
        op = known.get(name.replace("transform.", "")) or ops.find(name)
        forms = "".join(f"\n    {word} {op.row[key]}" for key, word in (("needs", "needs"), ("keeps", "keeps")) if op.row.get(key))
        gone = f"\n    consumes {', '.join(ops.python_name(name) for name in op.row['consumes'])}" if op.row["consumes"] else ""
        summary = f"\n    {op.row['summary']}" if op.row["summary"] else ""
        print(op.signature + (f"{summary}{gone}{forms}" if names else ""))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python3 -m dmxsched", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description="Prints the schedules of a file of Python as a script for `dmxc --schedule`.",
                                     epilog="exit codes: 0 ok; 1 the file has a fault, which is named with its line; 2 wrong arguments; 3 a file cannot be "
                                     "read or written\n\nexample:\n  python3 -m dmxsched s.py -o s.mlir && dmxc model.onnx --schedule s.mlir -o model.bundle")
    parser.add_argument("file", nargs="?", help="the author's file")
    parser.add_argument("-o", metavar="FILE", default="-", help="where the script goes; without it, or with -, to stdout")
    parser.add_argument("--schedule", metavar="NAME", help="which schedule, where the file has several")
    parser.add_argument("--ops", metavar="NAME", nargs="*", help="lists the compiler's transforms with their arguments, or says what these do")
    options = parser.parse_args(arguments)
    if options.ops is None and options.file is None:
        parser.error("give a file of Python, as s.py")
    try:
        if options.ops is not None:
            list_ops(options.ops)
            return 0
        return run(options)
    except Error as error:
        return fail(error if options.file else f"error: {error.text}", 1)
    except OSError as error:
        return fail(f"error: '{options.o if '.part' in str(error.filename) else error.filename or options.o}': {error.strerror}", 3)


def run(options):
    file = options.file
    try:
        read(file)
        text = chosen(options.schedule, file).text()
    except (Error, OSError):
        raise
    except Exception as error:  # the author's own: a name that is none, a wrong number of arguments
        place = author_line(error, file)
        what = f"{error.msg}" if isinstance(error, SyntaxError) else f"{type(error).__name__}: {error}"
        raise Error(place, what) from error
    write(text, options.o)
    return 0


if __name__ == "__main__":
    sys.exit(main())
