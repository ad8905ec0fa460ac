"""One package in one mode; a process in the package's environment:

  trained_one.py NAME FOLDER PROGRAMS LIBRARY MODE SECONDS        prints "ANSWER " and one line of JSON

The package's own results come first, in the same process; then those of the bundles, of as many inputs as the time is enough for."""

import importlib.metadata
import json
import pathlib
import sys
import tempfile
import time
import warnings

import trained
import trained_session


def answers(package, inputs, seconds):
    """(answers, why of the first that failed) of as many inputs as the time is enough for."""
    done, why, start = [], "", time.monotonic()
    for each in inputs:
        try:
            done.append(package.answer(each))
        except Exception as error:  # a package fails in its own ways on what a bundle gives
            done.append(None)
            why = why or reason(error)
        if time.monotonic() - start > seconds:
            break
    return done, why


def reason(error):
    """The first error of those that were raised because of each other."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return f"{type(error).__name__}: {error}"[:300]


def compared(package, own, got):
    """(how many are the same, the mean grade, the first that differs)."""
    there = [answer is not None for answer in got]
    theirs = iter(package.results([answer for answer, good in zip(own, there) if good]))
    ours = iter(package.results([answer for answer in got if answer is not None]))
    same, grades, first = 0, [], ""
    for good in there:
        pair = (next(theirs), next(ours)) if good else None
        right = good and package.same(*pair)
        same += right
        grades.append(1.0 if right else package.grade(*pair) if good else 0.0)
        first = first or ("" if right else f"{pair[1]} instead of {pair[0]}"[:300] if good else "no answer")
    return same, sum(grades) / len(grades), first


def judged(package, bundles, seconds):
    inputs = package.inputs()
    with trained_session.replaced(bundles):
        package.bundles = bundles
        package.load()
        start = time.monotonic()
        own, why = answers(package, inputs, 1e9)
        result = {"inputs": len(inputs), "own_s": round(time.monotonic() - start, 2)}
        if why:
            return result | {"state": "no answer", "why": "the package's own: " + why}
        bundles.active = True
        start = time.monotonic()
        got, why = answers(package, inputs, seconds)
    refusals = "; ".join(bundles.refused.values())
    if bundles.refused and len(bundles.refused) == len(bundles.files):
        return result | {"state": "refused", "why": refusals}
    same, grade, first = compared(package, own[: len(got)], got)
    result |= {"state": "ran", "asked": len(got), "same": same, "grade": grade, "differs": first, "why": refusals or why, "calls": bundles.calls}
    result |= {"models": len(bundles.files), "refused": len(bundles.refused)}
    result |= {"error": bundles.error, "sqnr": bundles.sqnr(), "compile_s": round(bundles.compile_seconds, 1), "bundle_bytes": bundles.bytes}
    return result | {"run_s": round(time.monotonic() - start - bundles.compile_seconds, 2), "sample": repr(package.results(own)[:2])[:300]}


def absent(package):
    """A result where the package is not there, or does not carry what it should; the environment's own word for it."""
    name, version = package.requires[0].split()[0].split("==")
    try:
        files = importlib.metadata.files(name)
    except importlib.metadata.PackageNotFoundError:
        return {"state": "not installed", "why": f"{name} {version} cannot be installed"}
    if any(file.match(package.models) for file in files):
        return None
    return {"state": "no model", "why": f"{name} {version} carries no {package.models}" + (f": {package.why}" if package.why else "")}


def main():
    name, folder, programs, library, mode, seconds = sys.argv[1:]
    warnings.simplefilter("ignore")
    mode = trained.MODES[mode]
    with tempfile.TemporaryDirectory(dir=folder, prefix="bundles-") as place:
        package = trained.package(name)
        bundles = trained_session.Bundles(place, pathlib.Path(programs), library, mode.arguments, mode.fixed, mode.control)
        result = absent(package) or judged(package, bundles, float(seconds))
    print("\nANSWER " + json.dumps(result))


if __name__ == "__main__":
    main()
