"""Discrete mechanisms at e^epsilon = 2 for each unit of the data (5 for randomised response), and faulty twins.

Ratios of probabilities are dyadic or small fractions, so that losses are fractions that can be computed by hand.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

HALF = 0.5  # the ratio of the noise: e^-epsilon with epsilon = log 2
TABLE = [0.0625, 0.25, 0.375, 0.25, 0.0625]  # noise on -2..2


def two_sided(rng: Any, size: Any = None, p: float = HALF) -> Any:
    return rng.geometric(p, size) - rng.geometric(p, size)


def table_noise(rng: Any) -> int:
    return int(rng.choice(5, p=TABLE)) - 2


# Randomised response on 0..3: the truth with probability 5/8, each other answer with 1/8.


def response(x: int, rng: Any) -> int:
    return x if rng.random() < 0.625 else (x + 1 + int(rng.integers(3))) % 4


def response_too_true(x: int, rng: Any) -> int:
    return x if rng.random() < 0.6875 else (x + 1 + int(rng.integers(3))) % 4


def response_skips_an_answer(x: int, rng: Any) -> int:
    return x if rng.random() < 0.625 else (x + 1 + int(rng.integers(2))) % 4


def response_honest_at_zero(x: int, rng: Any) -> int:
    return x if x == 0 or rng.random() < 0.625 else (x + 1 + int(rng.integers(3))) % 4


def response_draws_by_the_data(x: int, rng: Any) -> int:
    return x if rng.random() < 0.625 + 0.0625 * (x == 0) else (x + 1 + int(rng.integers(3))) % 4


def response_raises(x: int, rng: Any) -> int:
    if x == 3 and rng.random() < 0.001:
        raise ValueError("no such answer")
    return response(x, rng)


# A count with two-sided geometric noise, without and with a clamp.


def count(x: int, rng: Any) -> int:
    return x + two_sided(rng)


def clamped(x: int, rng: Any) -> int:
    return int(min(max(x + two_sided(rng), 0), 4))


def count_one_sided(x: int, rng: Any) -> int:
    return x + rng.geometric(HALF)


def count_too_little_noise(x: int, rng: Any) -> int:
    return x + two_sided(rng, p=0.75)


def count_twice(x: int, rng: Any) -> int:
    return 2 * x + two_sided(rng)


def count_scale_of_data(x: int, rng: Any) -> int:
    return x + two_sided(rng, p=0.5 if x else 0.75)


def count_exact_sometimes(x: int, rng: Any) -> Any:
    return x if rng.random() < 0.001 else 0.5 + two_sided(rng)


def count_same_noise_twice(x: int, rng: Any) -> list[Any]:
    noise = two_sided(rng)
    return [x + noise, -x + noise]


def clamped_by_the_data(x: int, rng: Any) -> int:
    return int(min(max(x + two_sided(rng), 0), x + 1))


def clamped_noise(x: int, rng: Any) -> int:
    return x + int(min(max(two_sided(rng), -3), 3))


def clamped_too_little_noise(x: int, rng: Any) -> int:
    return int(min(max(x + two_sided(rng, p=0.75), 0), 4))


# Histograms: a vector of counts.


def histogram(x: tuple[int, ...], rng: Any) -> Any:
    return np.array(x) + two_sided(rng, len(x))


def histogram_shared_noise(x: tuple[int, ...], rng: Any) -> Any:
    return np.array(x) + two_sided(rng)


def histogram_skips_empty(x: tuple[int, ...], rng: Any) -> list[Any]:
    return [bar + two_sided(rng) if bar else 0 for bar in x]


# Selection by scores: the exponential mechanism with weights 2^score, permute-and-flip, and noisy maxima.


def exponential(scores: tuple[int, ...], rng: Any) -> int:
    edges = np.cumsum([2**score for score in scores])
    return int(np.searchsorted(edges, rng.random() * int(edges[-1]), side="right"))


def exponential_law(scores: tuple[int, ...]) -> dict[str, Fraction]:
    total = sum(2**score for score in scores)
    return {f"{i}.0": Fraction(2**score, total) for i, score in enumerate(scores)}


def exponential_squared(scores: tuple[int, ...], rng: Any) -> int:
    return exponential(tuple(2 * score for score in scores), rng)


def exponential_greedy(scores: tuple[int, ...], rng: Any) -> int:
    return int(np.argmax(scores)) if rng.random() < 0.125 else exponential(scores, rng)


def exponential_not_normalised(scores: tuple[int, ...], rng: Any) -> int:
    edges = np.cumsum([2**score for score in scores])
    return int(np.searchsorted(edges[:-1], rng.random() * 4, side="right"))


def permute_and_flip(scores: tuple[int, ...], rng: Any, base: float = HALF) -> int:
    order = list(range(len(scores)))
    rng.shuffle(order)
    for i in order:
        if rng.random() < base ** (max(scores) - scores[i]):
            return i
    raise AssertionError


def permute_and_flip_law(scores: tuple[int, ...]) -> dict[str, Fraction]:
    found = {f"{i}.0": Fraction(0) for i in range(len(scores))}
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        rest = Fraction(1, len(orders))
        for i in order:
            accepted = Fraction(1, 2 ** (max(scores) - scores[i]))
            found[f"{i}.0"] += rest * accepted
            rest *= 1 - accepted
    return found


def permute_and_flip_squared(scores: tuple[int, ...], rng: Any) -> int:
    return permute_and_flip(scores, rng, base=0.25)


def flip_in_order(scores: tuple[int, ...], rng: Any) -> int:
    for i in range(len(scores)):
        if rng.random() < HALF ** (max(scores) - scores[i]):
            return i
    raise AssertionError


def noisy_max(scores: tuple[int, ...], rng: Any) -> int:
    return int(np.argmax(np.array(scores) + rng.geometric(HALF, len(scores))))


def noisy_max_with_its_value(scores: tuple[int, ...], rng: Any) -> list[Any]:
    noisy = [score + rng.geometric(HALF) for score in scores]
    best = 0
    for i in range(1, len(noisy)):
        best = i if noisy[i] > noisy[best] else best
    return [best, noisy[best]]


def noisy_max_shared_noise(scores: tuple[int, ...], rng: Any) -> int:
    return int(np.argmax(np.array(scores) + rng.geometric(HALF)))


def noisy_max_too_little_noise(scores: tuple[int, ...], rng: Any) -> int:
    return int(np.argmax(np.array(scores) + rng.geometric(0.75, len(scores))))


def noisy_max_of_the_best_two(scores: tuple[int, ...], rng: Any) -> int:
    kept = sorted(range(len(scores)), key=lambda i: -scores[i])[:2]
    return kept[int(np.argmax(np.array([scores[i] for i in kept]) + rng.geometric(HALF, 2)))]


# The sparse vector technique on whole answers, threshold 1, noise on -2..2 by a table.


def sparse_vector(answers: tuple[int, ...], rng: Any) -> list[bool]:
    threshold, found = 1 + table_noise(rng), []
    for answer in answers:
        found.append(answer + table_noise(rng) >= threshold)
        if found[-1]:
            break
    return found


def sparse_vector_law(answers: tuple[int, ...]) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for noises in itertools.product(range(5), repeat=len(answers) + 1):
        mass, said = Fraction(1), []
        for noise in noises:
            mass *= Fraction(TABLE[noise])
        for answer, noise in zip(answers, noises[1:], strict=True):
            said.append(float(answer + noise - 2 >= 1 + noises[0] - 2))
            if said[-1]:
                break
        token = "[" + ",".join(map(repr, said)) + "]"
        found[token] = found.get(token, Fraction(0)) + mass
    return found


def sparse_vector_no_threshold_noise(answers: tuple[int, ...], rng: Any) -> list[bool]:
    found = []
    for answer in answers:
        found.append(answer + table_noise(rng) >= 1)
        if found[-1]:
            break
    return found


def sparse_vector_never_stops(answers: tuple[int, ...], rng: Any) -> list[bool]:
    threshold = 1 + table_noise(rng)
    return [answer + table_noise(rng) >= threshold for answer in answers]


def sparse_vector_no_answer_noise(answers: tuple[int, ...], rng: Any) -> list[bool]:
    threshold = 1 + table_noise(rng)
    return [answer >= threshold for answer in answers]


def sparse_vector_tells_the_answer(answers: tuple[int, ...], rng: Any) -> list[Any]:
    threshold, found = 1 + table_noise(rng), []
    for answer in answers:
        noisy = answer + table_noise(rng)
        found.append(noisy if noisy >= threshold else False)
        if found[-1] is not False:
            break
    return found


# Composition and subsampling of randomised response on two answers, e^epsilon = 3.


def coin(x: int, rng: Any, p: float = 0.75) -> int:
    return x if rng.random() < p else 1 - x


def composed(x: int, rng: Any) -> list[int]:
    return [coin(x, rng), coin(x, rng)]


def subsampled(x: int, rng: Any) -> int:
    return coin(x if rng.random() < 0.25 else 0, rng)


def composed_thrice(x: int, rng: Any) -> list[int]:
    return [coin(x, rng) for _ in range(3)]


def composed_with_the_difference(x: int, rng: Any) -> Any:
    answer = coin(x, rng)
    return answer, answer == x


def subsampled_tells_whether(x: int, rng: Any) -> Any:
    is_taken = rng.random() < 0.25
    return coin(x if is_taken else 0, rng), bool(is_taken)


def subsampled_too_often(x: int, rng: Any) -> int:
    return coin(x if rng.random() < 0.5 else 0, rng)
