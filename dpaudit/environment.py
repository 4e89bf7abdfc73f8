"""The version of dpaudit, and what else the numbers of a result depend on beside its seed."""

from __future__ import annotations

import platform
import sys

__version__ = "0.2.0"


def environment() -> dict[str, str]:
    """Versions of what the numbers depend on, and the platform."""
    import numpy as np  # here, since `import dpaudit` reads the version alone
    import scipy

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "dpaudit": __version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "byteorder": sys.byteorder,
    }
