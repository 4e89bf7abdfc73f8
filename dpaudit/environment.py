"""What the numbers of a result depend on beside its seed."""

from __future__ import annotations

import platform
import sys

import numpy as np
import scipy

from dpaudit.version import __version__


def environment() -> dict[str, str]:
    """Versions of what the numbers depend on, and the platform."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "dpaudit": __version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "byteorder": sys.byteorder,
    }
