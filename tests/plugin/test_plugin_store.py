"""`--dp-store`: evidence that accumulates over sessions."""

NIGHT = """
    @pytest.mark.dp_audit(confidence=0.99, calls=1)
    def test_kept(dp_audit):
        warnings.simplefilter("ignore")
        result = dp_audit(sound, samples=100, floating_point=False, **PLAIN)
        print("drawn", result.options.get("store"), result.findings[0].samples)

    def test_not_kept(dp_audit):
        warnings.simplefilter("ignore")
        assert "store" not in dp_audit(sound, samples=100, floating_point=False, **PLAIN).options
"""


def test_tests_that_say_their_confidence_go_on_from_session_to_session(pytester, write):
    write(NIGHT)
    draws = []
    for _ in range(2):
        result = pytester.runpytest("-s", "--dp-store", "kept/evidence.sqlite")
        result.assert_outcomes(passed=2)
        line = next(line for line in result.outlines if "drawn" in line)
        assert "evidence.sqlite" in line
        result.stdout.fnmatch_lines(
            ["dpaudit: the evidence of 1 of 2 audits accumulates in *evidence.sqlite; a test must state its*"]
        )
        draws.append(int(line.split()[-1]))
    assert draws[1] > draws[0]


def test_evidence_is_kept_at_a_stated_confidence_and_its_line_finds_it_again(pytester, write, replay_line):
    result = write("""
        @pytest.mark.dp_audit(confidence=0.99, calls=1)
        def test_kept(dp_audit):
            dp_audit(leaky, samples=100, floating_point=False, **PLAIN)

        def test_of_the_call(dp_audit):
            with pytest.raises(UsageError, match="confidence must be stated by a test that keeps evidence"):
                dp_audit(sound, samples=100, floating_point=False, store="own.db", **PLAIN)
    """).run("--dp-store", "evidence.sqlite", "--dp-cache", "none", passed=1, failed=1)
    line = replay_line(result)
    assert line.endswith("--dp-store evidence.sqlite")
    assert any("dpaudit evidence forget" in line for line in result.outlines)
    again = pytester.runpytest(*line.split()[2:], "--dp-cache", "none")
    again.assert_outcomes(failed=1)
    assert "0 runs of the mechanism in this one" in " ".join(again.stdout.str().split())


def test_a_file_that_is_no_store_stops_the_session_though_no_test_keeps_evidence(pytester, write):
    write("def test_it(): pass")
    pytester.path.joinpath("evidence.db").write_text("[]")
    result = pytester.runpytest("--dp-store", "evidence.db")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: store must be an intact store of evidence, got *evidence.db'."])
