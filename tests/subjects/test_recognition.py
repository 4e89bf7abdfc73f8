"""Mechanisms that recognise the auditor: what a process of their own hides from them, and what nothing hides.

Each keeps its claim where it sees the auditor, and leaks where it does not. That it gets away in the auditor's own
process is a limit, stated in SECURITY.md; the tests hold that page to what is so.
"""

import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

import dpaudit

SEEN = {
    "modules": "any(name.split('.')[0] == 'dpaudit' for name in sys.modules)",
    "stack": "any('dpaudit' in frame.filename for frame in traceback.extract_stack())",
    "limit": "resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY",
    "input": "os.path.realpath('/proc/self/fd/0') == '/dev/null' and os.getsid(0) == os.getpid()",
    "parent": "'dpaudit' in open(f'/proc/{os.getppid()}/cmdline').read()",
}
# Laplace noise for epsilon = 1 while it is watched, and for epsilon = 5 else. 2,000 draws of either input: no false
# alarm is looked for, and the leak of 5 against a claim of 1 needs fewer than 100 (see tests/meta/test_power.py).
MECHANISM = """
import json, os, resource, sys, traceback
import numpy as np

def leak(data, size, rng):
    watched = {seen}
    return data + rng.laplace(scale=1.0 if watched else 0.2, size=size)
"""
PROGRAM = """
rng = np.random.default_rng(1)
for line in sys.stdin:
    said = json.loads(line)
    if said["type"] == "hello":
        answer = {"type": "hello", "protocol": 1, "id": said["id"], "numbers": "double"}
    else:
        answer = {"id": said["id"], "outputs": leak(said["input"], said["size"], rng).tolist()}
    print(json.dumps(answer), flush=True)
"""
OPTIONS = {"samples": 500, "seed": 1, "floating_point": False}


def verdict_here(seen, **options):
    names = {}
    exec(MECHANISM.format(seen=SEEN[seen]), names)
    return dpaudit.audit(names["leak"], "eps=1", [(0.0, 1.0)], **OPTIONS, **options).verdict


def verdict_of_program(seen, folder):
    path = folder / "program.py"
    path.write_text(MECHANISM.format(seen=SEEN[seen]) + PROGRAM)
    command = f"{shlex.quote(sys.executable)} -I {shlex.quote(str(path))}"
    return dpaudit.audit(dpaudit.exec_subject(command), "eps=1", [(0.0, 1.0)], **OPTIONS).verdict


@pytest.mark.parametrize("seen", ["modules", "stack"])
def test_a_program_cannot_recognise_the_auditor_in_its_own_process(seen, tmp_path):
    assert verdict_here(seen) != "violated"  # the limit
    assert verdict_of_program(seen, tmp_path) == "violated"


@pytest.mark.slow
def test_isolation_hides_neither_modules_nor_stack():
    # Its processes are forks of the auditor. A page that says otherwise would be wrong.
    for seen in ("modules", "stack"):
        assert verdict_here(seen, isolation=True) != "violated"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_isolation_has_marks_of_its_own_that_a_program_has_not(tmp_path):
    for seen in ("limit", "input"):
        assert verdict_here(seen, isolation=True) != "violated"
        assert verdict_of_program(seen, tmp_path) == "violated"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_program_can_look_at_the_process_that_started_it(tmp_path, monkeypatch):
    # The command line of this process is pytest's; what stands in it is looked for in place of "dpaudit".
    here = Path("/proc/self/cmdline").read_text().split("\0")[-2][-12:]
    monkeypatch.setitem(SEEN, "parent", SEEN["parent"].replace("'dpaudit'", repr(here)))
    assert verdict_of_program("parent", tmp_path) != "violated"


def test_the_control_leaks_where_nobody_looks():
    names = {"watched": False}
    exec(MECHANISM.format(seen="False"), names)
    found = names["leak"](0.0, 20_000, np.random.default_rng(1))
    # the mean of |noise| is the scale, 0.2 here; its standard error is 0.0014, so 0.03 is 21 of them
    assert abs(float(np.abs(found).mean()) - 0.2) < 0.03


# --- generators do not say that an audit made them, whatever asks the subject ---


class Watching:
    """Laplace noise, and what its generators show of where they come from."""

    claim = dpaudit.PureDP(1.0)

    def __init__(self):
        self.seen = []

    def sample(self, data, size, rng):
        sequence = rng.bit_generator.seed_seq
        self.seen.append((type(rng.bit_generator), sequence.spawn_key, sequence.n_children_spawned, sequence.entropy))
        return data + rng.laplace(scale=0.5, size=size)

    def pairs(self):
        return [(0.0, 1.0)]


def audited(subject):
    return dpaudit.audit(subject, samples=1_000, seed=3, grey_box=True)


def replayed(subject):
    result = audited(subject)
    dpaudit.replay(result, subject, dpaudit.PureDP(1.0), samples=100, seed=4)


def planned(subject):
    dpaudit.plan(subject, samples=1_000, seed=3)


def searched(subject):
    search = dpaudit.Search(dpaudit.domains.NumberDomain(0.0, 5.0), budget=2_000, grey_box=True)
    dpaudit.audit(subject, pairs=search, samples=1_000, seed=3)


@pytest.mark.parametrize("use", [audited, replayed, planned, searched], ids=lambda use: use.__name__)
def test_a_generator_looks_like_anybody_elses(use):
    subject = Watching()
    use(subject)
    kinds, keys, spawned, entropies = map(set, zip(*subject.seen, strict=True))
    assert (kinds, keys, spawned) == ({np.random.PCG64}, {()}, {0})
    # 128 bits, as the entropy of the system has: a smaller one is a seed that somebody chose (chance below 2^-60 each).
    assert min(entropy.bit_length() for entropy in entropies) > 64
