"""Values of hypothesis strategies, tried one after the other: pairs, inputs of bounds, examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpaudit.errors import DpauditError, UsageError
from dpaudit.privacy.pairs import short_form


def explore(
    name: str, strategy: Any, look: Callable[[Any], float | None], *, examples: int, seed: int, none: str
) -> None:
    """Give values of a strategy to `look`, steered towards those for which it returns large numbers.

    What is tried depends on the seed and on the user's modules that are loaded: hypothesis takes numbers and texts from
    them. `UsageError` if hypothesis is not installed, this argument is no strategy, or it yields nothing (`none`).
    """
    try:
        import hypothesis
    except ImportError as error:
        raise UsageError(f"{name} must have hypothesis installed, got none. Install dpaudit[strategies].") from error
    if not isinstance(strategy, hypothesis.strategies.SearchStrategy):
        raise UsageError(f"{name} must be a hypothesis strategy, got {strategy!r:.100}.")
    broken: list[DpauditError] = []

    def tried(value: Any) -> None:
        try:
            score = None if broken else look(value)
        except DpauditError as error:  # raised here, hypothesis would run the value again and call it flaky
            broken.append(error)
            return
        if score is not None:
            hypothesis.target(min(max(score, -1e300), 1e300))

    settings = settings_of(examples, phases=(hypothesis.Phase.generate, hypothesis.Phase.target))
    given: Any = hypothesis.given(strategy)
    try:
        settings(hypothesis.seed(seed)(given(tried)))()
    except hypothesis.errors.Unsatisfiable as error:
        raise UsageError(none) from error
    if broken:
        raise broken[0]


def settings_of(examples: int, **more: Any) -> Any:
    """Settings of hypothesis for so many values, whatever was seen before and however long each takes."""
    import hypothesis

    more |= {"database": None, "deadline": None, "suppress_health_check": list(hypothesis.HealthCheck)}
    return hypothesis.settings(max_examples=examples, **more)


def explore_pairs(strategy: Any, look: Callable[[Any, Any], float | None], *, examples: int, seed: int) -> None:
    """The same for pairs (x, x_prime)."""

    def look_at(pair: Any) -> float | None:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise UsageError(f"domain must be a strategy of pairs (x, x_prime), got {short_form(pair)}.")
        return look(*pair)

    none = "domain must yield pairs, got none from the strategy."
    explore("domain", strategy, look_at, examples=examples, seed=seed, none=none)
