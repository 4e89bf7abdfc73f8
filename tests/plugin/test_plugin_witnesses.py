"""A failing witness is saved, replayed first by the next run, and forgotten when it is refuted by draws.

`leaky` returns its input: a rule that was fitted on both labels is always right, in more than 50 draws: the probability
under eps = 1 is below 0.7311**50 < 2e-7, and a replay's share here is at least 1e-3.
"""

import json

import pytest

LEAKY = """
    def test_release(dp_audit):
        dp_audit(release, samples=300, **PLAIN)
"""
BEFORE = "    release = leaky\n" + LEAKY
AFTER = "    release = sound\n" + LEAKY


def kept(pytester):
    return sorted((pytester.path / ".dpaudit" / "witnesses").glob("*.json"))


def test_a_witness_is_replayed_first_by_the_next_run(pytester, write):
    write(BEFORE).run().stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])
    assert len(kept(pytester)) == 1
    assert (pytester.path / ".dpaudit" / ".gitignore").read_text() == "*\n"
    again = pytester.runpytest()
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(
        [
            "Violated: the witness that an earlier run saved breaks the promise again, on fresh draws",
            "  subject  leaky",
            "  claim    eps=1",
            "  pair     0.0|1.0",
            "  rule     that of the file, which keeps no words of it",
            "  counts   The rule was right in *, wrong in 0 draws*",
            "  bound    ε ≥ * nats with 99.62% confidence; promised: ε ≤ 1",
            "  seed     *",
            "  replay   pytest test_it.py::test_release",
            "dpaudit: 1 audit: 1 violated",
        ]
    )
    # The confidence: a tenth of 3/4 of 0.05, the first call of the only test.
    again.stdout.no_fnmatch_line("*Traceback*")


def test_a_mechanism_that_was_repaired_is_audited_and_its_witness_forgotten(pytester, write):
    write(BEFORE).run()
    write(AFTER.replace("samples=300", "samples=3000, floating_point=False")).run("-W", "ignore", passed=1)
    assert kept(pytester) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: "",
        lambda record: "[" * 100_000,
        lambda record: json.dumps([record]),
        lambda record: json.dumps({**record, "call": 2}),
        lambda record: json.dumps({**record, "result": {**record["result"], "schema": "x"}}),
        lambda record: json.dumps({**record, "result": {**record["result"], "pairs": []}}),
        lambda record: json.dumps({**record, "result": {**record["result"], "claim": "eps=2"}}),
        lambda record: json.dumps(record).replace('"kind"', '"kin"'),
        lambda record: json.dumps(record).replace('"predicted"', '"predict"'),
        lambda record: json.dumps(record).replace(record["result"]["pairs"][0]["id"], 32 * "0"),
    ],
    ids=["empty", "deep", "list", "call", "schema", "no pairs", "claim", "rule", "table", "pair"],
)
def test_a_file_that_cannot_be_replayed_is_passed_over(pytester, write, spoil):
    write(BEFORE).run()
    (file,) = kept(pytester)
    file.write_text(spoil(json.loads(file.read_text())))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])


def of_an_earlier_version(file):
    """The file as an earlier version wrote its rule."""
    record = json.loads(file.read_text())
    score = {"kind": "coordinate", "column": 0}
    record["result"]["pairs"][0]["witness"]["rule"] = {"game": "guess", "anchor": 0.0, "score": score, "sign": 1}
    file.write_text(json.dumps(record))


def test_a_witness_of_an_earlier_version_neither_fails_nor_passes_a_test_by_itself(pytester, write):
    """It is said, and the audit runs: of a leak it finds the violation, of a repaired mechanism none."""
    write(BEFORE).run()
    of_an_earlier_version(*kept(pytester))
    again = pytester.runpytest()
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])
    of_an_earlier_version(*kept(pytester))  # the failure has saved a new one
    result = write(AFTER.replace("samples=300", "samples=20")).run("-W", "ignore", passed=1)
    result.stdout.fnmatch_lines(
        ["*a witness of * is of an earlier version and was not replayed; the audit ran instead; kept*"]
    )
    assert len(kept(pytester)) == 1


def test_nothing_is_saved_or_replayed_where_that_is_turned_off(pytester, write):
    write(BEFORE).run("--dp-cache", "none")
    assert not (pytester.path / ".dpaudit").exists()
    pytester.runpytest("--dp-cache", "kept")
    assert len(list((pytester.path / "kept" / "witnesses").glob("*.json"))) == 1
    result = pytester.runpytest("--dp-cache", "kept", "--dp-seed", "3")
    result.stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair", "  seed     3"])


def test_a_folder_that_cannot_be_written_keeps_nothing_and_breaks_nothing(pytester, write):
    (pytester.path / ".dpaudit").write_text("in the way")
    write(BEFORE).run().stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])


def test_a_rerun_replays_nothing_a_second_time(pytester, write):
    from test_plugin_reruns import RERUN

    pytester.makeconftest(RERUN)
    write(BEFORE).run()
    result = pytester.runpytest("--tb=short")
    # The first run replays; the reruns audit, at the audit's share.
    result.stdout.fnmatch_lines(["Violated: the promise is broken for 1 of 1 pair"])
    result.stdout.fnmatch_lines(["dpaudit: 1 audit: 1 violated"])


def test_a_witness_file_names_no_record(tmp_path):
    import dpaudit
    from dpaudit.pytest_plugin import witnesses

    def leaks(data, size, rng):
        return len(data["name"]) + rng.laplace(scale=0.01, size=size)

    pair = dpaudit.Pair({"name": "Bob Miller"}, {"name": "Eve Smith"})
    result = dpaudit.audit(leaks, "eps=1", [pair], samples=300, seed=1, floating_point=False)
    assert result.verdict == "violated"
    witnesses.save(tmp_path, "test_x.py::test_y", 0, result, 300)
    (path,) = (tmp_path / witnesses.FOLDER).iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert not [word for word in ("Bob", "Miller", "Eve", "Smith") if word in text]
    (kept,) = json.loads(text)["result"]["pairs"]
    assert (json.loads(text)["schema"], kept["x"], kept["x_prime"]) == ("dpaudit.witness/2", None, None)
    saved, claim = witnesses.saved(tmp_path, "test_x.py::test_y", 0), dpaudit.PureDP(1.0)
    assert saved.asked_of(claim, [dpaudit.Pair(0, 1), pair]) is pair
    assert saved.asked_of(claim, [dpaudit.Pair(0, 1)]) is None and saved.asked_of(dpaudit.PureDP(2.0), [pair]) is None
    again = witnesses.replay_saved(saved.result, leaks, claim, pair, 0.99, 5, 300)
    assert again.confirmed and again.pair == pair.id  # disjoint outputs: confirmed whatever the seed
