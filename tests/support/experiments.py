"""Quick runs of the installed experiments, which several tests look at."""

import functools

from dpaudit.reproductions.reproduction import Options, load_reproduction

QUICK = Options(seed=3, quick=True)


@functools.cache
def quick(name):
    """The outcome of one quick run, by the name that `dpaudit reproduce` knows."""
    return load_reproduction(name).run(QUICK)
