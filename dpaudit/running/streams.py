"""Random streams, keyed by what is drawn and never by who draws it: same seed, same bits, any number of workers.

Every stream is `SeedSequence(root, spawn_key=(purpose, ...))`; the purposes below keep them apart.
"""

from __future__ import annotations

import hashlib

import numpy as np

from dpaudit.arguments import whole_number

DRAWS, COINS, REPLAY_DRAWS, REPLAY_COINS = 0, 1, 2, 3
FLOAT_DRAWS, FLOAT_COINS = 8, 9  # of the floating-point check
RESTART = 4  # added to the purposes of the streams of an audit that starts again, one call a draw
ALL_PAIRS_DRAWS, ALL_PAIRS_COINS = 16, 17
PLAN_DRAWS = 24  # of the pilot of `dpaudit.plan`, which no audit ever draws again
FLOAT_REPLAY_DRAWS, FLOAT_REPLAY_COINS = 26, 27
BATCH_DRAWS, BATCH_REPLAY_DRAWS = 30, 32  # of the small batches that are asked what they share
KEPT_NOISE = 35  # of one call more on an input all of whose outcomes were the same
ORDER_OF_CALLS = 31  # on several inputs: no output comes from it
UTILITY_SEARCH, UTILITY_DRAWS = 40, 41
EVIDENCE = 70  # of the seeds of sessions in an evidence store: each has streams of its own
SEARCH_DRAWS, SEARCH_CHOICES = 50, 51  # of the search for pairs: no draw of an audit comes from them
GREY_BOX = 52  # of the replays on the same randomness
RECORDED = 53  # of recorded noise: run, and number of the call in it
SEVERITY_DRAWS, SEVERITY_COINS = 33, 34  # of violated pairs, for a bound that says how bad they are
BAND_DRAWS = 36  # of the band of a trade-off function
TIMING_DRAWS, TIMING_COINS, INDEPENDENCE_DRAWS = 60, 61, 62  # of an isolated subject's side findings
PLANTS = 37  # of leaks that are planted into outputs that were seen
SINGLE_DRAWS, SINGLE_COINS = 42, 43  # of calls for one output each, behind a violation
CERTIFICATE_RUNS = 56  # of the runs that a law that was worked out is held against
CHECK_DRAWS = 44  # of the conformance checks, which have keys of their own behind it


def stream(root: int, *key: int) -> np.random.Generator:
    """The generator of one work item: `root` is the seed of the call, `key` its purpose and position.

    Subjects are given it. So it says nothing of where it comes from: its seed sequence has 128 bits, as one of the
    system's entropy has, and no spawn key that says what is drawn. Its bits are those of
    `SeedSequence(root, spawn_key=key)`, and what it spawns depends on all of these.

    Examples
    --------
    >>> rng = stream(1, DRAWS, 0)
    >>> rng.random() == np.random.default_rng(np.random.SeedSequence(1, spawn_key=(DRAWS, 0))).random()
    True
    >>> rng.bit_generator.seed_seq.spawn_key
    ()
    """
    sequence = np.random.SeedSequence(root, spawn_key=key)
    entropy = hashlib.sha256(sequence.generate_state(8, np.uint64).tobytes()).digest()[:16]
    bits = np.random.PCG64(np.random.SeedSequence(int.from_bytes(entropy, "little")))
    bits.state = np.random.PCG64(sequence).state
    return np.random.Generator(bits)


def root_of(seed: int | None) -> int:
    """The seed of a call, or a fresh one for None; `UsageError` if it is no non-negative integer."""
    return fresh_seed() if seed is None else whole_number("seed", seed, "a non-negative integer", 0)


def fresh_seed() -> int:
    """A seed from the operating system's entropy, in [0, 2**32): printed, so that the run can be repeated."""
    return int(np.random.SeedSequence().generate_state(1)[0])
