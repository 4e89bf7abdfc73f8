"""The version of dpaudit, what else numbers depend on beside the seed, and threads of linear algebra."""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    import threadpoolctl

__version__ = "0.1.0"
P = ParamSpec("P")
T = TypeVar("T")


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


@functools.cache
def _controller() -> threadpoolctl.ThreadpoolController:
    """Of the libraries that are loaded now: those of numpy and of scipy."""
    import threadpoolctl  # here, since `import dpaudit` reads the version alone

    return threadpoolctl.ThreadpoolController()


def in_one_thread(fit: Callable[P, T]) -> Callable[P, T]:
    """The same function, whose linear algebra takes one thread.

    Matrices of fits are small, and threads of theirs wait for each other: where processors are busy, as in a session of
    pytest with several workers, a product that takes one thread a millisecond takes two of them thirty. Only fits are
    held to one thread; the subject's own calls never are.

    Examples
    --------
    >>> in_one_thread(sum)([1, 2])
    3
    """

    @functools.wraps(fit)
    def fitted(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return fit(*args, **kwargs)

    return fitted
