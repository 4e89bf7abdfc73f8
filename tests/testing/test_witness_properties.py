"""Every score of every kind of output: it sees one output at a time, it is data, and a layout reads contents alone.

Validity rests on the first: what a rule sees of an output never depends on the rest of its batch, to the last bit.
"""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.learning.boosted_trees import Trees, fit_trees
from dpaudit.learning.candidates import candidates
from dpaudit.learning.histograms import Coordinate, bytes_of, tokens_of
from dpaudit.learning.scores import Viewed, score_from_dict
from dpaudit.reading import column_reading, nested, noted_leaves
from dpaudit.reading.leaves import Leaf, summaries_of
from dpaudit.reading.nested import MOST_LEAVES, Layout, learn_layout
from dpaudit.reading.noted_leaves import MOST_NOTED, TOO_MANY
from dpaudit.reading.outcomes import Outcomes, canonical, from_objects, join, read_outputs
from dpaudit.reading.outlines import FORM, STRUCTURE, outline_of, outlines
from dpaudit.reading.vectors import SUMMARIES, Linear, Quadratic, Steps, Summary, fit_linear, fit_quadratic, screened
from dpaudit.subjects.call_outcomes import Failed

FIXED = settings(derandomize=True, deadline=None, max_examples=60)


def dictionary(side, rng):
    entry = {"n": int(rng.integers(0, 9)), "x": [float(rng.laplace(side)), "a" if rng.random() < 0.5 else "b"]}
    if rng.random() < 0.3 + 0.3 * side:
        entry["late"] = {float(rng.integers(0, 5)), "member"}
    return entry


def anything(side, rng):
    kinds = [None, math.nan, math.inf, "user 12 in", [1.0, None, 2], float(rng.laplace(side)), Failed("ValueError", "")]
    return kinds[int(rng.integers(0, len(kinds)))]


OBJECTS = {
    "dictionaries": dictionary,
    "ragged lists": lambda side, rng: rng.normal(side, 1.0, size=int(rng.integers(0, 6))).tolist(),
    "tuples": lambda side, rng: ("yes" if rng.random() < 0.5 + 0.4 * side else "no", float(rng.laplace())),
    "texts": lambda side, rng: f"id {rng.integers(0, 10**6)} is {'in' if rng.random() < 0.5 + 0.4 * side else 'out'}",
    "sets": lambda side, rng: set(rng.normal(side, 1.0, size=3).tolist()),
    "mixed": anything,
}


def vectors(side, size, rng):
    result = rng.normal(size=(size, 12)) * (1.0 + 0.2 * side)
    result[:, 3] = 0.9 * result[:, 5] * (2 * side - 1) + 0.4 * result[:, 3] + 0.1 * side
    result[rng.random(size) < 0.05, 7] = math.nan
    result[rng.random(size) < 0.05, 8] = math.inf
    return result


BATCHES = {
    "vectors": lambda side, rng: Outcomes(vectors(side, 700, rng)),
    "running sums": lambda side, rng: Outcomes(np.cumsum(rng.laplace(0.5 * side, size=(700, 5)), axis=1)),
    "bits": lambda side, rng: Outcomes((rng.random((700, 9)) < 0.4 + 0.2 * side).astype(float), is_integer=True),
} | {
    name: (lambda side, rng, one=one: from_objects([one(side, rng) for _ in range(700)]))
    for name, one in OBJECTS.items()
}


@pytest.fixture(scope="module")
def fitted():
    """The candidates of each batch, with the outcomes of x."""
    result = {}
    for name, batch in BATCHES.items():
        first, second = (batch(side, np.random.default_rng([11, side])) for side in (1, 0))
        scores = [score for score, _, _ in candidates(first, second, first.tokens is not None)]
        result[name] = scores, first
    return result


@pytest.mark.parametrize("name", BATCHES)
def test_every_score_of_an_output_is_the_one_it_has_alone(name, fitted):
    scores, outcomes = fitted[name]
    some = outcomes.rows(slice(0, 60))
    for score in scores:
        whole = score(outcomes)
        assert np.array_equal(whole[:60], score(some), equal_nan=True), score.describe()
        alone = [score(some.rows(slice(k, k + 1))) for k in range(60)]
        assert np.array_equal(whole[:60], np.concatenate(alone), equal_nan=True), score.describe()
        # every third: another step through memory
        assert np.array_equal(whole[::3], score(outcomes.rows(slice(0, None, 3))), equal_nan=True), score.describe()


