"""A stable of nasty functions: what users do to outputs, and what no promise of differential privacy may notice.

Each is a function of *one* output, and of nothing else: what it makes of a run never depends on the rest of the batch.
Numbers and arrays of numbers are changed as the name says; any other output (text, None, an exception) stays itself,
but for `text`, `hashing` and `forgetting`, which take anything. The randomised ones take a generator too. One
`reads_doubles`: naive noise in floating point gives its input away through the low bits, which no claim on the real
line promises against. The auditor has a check of its own for that, so it is not among `LAWS`.

`NASTY_FUNCTIONS` has them all, by name and in this order: rounding, truncation, clipping, thresholding, sign, parity,
low bits, sorting, argmax, total, reciprocal (infinities and NaN included), text, hashing, forgetting, and, randomised,
flipping and jitter.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.features.outcomes import canonical, is_number, plain
from dpaudit.privacy.claims import FloatArray

NumberRule = Callable[[FloatArray], NDArray[Any]]  # (runs, columns) to (runs,) or (runs, columns)


@dataclasses.dataclass(frozen=True)
class NastyFunction:
    """A named function of single outputs, `function(outputs)` on a batch, or `function(outputs, rng)` if randomised.

    Examples
    --------
    >>> NASTY["rounding"](np.array([0.4, 1.6]))
    array([0., 2.])
    >>> NASTY["argmax"]([[1, 5, 2], "none"])
    [1, 'none']
    """

    name: str
    rule: NumberRule | None = None
    of_objects: Callable[[Any], Any] | None = None
    noise: Callable[[FloatArray, np.random.Generator], NDArray[Any]] | None = None
    reads_doubles: bool = False

    @property
    def is_randomised(self) -> bool:
        """Tell whether it takes a generator."""
        return self.noise is not None

    def __call__(self, outputs: Any, rng: np.random.Generator | None = None) -> Any:
        """The function of each output of a batch: an array for arrays of numbers, a list otherwise."""
        if self.is_randomised and rng is None:
            raise UsageError(f"rng must be a generator for the randomised function {self.name!r}, got None.")
        if self.of_objects is not None:
            return [self.of_objects(output) for output in outputs]
        if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf":
            return self._on_numbers(outputs, rng)
        return [self._on_one(output, rng) for output in outputs]

    def _on_one(self, output: Any, rng: np.random.Generator | None) -> Any:
        if is_number(output) or (isinstance(output, np.ndarray) and output.dtype.kind in "biuf"):
            return plain(self._on_numbers(np.asarray(output, dtype=float)[None, ...], rng)[0])
        if isinstance(output, list | tuple) and output and all(is_number(value) for value in output):
            return plain(self._on_numbers(np.array([[float(value) for value in output]]), rng)[0])
        return output

    def _on_numbers(self, outputs: NDArray[Any], rng: np.random.Generator | None) -> NDArray[Any]:
        rows = np.ascontiguousarray(outputs.reshape(len(outputs), math.prod(outputs.shape[1:])), dtype=float)
        with np.errstate(all="ignore"):  # nasty on purpose: division by zero, overflow and NaN are outputs
            if self.noise is not None and rng is not None:
                result = self.noise(rows, rng)
            elif self.rule is not None:
                result = self.rule(rows)
            else:
                raise UsageError(f"function {self.name!r} must have a rule for numbers, got none.")
        return result.reshape(outputs.shape) if result.shape == rows.shape else result


def _truncation(rows: FloatArray) -> NDArray[Any]:
    return np.trunc(rows * 4.0) / 4.0


def _thresholding(rows: FloatArray) -> NDArray[Any]:
    return (rows > 0.5).astype(float)


def _parity(rows: FloatArray) -> NDArray[Any]:
    return np.mod(np.floor(rows), 2.0)


def _low_bits(rows: FloatArray) -> NDArray[Any]:
    return np.asarray((np.ascontiguousarray(rows).view(np.uint64) & np.uint64(7)).astype(float))


def _argmax(rows: FloatArray) -> NDArray[Any]:
    return np.asarray(np.argmax(rows, axis=1))


def _total(rows: FloatArray) -> NDArray[Any]:
    # One column after the other: numpy's own sum adds in an order that depends on the shape of the batch.
    result = np.zeros(len(rows))
    for column in range(rows.shape[1]):
        result = result + rows[:, column]
    return result


def _reciprocal(rows: FloatArray) -> NDArray[Any]:
    return 1.0 / np.round(rows)


def hash_of(output: Any) -> int:
    """32 bits of an output's canonical text (CRC-32): the same on every machine, and in every batch."""
    return zlib.crc32(canonical(output).encode("utf-8", "replace"))


def hash_parity(outputs: Any) -> NDArray[np.int64]:
    """0 or 1 for each output of a batch by its hash: a choice that depends on the output alone."""
    listed = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
    return np.array([hash_of(output) % 2 for output in listed], dtype=np.int64)


def _hashing(output: Any) -> int:
    return hash_of(output) % 16


def _forgetting(output: Any) -> int:
    return 0


def _flipping(rows: FloatArray, rng: np.random.Generator) -> NDArray[Any]:
    return np.where(rng.random((len(rows), 1)) < 0.25, -rows, rows)


def _jitter(rows: FloatArray, rng: np.random.Generator) -> NDArray[Any]:
    return rows + rng.normal(scale=0.25, size=rows.shape)


NASTY_FUNCTIONS: tuple[NastyFunction, ...] = (
    NastyFunction("rounding", np.round),
    NastyFunction("truncation", _truncation),
    NastyFunction("clipping", functools.partial(np.clip, a_min=0.0, a_max=1.0)),
    NastyFunction("thresholding", _thresholding),
    NastyFunction("sign", np.sign),
    NastyFunction("parity", _parity),
    NastyFunction("low bits", _low_bits, reads_doubles=True),
    NastyFunction("sorting", functools.partial(np.sort, axis=1)),
    NastyFunction("argmax", _argmax),
    NastyFunction("total", _total),
    NastyFunction("reciprocal", _reciprocal),
    NastyFunction("text", of_objects=canonical),
    NastyFunction("hashing", of_objects=_hashing),
    NastyFunction("forgetting", of_objects=_forgetting),
    NastyFunction("flipping", noise=_flipping),
    NastyFunction("jitter", noise=_jitter),
)
NASTY = {function.name: function for function in NASTY_FUNCTIONS}
