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
        draws.append(int(line.split()[-1]))
    assert draws[1] > draws[0]
