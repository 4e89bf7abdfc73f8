"""The page of the manual about options that can be combined: `docs/composition.md`."""

from __future__ import annotations

from itertools import combinations

from dpaudit.audits.compatibility import FEATURES, REFUSED

WORDS = {
    "sequential": "stop as soon as the evidence is there",
    "adaptive": "spend runs where the evidence grows",
    "fixed": "use all draws, for one exact test",
    "band": "a band for the trade-off function of one pair",
    "power": "leaks planted into the outputs that were seen",
    "checkpoint": "finished draws in a file, to resume from",
    "pool": "pairs of one shift in one game",
    "grey_box": "both inputs on the same random stream",
    "seconds": "a limit on the time of the audit",
    "jobs": "several processes of this machine",
    "dask": "the workers of a cluster",
    "isolation": "calls in worker processes with limits",
    "search": "pairs that are looked for",
    "store": "evidence that goes on session after session",
    "all pairs": "more than 150 pairs in one table",
    "program": "a subject behind exec:",
}


def table() -> list[tuple[str, str, str]]:
    """Every two features, and "works" or what would no longer hold, in the order of `FEATURES`."""
    rows = []
    for first, second in combinations(FEATURES, 2):
        reason = REFUSED.get(frozenset({first, second}))
        text = "works" if reason is None else f"no: {reason.condition}"
        if reason is not None and reason.of:
            text = f"works; not for {reason.of}: {reason.condition}"
        rows.append((first, second, text))
    return rows


def page() -> str:
    """The table for the manual, as Markdown."""
    lines = [
        "# Which options can be combined",
        "",
        "Every two features of an audit work together, or are refused for the reason that stands here: what would no",
        "longer hold. `tests/audits/test_what_composes.py` walks every row.",
        "",
        "Up to 2,000 pairs have games of their own where the other feature needs them. So only above 2,000 pairs is an",
        "all-pairs table refused with a store, with a pool, or with isolation of one call a draw.",
        "",
        "This holds for every claim: an all-pairs table tests the lines that the claim promises, or implies. A claim",
        "of your own may have another budget for each pair. Only pairs that are promised different parameters share",
        "no table: they have games instead, up to 2,000 pairs.",
        "",
        "`python tests/audits/compatibility_page.py` prints this page.",
        "",
        "| feature | what it is |",
        "| --- | --- |",
        *(f"| {name} | {words} |" for name, words in ((name, WORDS[name]) for name in FEATURES)),
        "",
        "| first | second | together |",
        "| --- | --- | --- |",
        *(f"| {first} | {second} | {said} |" for first, second, said in table()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
