"""Run the rooms that depend on vectorised mathematics as other kinds of processor would.

numpy chooses its loops by what the processor can do, and those of AVX-512 give other last bits than the C library.
`NPY_DISABLE_CPU_FEATURES` takes features away. The sets: the baseline alone, and all but AVX-512 where there is some.
`make test` runs these files with everything that the machine has.
"""

from __future__ import annotations

import os
import subprocess
import sys

try:
    from numpy._core import _multiarray_umath as umath
except ImportError:  # numpy 1
    from numpy.core import _multiarray_umath as umath

FILES = [
    "tests/exact",
    "tests/inference/test_binomial.py",
    "tests/features/test_low_bits.py",
    "tests/audits/test_low_bit_stage.py",
    "tests/audits/test_saved_low_bits.py",
    "tests/inference/test_payoffs.py",
    "tests/learning/test_rank_tree.py",
    "tests/learning/test_mixture.py",
]


def sets() -> dict[str, list[str]]:
    """Names of the features to take away, by what is left; only such as this machine has and numpy chooses by."""
    present = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    wide = [name for name in present if name.startswith("AVX512") or name == "X86_V4"]
    found = {"the baseline alone": present, "all but AVX-512": wide}
    return {left: names for left, names in found.items() if names}


def main() -> int:
    status = 0
    if not sets():
        print("numpy chooses nothing by the features of this processor: nothing to run again")
    for left, names in sets().items():
        print(f"{left} (without {', '.join(names)})", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not long", *FILES]
        environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(names)}
        status = max(status, subprocess.run(command, env=environment, check=False).returncode)
    return status


if __name__ == "__main__":
    sys.exit(main())
