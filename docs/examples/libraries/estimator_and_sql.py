"""Two subjects of one's own: an estimator whose attributes are released, and a query of a table in SQLite.

dpaudit audit docs/examples/libraries/estimator_and_sql.py:adults
python docs/examples/libraries/estimator_and_sql.py
"""

from __future__ import annotations

import sqlite3

import numpy as np

import dpaudit
from dpaudit.subjects.libraries import estimators, sql, with_pairs


class NoisyLine:
    """A slope through the origin with noise on both sums: X and y in [0, 1], 1-DP when one record is added or removed.

    With `peeks` the number of records is released as it is.
    """

    def __init__(self, epsilon: float = 1.0, peeks: bool = False, random_state: np.random.RandomState | None = None):
        self.epsilon, self.peeks, self.random_state = epsilon, peeks, random_state

    def get_params(self, deep: bool = True) -> dict:
        return {"epsilon": self.epsilon, "peeks": self.peeks, "random_state": self.random_state}

    def fit(self, X: list[float], y: list[float]) -> NoisyLine:
        sums = np.array([np.dot(X, X), np.dot(X, y)])  # each has sensitivity 1
        noisy = sums + self.random_state.laplace(scale=2.0 / self.epsilon, size=2)
        self.coef_ = noisy[1] / max(noisy[0], 1.0)
        self.records_ = len(X) if self.peeks else 0
        return self


LINES = [({"X": [0.5, 1.0], "y": [0.5, 0.0]}, {"X": [0.5], "y": [0.5]})]
line = with_pairs(estimators.subject(NoisyLine(), ["coef_", "records_"], claim="eps=1"), LINES)
peeking_line = with_pairs(estimators.subject(NoisyLine(peeks=True), ["coef_", "records_"], claim="eps=1"), LINES)


def noisy_count(connection: sqlite3.Connection, size: int, rng: np.random.Generator) -> np.ndarray:
    """How many are adults, with noise for one record more or fewer."""
    (count,) = connection.execute("SELECT COUNT(*) FROM data WHERE age >= 18").fetchone()
    return count + rng.laplace(size=size)


def noisy_mean(connection: sqlite3.Connection, size: int, rng: np.random.Generator) -> np.ndarray:
    """The mean age of adults: noise for a sum of one record at most 120, divided by a count that is not noisy."""
    total, count = connection.execute("SELECT SUM(age), COUNT(*) FROM data WHERE age >= 18").fetchone()
    return (total + rng.laplace(scale=120.0, size=size)) / count


PEOPLE = [([["a", 40], ["b", 17], ["c", 33]], [["a", 40], ["b", 17]])]
adults = with_pairs(sql.subject(noisy_count, columns=["name", "age"], claim="eps=1"), PEOPLE)
mean_age = with_pairs(sql.subject(noisy_mean, columns=["name", "age"], claim="eps=1"), PEOPLE)

SUBJECTS = {
    "estimator": line,
    "estimator that releases a count": peeking_line,
    "SQL count": adults,
    "SQL mean over an exact count": mean_age,
}

if __name__ == "__main__":
    for name, subject in SUBJECTS.items():
        result = dpaudit.audit(subject, samples=5_000, seed=1)
        print(f"{name}: claim {result.claim}, {result.verdict}, {result.samples / result.seconds:,.0f} runs/s")
