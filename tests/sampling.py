"""Which cases a plain run of a test takes: one of N, others in the next run, and all of them in the long one (tools/test --long). What a
run takes follows from a number, which it prints: DMXC_SAMPLE=NUMBER takes the same again. Sample.h is the same for tests in C++."""
import os
import time

LONG = os.environ.get("DMXC_LONG", "0") not in ("", "0")
# tools/test has another one for each commit; without it the day decides.
SEED = int(os.environ.get("DMXC_SAMPLE") or time.time() // 86400)


def sample(cases, share):
    """One of `share` of a list; `share` seeds in a row take all of them."""
    cases = list(cases)
    if LONG:
        return cases
    print(f"a sample: one of {share} of {len(cases)} cases, DMXC_SAMPLE={SEED}", flush=True)
    return [case for i, case in enumerate(cases) if (i + SEED) % share == 0]


def sampled(share):
    """Of a unittest class: one of `share` of its tests, the others are skipped."""
    def decorate(cls):
        import unittest
        names = sorted(name for name in vars(cls) if name.startswith("test_"))
        for name in set(names) - set(sample(names, share)):
            setattr(cls, name, unittest.skip(f"not in this sample, DMXC_SAMPLE={SEED}")(getattr(cls, name)))
        return cls
    return decorate