@pytest.mark.parametrize("name", BATCHES)
def test_every_score_is_the_same_after_it_was_written_and_sent(name, fitted):
    scores, outcomes = fitted[name]
    for score in scores:
        written = json.dumps(score.to_dict(), allow_nan=False)
        back = score_from_dict(json.loads(written), None, 0, 1)
        sent = pickle.loads(pickle.dumps(score))
        for other in (back, sent):
            assert np.array_equal(other(outcomes), score(outcomes), equal_nan=True), score.describe()
        assert back.describe() == score.describe()


def test_all_kinds_of_scores_are_among_those():
    kinds = set()
    for batch in BATCHES.values():
        first, second = (batch(side, np.random.default_rng([11, side])) for side in (1, 0))
        for score, _, _ in candidates(first, second, first.tokens is not None):
            record = score.to_dict()
            kinds |= {record["kind"], record.get("view", {}).get("kind", ""), record.get("score", {}).get("kind", "")}
            kinds.add(record.get("outline", ""))
    expected = {"coordinate", "histogram", "table", "linear", "quadratic", "trees", "viewed", "layout", "summary"}
    assert kinds >= expected | {"steps", "form", "structure"}


@pytest.mark.parametrize("name", BATCHES)
def test_a_fit_is_the_same_each_time(name):
    written = []
    for _ in range(2):
        first, second = (BATCHES[name](side, np.random.default_rng([11, side])) for side in (1, 0))
        found = candidates(first, second, first.tokens is not None)
        written.append(json.dumps([score.to_dict() for score, _, _ in found]))
    assert written[0] == written[1]


def test_a_batch_in_column_order_is_summed_like_its_rows():
    # along the columns of such an array numpy adds in another sequence than along one row
    array = np.asfortranarray(np.random.default_rng(5).normal(size=(50, 300)))
    batch = read_outputs(array, 50)
    linear = Linear(np.full(300, 0.1), np.full(300, -3.0), np.full(300, 3.0), np.zeros(300))
    alone = np.concatenate([linear(read_outputs(array[k : k + 1], 1)) for k in range(50)])
    assert linear(batch).tolist() == alone.tolist()


# --- layouts and outlines ---


leaves_of_any = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.sampled_from(["a", "b 7", "x-1.5e3"])
)
any_output = st.recursive(
    leaves_of_any,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["a", "b", 1, 2.5, None]), inner, max_size=3),
        st.frozensets(leaves_of_any, max_size=3),
    ),
    max_leaves=8,
)


