"""The ledgers of the papers whose mechanisms are here (entry point `mechanisms` of the group `dpaudit.ledger`).

`papers/ids.txt` has the claim ids of all five papers; `papers/NAME.toml` has the entries of one of them, once its
mechanisms exist.
"""

from pathlib import Path

from dpaudit.errors import UsageError
from dpaudit.ledgers.entries import Entry, Ledger, read_ledger

PAPERS_FOLDER = Path(__file__).parent / "papers"
PAPERS = {  # prefix of the ids: short name, and authors with title
    "DX": (
        "dx-linear-queries",
        "Kamalaruban, Perrier, Asghar, Kaafar: Not All Attributes are Created Equal: "
        "d_X-Private Mechanisms for Linear Queries",
    ),
    "UP": (
        "utility-vs-privacy-first",
        "Wu, Xia, He: The Policies of Designing Differentially Private Mechanisms: Utility First vs. Privacy First",
    ),
    "CD": ("constrained-dp", "Liu, Sun, Zhou, Feng: Two Views of Constrained Differential Privacy"),
    "DC": (
        "datacubes",
        "Cormode, Procopiuc, Srivastava, Yaroslavtsev: Accurate and Efficient Private Release of Datacubes",
    ),
    "MQ": ("metric-query-release", "Huang, Roth: Exploiting Metric Structure for Efficient Private Query Release"),
}


def ledgers() -> list[Ledger]:
    """One ledger a paper; without entries where the paper has no file yet."""
    return [ledger(prefix) for prefix in PAPERS]


def ledger(prefix: str) -> Ledger:
    """The ledger of the paper with this prefix of its ids, such as "DX"."""
    if prefix not in PAPERS:
        raise UsageError(f"prefix must be one of {', '.join(PAPERS)}, got {prefix!r}.")
    paper, title = PAPERS[prefix]
    ids = [name for name in paper_ids() if name.split("-")[0] == prefix]
    path = PAPERS_FOLDER / f"{paper}.toml"
    return read_ledger(path, ids) if path.exists() else Ledger(paper, title, tuple(ids))


def entry(claim_id: str) -> Entry:
    """The entry of one claim, for tests that replay its counterexample.

    Examples
    --------
    >>> entry("DX-D1").verdict
    'verified'
    """
    found = {item.id: item for item in ledger(claim_id.split("-")[0]).entries}
    if claim_id not in found:
        raise UsageError(f"claim_id must be an id of a ledger that is written, got {claim_id!r}.")
    return found[claim_id]


def paper_ids() -> list[str]:
    """The claim ids of all papers, in the papers' order."""
    return (PAPERS_FOLDER / "ids.txt").read_text(encoding="utf-8").split()
