"""Linear algebra in one thread: the matrices of fits are small, and threads of theirs wait for each other.

Where processors are busy, as in a session of pytest with several workers, a product that takes one thread a millisecond
takes two of them thirty. Only fits are held to one thread; the subject's own calls never are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import threadpoolctl

P = ParamSpec("P")
T = TypeVar("T")


CONTROLLER = functools.cache(threadpoolctl.ThreadpoolController)  # of the libraries that are loaded when it is asked


def in_one_thread(fit: Callable[P, T]) -> Callable[P, T]:
    """The same function, whose linear algebra takes one thread.

    Examples
    --------
    >>> in_one_thread(sum)([1, 2])
    3
    """

    @functools.wraps(fit)
    def fitted(*args: P.args, **kwargs: P.kwargs) -> T:
        with CONTROLLER().limit(limits=1, user_api="blas"):
            return fit(*args, **kwargs)

    return fitted
