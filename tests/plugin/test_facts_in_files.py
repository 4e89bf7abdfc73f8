"""No fact of a dataset (here its sum) is in any file that an audit, a report, a session or a replay writes."""

import json

import pytest
from click.testing import CliRunner

from dpaudit import reports
from dpaudit.cli import main

MECHANISM = """
def release(data, size, rng):  # naive Laplace noise on the sum of the records, of the scale that their change needs
    return sum(data) + rng.laplace(scale={scale}, size=size)

RECORDS = [{step} * k for k in range(1, 33)]
X, X_PRIME = RECORDS + [0.3125], RECORDS + [0.3125 + {change}]

def pairs():
    return [(X, X_PRIME)]
"""
SESSION = """
from facts_m import X, X_PRIME, release

def test_release(dp_audit):
    dp_audit(release, "eps=1", pairs=[(X, X_PRIME)], samples=10_000, seed=7, strict=True)
"""


def forms(value):
    """A number as files may hold it: exactly, or with at least five of its digits."""
    digits = f"{value:.5g}"
    return [value.hex(), digits, digits.replace(".", ",")]


def holding(folder, values):
    """The files below a folder, by name, that hold a form of one of the values."""
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes().decode("utf-8", "replace")
        found += [(file.name, form) for value in values for form in forms(value) if form in content]
    return found


# Sums of multiples of 5/8 are exact, so that the scale is the difference of the two to the last bit.
@pytest.mark.parametrize(("step", "change", "scale_of"), [(0.137, 1.0, "one"), (0.625, 1.8125, "difference")])
def test_no_file_holds_a_fact_of_the_inputs(step, change, scale_of, pytester, monkeypatch):
    folder = pytester.path
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # or digits of a date may be those of a sum
    pytester.makepyfile(facts_m=MECHANISM.format(scale=change, step=step, change=change))
    pytester.syspathinsert()
    records = [step * k for k in range(1, 33)]
    sums = [sum([*records, 0.3125]), sum([*records, 0.3125 + change])]
    secret = [*sums, *([] if scale_of == "one" else [sums[1] - sums[0]])]

    def run(*arguments):
        # The doubles leak (naive noise). Miss rate: see tests/features/test_low_bits.py; the seed is fixed.
        result = CliRunner(env={"COLUMNS": "200"}).invoke(main, list(arguments))
        assert "unexpected" not in result.output, result.output
        (folder / f"terminal-{len(list(folder.iterdir()))}.txt").write_text(result.output + result.stderr)
        return result

    run("audit", "facts_m:release", "--claim", "eps=1", "--pairs", "facts_m:pairs", "--samples", "20000", "--seed", "7",
        "--out", "o", "--report", "json,html,md,junit,sarif")  # fmt: skip
    saved = json.loads((folder / "o" / "audit.json").read_text())
    (pair,) = saved["floating_point"]["pairs"]
    (table,) = pair["rule"]["tables"]
    assert (table["view"]["fact"], table["view"]["scale_of"]) == ("sums", scale_of)
    assert "the sum of x" in pair["description"]
    assert set(table["view"]) == {"kind", "sampler", "fact", "column", "scale_of", "epsilon"}
    plain = [name for name in reports.FORMATS if name != "pdf"]
    run("report", "o/audit.json", "--out", "p", "--report", ",".join(plain), "--profile", "compliance")
    run("report", "o/audit.json", "--redact", "--out", "r", "--report", "json,html,md")
    again = run("replay", "o/audit.json", "--target", "facts_m:release", "--floating-point", "--seed", "3")
    assert "Confirmed: the low bits" in again.output
    pytester.makepyfile(test_session=SESSION)
    session = pytester.runpytest("--dp-report", "json,html,md", "--dp-out", "s")
    (folder / "session.txt").write_text(session.stdout.str())
    assert [one for one in holding(folder, secret) if one[0] != "facts_m.py"] == []
    assert holding(folder, [records[8]])  # the search can find: a record, which the saved inputs are
