"""Triangle counts of all graphs with n nodes: classes, edit distances, Algorithm 1 and the comparison with Ladder."""

import itertools
import sys

import numpy as np
import pytest

from dpaudit.errors import UsageError
from dpaudit.privacy.finite_metrics import check_metric
from dpaudit_mechanisms.two_metrics import GraphClasses, Ladder, PrivacyFirst, algorithm_1
from dpaudit_mechanisms.two_metrics.triangles import atlas, edges

pytest.importorskip("networkx")


@pytest.fixture(scope="module")
def seven():
    return GraphClasses(7)


def relabelled(code, nodes):
    """All codes of one graph, by brute force."""
    listed = edges(nodes)
    present = [pair for e, pair in enumerate(listed) if code >> e & 1]
    place = {pair: e for e, pair in enumerate(listed)}
    return {
        sum(1 << place[tuple(sorted((order[i], order[j])))] for i, j in present)
        for order in itertools.permutations(range(nodes))
    }


def classes_by_brute_force(nodes):
    """One graph of every class: the least code of each orbit."""
    seen, found = set(), []
    for code in range(1 << len(edges(nodes))):
        if code not in seen:
            seen |= relabelled(code, nodes)
            found.append(code)
    return found


@pytest.mark.claim("UP-A1")
@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
def test_distances_are_least_edit_distances_over_all_relabellings(nodes):
    codes = classes_by_brute_force(nodes)
    classes = GraphClasses(nodes, codes)
    orbits = [relabelled(code, nodes) for code in codes]
    for i, code in enumerate(codes):
        expected = [min((code ^ other).bit_count() for other in orbit) for orbit in orbits]
        assert classes.distances[i].tolist() == expected
    check_metric(classes.distances)


@pytest.mark.claim("UP-E1")
def test_the_printed_counts_of_graphs_with_7_nodes(seven):
    """1,044 classes that cover all 2^21 graphs; 28 counts of triangles. The number of graphs is OEIS A000088."""
    assert len(seven.codes) == 1044 and len(seven.counts()) == 28
    assert seven.class_of.min() == 0 and len(np.unique(seven.class_of)) == 1044
    assert (seven.distances[:, 0].max(), seven.distances.max()) == (21.0, 21.0)
    assert (np.diff(seven.bits.sum(axis=1)) >= 0).all()  # the atlas's order: by edges


@pytest.mark.claim("UP-D12")
def test_local_sensitivities_have_their_closed_form_at_every_distance(seven):
    spaces = seven.spaces()
    assert spaces.sensitivity == 5.0
    for distance in range(22):
        assert np.array_equal(spaces.local_sensitivities(distance), seven.local_sensitivities(distance))


def printed_algorithm(distances, triangles):
    """Algorithm 1, loop by loop."""
    count, last = len(triangles), int(distances.max())
    found = {(0, i): {triangles[i]} for i in range(count)}
    for k in range(1, last + 1):
        for i in range(count):
            collected = set()
            for j in range(count):
                if distances[i, j] == k:
                    collected = collected | {triangles[j]}
                    for s in range(1, k + 1):
                        collected = collected - found[s - 1, i]
            found[k, i] = collected
    return found


@pytest.mark.claim("UP-A1")
@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_algorithm_1_has_the_sets_of_the_loops_and_of_the_definition(nodes):
    classes = GraphClasses(nodes)
    counts, sets = classes.counts(), algorithm_1(classes)
    loops = printed_algorithm(classes.distances, classes.triangles.tolist())
    for k, i in itertools.product(range(len(sets)), range(len(classes.codes))):
        assert set(counts[sets[k, i]].tolist()) == loops.get((k, i), set())
        near = {t for t, d in zip(classes.triangles.tolist(), classes.distances[i], strict=True) if d == k}
        nearer = {t for t, d in zip(classes.triangles.tolist(), classes.distances[i], strict=True) if d < k}
        assert loops.get((k, i), set()) == near - nearer


@pytest.mark.claim("UP-A1")
def test_algorithm_1_is_the_privacy_first_mechanism_on_all_1044_graphs(seven):
    sets = algorithm_1(seven)
    assert (sets.sum(axis=0) == 1).all()  # a partition
    assert np.array_equal(sets.argmax(axis=0), PrivacyFirst(seven.spaces(), 1.0).levels)


@pytest.mark.claim("UP-D-R")
def test_the_printed_widened_sets_are_no_partition_in_the_paper_s_own_experiment(seven):
    """Only the last shell is subtracted: a count returns three shells later for most graphs, with and without width."""
    spaces = seven.spaces()
    for width, expected in ((0.0, 745), (1.0, 711)):
        widths = np.zeros(1044)
        widths[:100] = width
        covers = (spaces.distances <= widths[:, None]).astype(float)
        times, before = np.zeros((1044, 28), dtype=int), np.zeros((1044, 28), dtype=bool)
        for i in range(22):
            covered = (spaces.shells == i).astype(float) @ covers > 0.0
            times += covered & ~before  # in R_i as printed
            before = covered
        assert (times >= 1).all() and (times > 1).any(axis=1).sum() == expected


def test_true_losses_are_below_the_paper_s_bound(seven):
    spaces = seven.spaces()
    for kind in (PrivacyFirst, Ladder):
        exact = kind(spaces, 1.0).epsilon_exact
        assert 1.4 < exact < 1.45  # of 2


def test_what_makes_no_sense_is_refused(monkeypatch):
    with pytest.raises(UsageError, match=r"nodes must be at most 7, got 8\."):
        GraphClasses(8)
    with pytest.raises(UsageError, match="got those of 1 and 2 alike"):
        GraphClasses(3, codes=[0, 1, 2, 7])
    with pytest.raises(UsageError, match="codes must have a graph of every class, got none like 3"):
        GraphClasses(3, codes=[0, 1, 7])
    for codes in ([0, 1, 3, -1], [0, 1, 3.5, 7], [0, 1, 3, 70]):  # -1 and 70 were once read as other graphs
        with pytest.raises(UsageError, match=r"codes must be integers from 0 to 7, got \[0"):
            GraphClasses(3, codes=codes)
    monkeypatch.setitem(sys.modules, "networkx", None)  # importing it raises
    with pytest.raises(UsageError, match=r"networkx must be installed.* pip install 'dpaudit\[graphs\]'"):
        atlas(3)
