"""The page of the manual about what composes: `docs/composition.md`."""

from __future__ import annotations

from dpaudit.audits.composition import FEATURES, table


def page() -> str:
    """The table for the manual, as Markdown."""
    lines = [
        "# What composes",
        "",
        "Every two features of an audit work together, or are refused for the reason that stands here: what would no",
        "longer hold. `tests/audits/test_what_composes.py` walks every row.",
        "",
        "Up to 2,000 pairs have games of their own where the other feature needs them. So only above 2,000 pairs is a",
        "universe refused with a store, with a pool, or with isolation of one call a draw.",
        "",
        "This holds for every claim: a universe tests the lines that the claim promises, or implies. A claim of your",
        "own may have another budget for each pair. Only pairs that are promised different parameters share no table:",
        "they have games instead, up to 2,000 pairs.",
        "",
        "`python tests/audits/composition_page.py` prints this page.",
        "",
        "| feature | what it is |",
        "| --- | --- |",
        *(f"| {name} | {words} |" for name, words in FEATURES.items()),
        "",
        "| first | second | together |",
        "| --- | --- | --- |",
        *(f"| {first} | {second} | {said} |" for first, second, said in table()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