def twin(value):
    """An equal output: other types of numbers, tuples for lists. (The order of keys is a content of its own.)"""
    if isinstance(value, dict):
        return {key: twin(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(twin(item) for item in value)
    if isinstance(value, bool):
        return np.float64(value)
    if isinstance(value, int):
        return float(value)
    return value


@FIXED
@given(st.lists(any_output, min_size=4, max_size=12))
def test_a_layout_reads_contents_one_output_at_a_time(outputs):
    batch = from_objects(outputs)
    learned = learn_layout(batch.rows(slice(0, None, 2)), batch.rows(slice(1, None, 2)))
    for output in outputs:
        assert canonical(twin(output)) == canonical(output)
        for outline in (FORM, STRUCTURE):
            assert outline_of(output, outline) == outline_of(twin(output), outline)
    if learned is None:
        return
    layout, first, second = learned
    whole = layout(batch).numbers
    assert np.array_equal(whole[::2], first.numbers, equal_nan=True)
    assert np.array_equal(whole[1::2], second.numbers, equal_nan=True)
    for row, output in zip(whole, outputs, strict=True):
        assert np.array_equal(layout(from_objects([output])).numbers[0], row, equal_nan=True)
        assert np.array_equal(layout(read_outputs([output], 1)).numbers[0], row, equal_nan=True)
        assert np.array_equal(layout(from_objects([twin(output)])).numbers[0], row, equal_nan=True)


@FIXED
@given(st.lists(any_output, min_size=4, max_size=12), st.integers(2, 6))
def test_a_layout_reads_the_same_of_outputs_with_notes(outputs, times):
    batch = from_objects(outputs * times)
    noted = join([batch.rows(slice(0, 3)).with_notes(), batch.rows(slice(3, None))])
    sides = [[part.rows(slice(k, None, 2)) for k in (0, 1)] for part in (batch, noted)]
    learned, again = (learn_layout(*both) for both in sides)
    for outline in (FORM, STRUCTURE):
        assert outlines(noted, outline) == outlines(batch, outline) == outlines(noted, outline)
    assert (learned is None) == (again is None)
    if learned is None or again is None:
        return
    assert again[0] == learned[0]
    for first, second in zip(learned[1:], again[1:], strict=True):
        assert np.array_equal(first.numbers, second.numbers, equal_nan=True)
    assert np.array_equal(learned[0](noted).numbers, learned[0](batch).numbers, equal_nan=True)
    positions = {id(note) for note in noted.notes}
    texts = [output for output in batch.raw if type(output) is str]
    # Each its own, also of the part that had none; but for texts that are equal.
    assert len(positions) == len(noted) - len(texts) + len(set(texts)) and len(noted) == len(batch)
    assert {id(note) for note in noted.rows(slice(1, None, 2)).notes} <= positions


def test_leaves_are_noted_once_where_a_layout_is_learned_and_only_of_outputs_that_are_not_too_large(monkeypatch):
    read, usual = [], {"a": 1.0, "b": "yes"}
    layout = Layout((Leaf(("'a'",), "value"), Leaf(("'b'",), "category", ("'no'", "'yes'"))))
    few = from_objects([{"a": float(k), "b": "yes"} for k in range(40)] + [usual, None]).with_notes()
    assert layout(few).numbers[:41].tolist() == [[k if k < 40 else 1.0, 1.0] for k in range(41)]
    assert all(note.leaves is None for note in few.notes)
    assert learn_layout(few.rows(slice(0, 20)), few.rows(slice(20, None))) is not None
    first = few.notes[0].leaves
    assert first is not None and learn_layout(few.rows(slice(0, 5)), few.rows(slice(5, 9))) is not None
    assert few.notes[0].leaves is first
    monkeypatch.setattr(column_reading, "read_one", lambda node, value, row: read.append(value))
    assert layout(few.rows(slice(0, 5))).numbers[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0] and read == []
    large = from_objects([usual] * 64 + [list(range(MOST_NOTED + 1))] * 5).with_notes()
    learn_layout(large.rows(slice(0, 60)), large.rows(slice(60, None)))
    read.clear()
    assert layout(large).numbers[:64].tolist() == [[1.0, 1.0]] * 64
    assert len(read) == 5 and all(note.leaves is TOO_MANY for note in large.notes[64:])


def test_outputs_of_one_form_are_read_as_each_alone(monkeypatch):
    rng = np.random.default_rng(5)

    def output(k):
        some = {"n": float(rng.normal()), "big": 10**20 + k, "word": "ab"[: k % 3], 7: k % 2}
        some["list"], some["even"] = list(range(k % 3)), [float(rng.normal()), k % 4, 0.0]
        lists = [some, k, 2.5], (True, "x", None)
        kinds = [some, {**some, "more": None}, *lists, f"text {k} of 2", f"{k}", None, 10**400, b"\x00\x01"]
        return kinds[k % len(kinds)]

    outputs = [output(k) for k in range(400)]
    sides = [from_objects(outputs[k::2]) for k in (0, 1)]
    layout = learn_layout(*sides)[0]
    together = layout(from_objects(outputs)).numbers
    assert together.shape[1] > 20
    with monkeypatch.context() as patched:
        patched.setattr(column_reading, "FEWEST_ALIKE", len(outputs) + 1)
        assert np.array_equal(layout(from_objects(outputs)).numbers, together, equal_nan=True)
    for position in range(0, 400, 7):
        alone = layout(from_objects([outputs[position]])).numbers[0]
        assert np.array_equal(alone, together[position], equal_nan=True)


def test_where_outputs_had_too_many_places_leaves_are_read_and_not_noted(monkeypatch):
    layout = Layout((Leaf(("'a'",), "value"), Leaf(("'c'",), "value")))
    outputs = from_objects([{"a": float(k), "c": 2.0} for k in range(8)])
    known = layout(outputs).numbers
    learned = learn_layout(outputs, outputs)[0]
    for module in (nested, noted_leaves):
        monkeypatch.setattr(module, "MOST_PLACES", 0)
    before = len(noted_leaves.NOTED.every)
    other = [{f"never{k}": k, "a": float(k), "c": 2.0} for k in range(8)]
    assert learn_layout(from_objects(other).with_notes(), outputs) is not None
    assert len(noted_leaves.NOTED.every) == before  # so that memory has a bound
    noted = outputs.with_notes()
    assert learn_layout(noted, noted)[0] == learned
    assert layout(noted).numbers.tolist() == known.tolist()
    assert all(note.leaves is None for note in noted.notes)


def test_what_a_layout_reads():
    layout = Layout(
        (
            Leaf(("'a'",), "value"),
            Leaf(("'a'",), "presence"),
            Leaf(("'x'", 1), "value"),
            Leaf(("'x'",), "length"),
            Leaf(("'x'",), "sum"),
            Leaf(("'x'",), "first nonzero"),
            Leaf(("'s'",), "category", ("'no'", "'yes'")),
            Leaf(("'s'",), "membership", ("yes",)),
            Leaf(("'s'", "text", 0), "value"),
        )
    )
    outputs = [{"a": 2, "x": [0, 3, None], "s": "yes"}, {"x": (1.5,), "s": "yes 7"}, None, {"a": "2", "x": {5, 4}}]
    nan = math.nan
    expected = [
        [2.0, 1.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, nan],
        [nan, 0.0, nan, 1.0, 1.5, 0.0, -1.0, 1.0, 7.0],
        [nan, 0.0, nan, nan, nan, nan, nan, nan, nan],
        [nan, 1.0, 5.0, 2.0, 9.0, 0.0, nan, nan, nan],  # of another type; a set by its sorted numbers
    ]
    assert np.array_equal(layout(from_objects(outputs)).numbers, np.array(expected), equal_nan=True)


def test_a_layout_has_no_more_leaves_than_allowed_and_no_two_alike():
    rng = np.random.default_rng(3)
    batch = from_objects([rng.integers(0, 2, size=600).tolist() for _ in range(40)])
    layout = learn_layout(batch, batch)[0]
    assert 0 < len(layout.leaves) <= MOST_LEAVES
    # one number in a tuple is its own sum, largest and last: one column
    single = from_objects([("a", float(value)) for value in rng.normal(size=40)])
    assert [leaf.what for leaf in learn_layout(single, single)[0].leaves] == ["value"]
    assert learn_layout(from_objects([None] * 9), from_objects([None] * 9)) is None


def test_outlines_leave_out_numbers_and_texts():
    output = ("yes 12", 3.5, math.nan, {"b": None, "a": -math.inf}, {1, 2})
    assert outline_of(output, FORM) == "['yes #',#,nan,{'a':-inf,'b':None},{#,#}]"
    assert outline_of(output, STRUCTURE) == "[text,#,nan,{'a':-inf,'b':None},{#,#}]"


def test_failures_in_a_mix_are_tokens_by_their_kind_alone():
    mix = [Failed("TimeoutError", "after 3 s"), {"v": 1.0}, Failed("TimeoutError", "after 4 s"), 2.0]
    for outline in ("token", FORM, STRUCTURE):
        tokens = tokens_of(from_objects(mix), outline)
        assert tokens[0] == tokens[2] == "raised TimeoutError" and len(set(tokens)) == 3


@FIXED
@given(st.lists(st.lists(st.floats(), min_size=2, max_size=2), min_size=1, max_size=8))
def test_rows_have_equal_bytes_where_they_have_equal_tokens(rows):
    numbers = np.array(rows)
    tokens, keys = tokens_of(Outcomes(numbers)), bytes_of(numbers)
    assert [[a == b for b in tokens] for a in tokens] == [[a == b for b in keys] for a in keys]


# --- the fits ---


def normal(size, columns, seed):
    return np.random.default_rng(seed).normal(size=(size, columns))


def test_the_pair_of_another_correlation_is_found_and_no_pair_where_there_is_none():
    a, b = normal(600, 30, 1), normal(600, 30, 2)
    assert fit_quadratic(Outcomes(a), Outcomes(b)) is None  # 2 samples of one law: of 435 pairs none stands out
    a[:, 4], b[:, 4] = 0.6 * a[:, 4] + 0.8 * a[:, 20], 0.6 * b[:, 4] - 0.8 * b[:, 20]
    quadratic = fit_quadratic(Outcomes(a), Outcomes(b))
    assert isinstance(quadratic, Quadratic) and quadratic.columns == (4, 20)
    # between correlations of +0.8 and -0.8 the log ratio is 2 * 0.8 / (1 - 0.64) = 4.4 times the product, of means 0.8
    assert quadratic(Outcomes(a)).mean() > 1.0 > -1.0 > quadratic(Outcomes(b)).mean()


def test_trees_find_a_corner_and_nothing_between_samples_of_one_law():
    a, b = normal(3_000, 6, 3), normal(3_000, 6, 4)
    columns = np.arange(6)
    assert fit_trees(Outcomes(a), Outcomes(b), columns) is None
    a[:200, [1, 4]] = 1.3 + np.abs(a[:200, [1, 4]])
    trees = fit_trees(Outcomes(a), Outcomes(b), columns)
    assert isinstance(trees, Trees)
    corner, away = np.zeros((1, 6)), np.zeros((1, 6))
    corner[0, [1, 4]] = 2.0
    assert trees(Outcomes(corner))[0] > 1.0 > abs(trees(Outcomes(away))[0])


def test_trees_take_nan_for_the_lowest():
    a, b = normal(1_000, 2, 5), normal(1_000, 2, 6)
    a[:500, 0] = math.nan
    trees = fit_trees(Outcomes(a), Outcomes(b), np.arange(2))
    assert trees(Outcomes(np.array([[math.nan, 0.0]])))[0] > 1.0 > trees(Outcomes(np.array([[-9.0, 0.0]])))[0]


@pytest.mark.parametrize("kind", ["mean", "spread", "atom", "NaN"])
def test_the_one_coordinate_of_many_passes_the_screen(kind):
    a, b = normal(400, 500, 7), normal(400, 500, 8)
    if kind == "mean":
        a[:, 333] += 0.7
    elif kind == "spread":
        a[:, 333] *= 2.0
    else:
        a[:80, 333] = 0.25 if kind == "atom" else math.nan
    assert 333 in screened(a, b, 40)
    assert len(screened(a, b, 40)) == 40 and screened(a, b, 500).tolist() == list(range(500))


def test_a_discriminant_of_columns_with_nan_and_infinity_is_made_of_the_rest():
    a, b = normal(300, 10, 9) + 0.5, normal(300, 10, 10)
    a[::5, 2] = math.nan
    b[::7, 3] = math.inf
    for diagonal in (False, True):
        linear = fit_linear(Outcomes(a), Outcomes(b), diagonal=diagonal)
        scores = linear(Outcomes(a)), linear(Outcomes(b))
        assert all(np.isfinite(score).all() for score in scores)
        # the shift is 0.5 in 10 coordinates, so 1.6 standard deviations of the sum
        assert scores[0].mean() > scores[1].mean() + scores[1].std()


def test_summaries_of_a_row():
    rows = np.array([[1.0, 4.0, 0.0], [math.nan, -2.0, 7.0]])
    shown = Summary(SUMMARIES, np.zeros(3), np.ones(3))(Outcomes(rows)).numbers
    assert shown[0].tolist() == [5.0, 5.0, 17.0, 4.0, 0.0, 1.0, 3.0, 2.0, 2.0]
    assert shown[1].tolist() == [5.0, 9.0, 53.0, 7.0, -2.0, 2.0, 9.0, 3.0, 1.0]


def test_steps_are_the_first_coordinate_and_the_differences():
    view = Steps(np.ones(3))
    assert view(Outcomes(np.array([[1.0, 4.0, 0.5]]))).numbers.tolist() == [[1.0, 3.0, -3.5]]
    shown = view(Outcomes(np.array([[math.inf, math.inf, math.nan], [0.0, -math.inf, 2.0]]))).numbers
    assert np.isnan(shown[0, 1:]).all() and shown[1].tolist() == [0.0, -math.inf, math.inf]
    assert view.name_of(0) == "coordinate 0 of the output"
    assert view.name_of(2) == "coordinate 2 of the output less coordinate 1"
    whole = Viewed(view, fit_linear(Outcomes(normal(50, 3, 13)), Outcomes(normal(50, 3, 14) + 1.0)))
    assert whole.describe().endswith("(a coordinate is a number less the one before)")


def test_steps_of_running_sums_show_nothing_of_what_rounding_leaves():
    """A running sum of whole numbers and one number: its last step is that number, up to rounding."""
    rng = np.random.default_rng(20_261_601)
    first = rng.laplace(scale=1e3, size=500)
    sums = np.column_stack([first, first + 0.1, first + 0.3])
    view = Steps.between(Outcomes(sums), Outcomes(sums))
    steps = view(Outcomes(sums)).numbers
    assert np.unique(steps[:, 1]).size == np.unique(steps[:, 2]).size == 1
    assert np.unique(np.diff(sums, axis=1)[:, 0]).size > 1


def test_steps_are_looked_at_where_neighbours_go_together():
    a, b = normal(400, 6, 11), normal(400, 6, 12)
    assert Steps.between(Outcomes(a), Outcomes(b)) is None
    assert isinstance(Steps.between(Outcomes(np.cumsum(a, axis=1)), Outcomes(np.cumsum(b, axis=1))), Steps)
    assert Steps.between(Outcomes(a[:, :2]), Outcomes(b[:, :2])) is None


@FIXED
@given(st.lists(st.lists(st.floats(), min_size=3, max_size=3), min_size=1, max_size=6))
def test_steps_of_an_output_are_those_of_it_alone(rows):
    view = Viewed(Steps(np.array([1.0, 0.5, 3.0])), Coordinate(2, 3))
    back = score_from_dict(json.loads(json.dumps(view.to_dict())), None, 0, 1)
    together = view(Outcomes(np.array(rows)))
    assert np.array_equal(back(Outcomes(np.array(rows))), together, equal_nan=True)
    alone = [view(Outcomes(np.array([row])))[0] for row in rows]
    assert np.array_equal(alone, together, equal_nan=True)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "table", "values": {}, "shared": "0x0p+0", "outline": "shape"}, "outline must be"),
        ({"kind": "viewed", "view": {"kind": "layout", "leaves": [{"path": [], "what": "x"}]}}, "leaf must be"),
        ({"kind": "viewed", "view": {"kind": "summary", "names": ["mode"]}}, "summary must be"),
        ({"kind": "trees", "columns": [[0]], "cuts": [["0x0p+0"]], "values": [["0x0p+0"]]}, "trees must have"),
    ],
    ids=["outline", "leaf", "summary", "trees"],
)
def test_scores_that_nobody_wrote_are_refused(record, message):
    with pytest.raises(ValueError, match=message):
        score_from_dict(record, None, 0, 1)


def test_a_sum_of_which_only_rounding_is_left_is_one_value_in_nested_outputs_too():
    rng = np.random.default_rng(0)
    for total in (3.0, 1e-7, 1e12):
        first, second = total * rng.uniform(-5.0, 5.0, (2, 1_000))
        sums = {summaries_of([a, b, total - a - b], 3)["sum"] for a, b in zip(first, second, strict=True)}
        assert {abs(value - total) < 1e-8 * total for value in sums} == {True}
        assert len(sums) == 1
    assert {summaries_of(list(counts), 3)["sum"] for counts in itertools.permutations((1, 20, 300_000))} == {300_021.0}
    assert math.isnan(summaries_of([math.inf, -math.inf], 2)["sum"])
    assert summaries_of([1e308, 1.0], 2)["sum"] == pytest.approx(1e308)
