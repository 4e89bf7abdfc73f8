"""The record of an isolation: which calls were made, how they ended, and what they did beside their outcomes."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.subjects.call_outcomes import Ended


@dataclasses.dataclass
class Record:
    """Effects contained so far, by the position of an input: calls, how they ended, and what else they did.

    `digests` finds inputs again in an audit that is resumed: those of the run before have the keys that they had then.
    `seen[name][key]` counts, of the `looked[key]` requests that were of this input alone, those in which it was seen;
    `in_blocks[name]` counts blocks of calls on several inputs.
    """

    names: dict[int, str] = dataclasses.field(default_factory=dict)
    calls: Counter[int] = dataclasses.field(default_factory=Counter)
    ended: dict[int, Counter[str]] = dataclasses.field(default_factory=dict)
    looked: Counter[int] = dataclasses.field(default_factory=Counter)
    seen: dict[str, Counter[int]] = dataclasses.field(default_factory=dict)
    in_blocks: Counter[str] = dataclasses.field(default_factory=Counter)
    returned: int = 0
    lost: float = 0.0  # seconds
    digests: dict[int, str] = dataclasses.field(default_factory=dict)
    awaited: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # keys of a run before, by digest

    @property
    def next_key(self) -> int:
        """The first key that no input has."""
        return max(self.names, default=-1) + 1

    def key_of(self, content: bytes, key: int, name: str) -> int:
        """The key of an input, by its pickle: `key`, or the one that it had in the run before."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        known = self.awaited.get(digest)
        if known:
            return known.pop(0)
        self.names[key], self.digests[key] = name, digest
        return key

    def end(self, key: int, how: Ended, seconds: float) -> None:
        self.ended.setdefault(key, Counter())[how.kind] += 1
        self.lost += seconds

    def note(self, name: str, keys: Sequence[int]) -> None:
        if len(keys) == 1:
            self.seen.setdefault(name, Counter())[keys[0]] += 1
        else:
            self.in_blocks[name] += 1

    def to_dict(self, left_over: int = 0) -> dict[str, Any]:
        """The record as strict JSON values, with so many processes more that were found left."""
        in_blocks = Counter(self.in_blocks)
        in_blocks["processes"] += left_over
        return {
            "inputs": [[key, self.names[key], self.digests[key]] for key in self.names],
            "calls": sorted(self.calls.items()),
            "ended": [[key, dict(kinds)] for key, kinds in sorted(self.ended.items())],
            "looked": sorted(self.looked.items()),
            "seen": {name: sorted(counts.items()) for name, counts in self.seen.items()},
            "in_blocks": dict(in_blocks),
            "returned": self.returned,
            "lost": self.lost,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Record:
        """The record that `to_dict` wrote.

        `UsageError` if it is none.
        """
        try:
            inputs = [(_count(key), str(name), str(digest)) for key, name, digest in record["inputs"]]
            found = cls(
                names={key: name for key, name, _ in inputs},
                calls=_counter(record["calls"]),
                ended={_count(key): _named(kinds) for key, kinds in record["ended"]},
                looked=_counter(record["looked"]),
                seen={str(name): _counter(counts) for name, counts in record["seen"].items()},
                in_blocks=_named(record["in_blocks"]),
                returned=_count(record["returned"]),
                lost=max(0.0, float(record["lost"])),
                digests={key: digest for key, _, digest in inputs},
            )
            if not {*found.calls, *found.ended, *found.looked}.union(*found.seen.values()) <= set(found.names):
                raise ValueError("calls must be of inputs that are listed.")
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            said = f"checkpoint must hold what was contained, got a record of another form ({error})."
            raise UsageError(said) from error
        for key, _, digest in inputs:
            found.awaited.setdefault(digest, []).append(key)
        return found


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"counts must be non-negative integers, got {value!r:.40}")
    return value


def _counter(entries: Any) -> Counter[int]:
    return Counter({_count(key): _count(count) for key, count in entries})


def _named(entries: Any) -> Counter[str]:
    return Counter({str(name): _count(count) for name, count in entries.items()})
