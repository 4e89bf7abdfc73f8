"""Streams are independent: no key is used for two purposes or twice, and what they give is uncorrelated."""

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.samplers import laplace

import dpaudit
from dpaudit.running import streams

PACKAGE = Path(dpaudit.__file__).parent
STREAMS = 20_000
LEVEL = 1e-9  # of each of the three tests below; the seeds are fixed


def first_numbers(numbers=2):
    """Of streams whose keys differ in one place by one, (streams, numbers)."""
    keys = [(purpose, input_, round_, chunk) for purpose in (0, 1) for input_ in range(20) for round_ in range(25)
            for chunk in range(STREAMS // 1_000)]  # fmt: skip
    return np.array([streams.stream(7, *key).random(numbers) for key in keys])


@pytest.fixture(scope="module")
def drawn():
    return first_numbers()


@pytest.mark.slow
def test_first_numbers_of_streams_are_uniform(drawn):
    for column in drawn.T:
        assert stats.kstest(column, "uniform").pvalue > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("apart", [1, STREAMS // 1_000, STREAMS // 1_000 * 25, STREAMS // 2])
def test_streams_with_neighbouring_keys_are_uncorrelated(drawn, apart):
    # Keys that differ by one in the chunk, the round, the input and the purpose. A correlation of independent uniform
    # numbers is normal with deviation 1 / sqrt(n), but for 1e-3 of it at this n; 6.2 deviations: below 1e-9.
    one, other = drawn[:-apart, 0], drawn[apart:, 0]
    assert abs(np.corrcoef(one, other)[0, 1]) < 6.2 / np.sqrt(len(one))


@pytest.mark.slow
def test_the_control_of_these_tests_sees_streams_that_are_shared(drawn):
    shared = np.roll(drawn[:, 0], 1) + 0.2 * drawn[:, 1]  # a fifth of another number in it
    assert abs(np.corrcoef(drawn[:-1, 0], shared[1:])[0, 1]) > 6.2 / np.sqrt(len(drawn))


def purposes():
    """Every purpose of a stream that the package names, by name: numbers in capitals that stand in a call of `stream`,
    or are constants of the module of streams."""
    found = {name: value for name, value in vars(streams).items() if name.isupper() and isinstance(value, int)}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "stream(" not in text:  # to parse the other files takes long
            continue
        tree = ast.parse(text)
        constants = {}
        for node in tree.body:
            if isinstance(node, ast.Assign):
                names = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                constants |= {
                    name.id: value.value
                    for name, value in zip(names, values, strict=False)
                    if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
                }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "stream" and len(node.args) > 1:
                used = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                found |= {name: constants[name] for name in used & constants.keys() if name.isupper()}
    return found


def test_no_two_purposes_of_streams_have_one_number():
    found = purposes()
    assert len(found) > 25
    restart = found.pop("RESTART")
    # What starts again adds RESTART to its purpose: of the labelled draws, of low bits and of all-pairs tables.
    again = {f"{name} again": found[name] + restart for name in
             ("DRAWS", "COINS", "FLOAT_DRAWS", "FLOAT_COINS", "ALL_PAIRS_DRAWS", "ALL_PAIRS_COINS")}  # fmt: skip
    shared = [number for number, count in Counter({**found, **again}.values()).items() if count > 1]
    assert not shared, [name for name, number in {**found, **again}.items() if number in shared]


@pytest.mark.parametrize(("mode", "low_bits"), [("adaptive", False), ("sequential", True)])
def test_no_stream_is_used_twice_in_an_audit(monkeypatch, mode, low_bits):
    keys = []
    make = np.random.SeedSequence

    def noted(entropy=None, *, spawn_key=(), **rest):
        if spawn_key:
            keys.append((entropy, tuple(int(word) for word in spawn_key)))
        return make(entropy, spawn_key=spawn_key, **rest)

    monkeypatch.setattr(streams.np.random, "SeedSequence", noted)
    options = {"samples": 1_000 if low_bits else 200, "seed": 11, "mode": mode, "floating_point": low_bits}
    result = dpaudit.audit(laplace, "eps=1", [(0.0, 1.0), (1.0, 2.0)], **options)
    assert not low_bits or result.floating_point.samples > 0
    counts = Counter(keys)
    assert len(counts) >= 8 and max(counts.values()) == 1, counts.most_common(3)
