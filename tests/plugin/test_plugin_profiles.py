"""Profiles, and which seeds a session draws."""

import re

import pytest

from dpaudit import profiles

SEEDS = """
    @pytest.mark.parametrize("n", range(2))
    def test_seed(dp_audit, n):
        warnings.simplefilter("ignore")
        result = dp_audit(sound, mode="sequential", floating_point=False, samples={samples}, **PLAIN)
        print("drawn", result.seed, result.options["samples"])
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(profiles, "_PROFILES", dict(profiles._PROFILES))


def drawn(result):
    return [re.search(r"drawn (\d+) (\d+)", line).groups() for line in result.outlines if "drawn " in line]


def test_fixed_seeds_are_the_same_in_every_session(pytester, write):
    write(SEEDS.format(samples=20))
    first, second = pytester.runpytest("-s"), pytester.runpytest("-s", "--dp-profile", "ci")
    assert drawn(first) == drawn(second)
    first.stdout.no_fnmatch_line("*--dp-session-seed*")


def test_fresh_seeds_are_others_in_each_session_and_are_printed(pytester, write):
    write(SEEDS.format(samples=20))
    first, second = (pytester.runpytest("-s", "--dp-profile", "nightly") for _ in range(2))
    assert len({seed for result in (first, second) for seed, _ in drawn(result)}) == 4  # 2**-32 or so to the contrary
    seed = re.search(r"repeated by --dp-session-seed (\d+)", first.stdout.str())[1]
    first.stdout.fnmatch_lines([f"dpaudit: profile nightly, repeated by --dp-session-seed {seed}"])  # before the tests
    first.stdout.fnmatch_lines([f"*; profile nightly, repeated by --dp-session-seed {seed}"])  # and after them
    assert drawn(pytester.runpytest("-s", "--dp-session-seed", seed)) == drawn(first)


def test_fresh_seeds_come_before_those_of_files_and_not_before_the_command_line(pytester, write):
    write(SEEDS.format(samples=20))
    pytester.makepyprojecttoml("[tool.dpaudit]\nseed = 5\n[tool.pytest.ini_options]\ndp_seed = 6\n")
    assert {seed for seed, _ in drawn(pytester.runpytest("-s"))} == {"6"}
    assert not {"5", "6"} & {seed for seed, _ in drawn(pytester.runpytest("-s", "--dp-profile", "nightly"))}
    result = pytester.runpytest("-s", "--dp-profile", "nightly", "--dp-seed", "7")
    assert {seed for seed, _ in drawn(result)} == {"7"}


def test_a_session_of_one_seed_is_not_said_to_be_repeated_by_another(pytester, write):
    write(SEEDS.format(samples=20))
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\ndp_session_seed = 4\n")
    result = pytester.runpytest("-s", "--dp-profile", "nightly", "--dp-seed", "3")
    assert {seed for seed, _ in drawn(result)} == {"3"}
    result.stdout.no_fnmatch_line("*--dp-session-seed*")
    result.stdout.fnmatch_lines(["dpaudit: *; profile nightly, seed 3 for each audit that states none"])


@pytest.mark.parametrize("place", ["--dp-seed", "the ini option dp_seed of *", "[[]tool.dpaudit]"])
def test_a_seed_of_the_session_beside_one_of_all_audits_is_refused(pytester, write, place):
    write(SEEDS.format(samples=20))
    table = {"the ini": "[tool.pytest.ini_options]\ndp_seed = 3\n", "[[]tool": "[tool.dpaudit]\nseed = 3\n"}
    pytester.makepyprojecttoml(table.get(place[:7], ""))
    option = ("--dp-seed", "3") if place == "--dp-seed" else ()
    result = pytester.runpytest("--dp-session-seed", "4", *option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: session_seed must *, got 4 at --dp-session-seed and 3 at {place}."])


def test_a_project_registers_its_own(pytester, write):
    pytester.makeconftest(
        'import dpaudit\ndpaudit.register_profile("release", samples=40, confidence=0.9, strict=True)\n'
    )
    result = write(SEEDS.format(samples="None")).run(
        "-s", "--dp-profile", "release", "-k", "0", failed=1
    )  # inconclusive, and strict
    result.stdout.fnmatch_lines(["Inconclusive*", "*--dp-profile release*", "dpaudit: 0.9 confidence*profile release*"])


def test_a_profile_comes_after_the_command_line_and_before_files(pytester, write):
    pytester.makeconftest('import dpaudit\ndpaudit.register_profile("mine", samples=40)\n')
    write(SEEDS.format(samples="None"))
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\ndp_profile = 'mine'\ndp_samples = 30\n")
    assert {samples for _, samples in drawn(pytester.runpytest("-s"))} == {"40"}
    assert {samples for _, samples in drawn(pytester.runpytest("-s", "--dp-samples", "50"))} == {"50"}
    write(SEEDS.format(samples=60))
    assert {samples for _, samples in drawn(pytester.runpytest("-s", "--dp-samples", "50"))} == {"60"}
