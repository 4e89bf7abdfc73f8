"""Twins of a test, each of which breaks the contract of `test_one_face.py` in one place."""

import copy

import numpy as np

from dpaudit.inference.protocols import Training


class Twin:
    """A test that passes on all it is asked, but for what a subclass does in another way."""

    def __init__(self, make, claim, draws):
        self.inner, self.own = make(claim, draws), {}

    def __getattr__(self, name):
        if name in ("inner", "own"):  # while it is copied
            raise AttributeError(name)
        return getattr(self.inner, name)


class Both:
    """Two statistics, one after the other."""

    def __init__(self, first, second):
        self.parts = first, second

    def zeros(self):
        return np.concatenate([part.zeros() for part in self.parts])

    def count(self, outcomes):
        return np.concatenate([part.count(outcomes) for part in self.parts])


class BetterOfTwo(Twin):
    """Looks at what it has counted, and then says which of two sets of bets it had made."""

    def __init__(self, make, claim, draws):
        super().__init__(make, claim, draws)
        self.other = make(claim, draws)

    def prepare(self, training, level):
        self.inner.prepare(training, level)
        self.other.prepare(Training(training.second, training.first), level)

    def start(self, level):
        self.inner.start(level)
        self.other.start(level)

    @property
    def statistic(self):
        return Both(self.inner.statistic, self.other.statistic)

    def add(self, counts_x, counts_x_prime):
        size = len(self.inner.statistic.zeros())
        self.inner.add(counts_x[:size], counts_x_prime[:size])
        self.other.add(counts_x[size:], counts_x_prime[size:])

    def update(self):
        self.inner.update()
        self.other.update()

    @property
    def p_value(self):
        return None if self.inner.p_value is None else min(self.inner.p_value, self.other.p_value)

    @property
    def log_wealth(self):
        return None if self.inner.log_wealth is None else max(self.inner.log_wealth, self.other.log_wealth)


class BetsAgain(Twin):
    """At a later fit it makes the bets on what was counted before again."""

    def prepare(self, training, level):
        self.own["fits"] = self.own.get("fits", 0) + 1
        self.inner.prepare(training, level)

    @property
    def log_wealth(self):
        return self.inner.log_wealth + 0.1 * (self.own["fits"] - 1)


class FollowsTheCounts(Twin):
    """Counts otherwise once it has counted."""

    def add(self, counts_x, counts_x_prime):
        self.own["turned"] = 1
        self.inner.add(counts_x, counts_x_prime)

    @property
    def statistic(self):
        turned, own = self.own.get("turned", 0), self.inner.statistic

        class Turned:
            zeros = own.zeros

            def count(self, outcomes):
                return np.roll(own.count(outcomes), turned)

        return Turned()


class DoublesItsLevel(Twin):
    """Spends twice what it was given."""

    def start(self, level):
        self.own["level"] = level
        self.inner.start(min(2.0 * level, 0.9999))

    @property
    def level(self):
        return self.own["level"]


class LeavesOutItsCharge(Twin):
    """Is paid a tenth more for each draw than it may be, and halves a p-value."""

    def add(self, counts_x, counts_x_prime):
        self.own["rounds"] = self.own.get("rounds", 0) + 1
        self.inner.add(counts_x, counts_x_prime)

    @property
    def log_wealth(self):
        return None if self.inner.log_wealth is None else self.inner.log_wealth + 0.1 * self.own.get("rounds", 0)

    @property
    def p_value(self):
        return None if self.inner.p_value is None else 0.5 * self.inner.p_value


class RaisesItsBound(Twin):
    """Has a bound that is no verdict."""

    @property
    def lower(self):
        return self.inner.lower + 2.0 * self.inner.claim.value


class Forgets(Twin):
    """Keeps the last of several counts alone."""

    def add(self, counts_x, counts_x_prime):
        self.own.setdefault("fresh", copy.deepcopy(self.inner))
        self.inner = copy.deepcopy(self.own["fresh"])
        self.inner.add(counts_x, counts_x_prime)


class Sinks(Twin):
    """Takes back some of its bound at every look."""

    def update(self):
        self.own["looks"] = self.own.get("looks", 0) + 1
        self.inner.update()

    @property
    def lower(self):
        return self.inner.lower * 0.9 ** self.own.get("looks", 0)


class NeverSays(Twin):
    """Rejects nothing: no false alarms."""

    log_wealth, p_value, lower, is_rejected = 0.0, 1.0, 0.0, False


class Hasty(Twin):
    """Counts by what another fit on the same draws may have found."""

    made = 0

    def prepare(self, training, level):
        Hasty.made += 1
        rows = slice(0, 100 + 50 * (Hasty.made % 2))
        self.inner.prepare(Training(training.first.rows(rows), training.second.rows(rows)), level)
