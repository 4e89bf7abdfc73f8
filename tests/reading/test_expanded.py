"""Expansions: what outputs hold beside their parts is read, one output at a time, and comes back from data."""

import base64
import datetime
import json
import struct
import zlib
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.learning.candidates import candidates
from dpaudit.learning.scores import score_from_dict
from dpaudit.reading.expanded import (
    MODULUS,
    MOST_REMEMBERED,
    ExpandedLayout,
    Shared,
    Telling,
    expanded,
    learn_expanded_layouts,
    part_at,
)
from dpaudit.reading.outcomes import canonical, from_objects
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.plain import seen

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("value", "name", "inside"),
    [
        ('{"a": [1, 2]}', "JSON", {"a": [1, 2]}),
        (json.dumps(json.dumps({"b": 3})), "JSON", '{"b": 3}'),
        ("2021-03-04T05:06:07", "date", [datetime.date(2021, 3, 4).toordinal(), 5, 6, 7, 0, 3]),
        ("0x1f", "hexadecimal", 31),
        (base64.b64encode(b"\x00\x01\x02\x03\xff\xfe").decode(), "base64", b"\x00\x01\x02\x03\xff\xfe"),
        ("a,1\nb,2\n", "lines", [["a", 1.0], ["b", 2.0]]),
        ("one two one", "words", {"first": {"one": 0, "two": 1}}),
        (zlib.compress(b'{"a": 1}'), "uncompressed", b'{"a": 1}'),
        (struct.pack("<2d", 1.5, -2.0), "doubles", [1.5, -2.0]),
        ("naïve\n".encode(), "text", "naïve\n"),
    ],
)
def test_texts_and_bytes_are_read_as_what_they_are(value, name, inside):
    assert expanded(value)[name] == inside


@pytest.mark.parametrize(
    "value", ["{noJSON", "2021-99-99", "[" * 10_000, "", b"", b"\xff\x00", 1.5, None, True, float("nan")]
)
def test_what_is_nothing_else_has_no_reading(value):
    found = expanded(value) or {}
    assert not found.keys() & {"JSON", "date", "hexadecimal", "base64", "lines", "words", "uncompressed", "doubles"}


def test_numbers_that_are_no_doubles_are_read_to_their_last_digit():
    big = 7 * 2**80
    assert [expanded(big + k)["left"] % 7 for k in range(3)] == [0, 1, 2]
    assert expanded(big)["left"] == big % MODULUS < 2**53
    assert expanded(Decimal("1.50")) == {"digits": 3, "last digit": 0, "exponent": -2}
    assert expanded(Decimal("NaN")) is None
    assert expanded(Fraction(3, 97)) == {"numerator": 3, "denominator": 97}


def test_what_an_exception_says_is_read():
    first, second = (expanded(Failed("ValueError", f"row {n}: no parse")) for n in (40, 41))
    assert first["message"] == "row 40: no parse" != second["message"]
    assert first["in message"]["digits"] == 2
    raised = [
        from_objects([Failed("ValueError", f"row {20 * k + side}: no") for k in range(40)] + [None] * 40)
        for side in (0, 1)
    ]
    (layout, *_), *_ = learn_expanded_layouts(*raised)
    assert any("message" in layout.name_of(column) for column in range(len(layout.layout.leaves)))


def test_classes_are_read_where_values_are_equal():
    assert expanded([1, 2.0])["kinds"] == "list of int float" != expanded([1.0, 2.0])["kinds"]
    assert expanded({"a": True, "b": 1})["kinds"] == "list of bool int"
    assert expanded(np.zeros(3, dtype="<f4"))["kinds"] == "<f4" != expanded(np.zeros(3))["kinds"]
    assert expanded([1] * 20)["kinds"] == "list of int"
    assert expanded((1, 2))["kinds"] == "tuple of int int" == expanded((np.int64(1), np.int64(2)))["kinds"]


def test_order_and_repetition_are_counted():
    counts = {"repeated": 1, "falls": 1, "missing": 1, "below 0": 1}
    kinds = "list of float float float float float"
    assert expanded([3.0, 1.0, 1.0, float("nan"), -2.0]) == counts | {"kinds": kinds}
    assert expanded({"b": 1.0, "a": 2.0}) == {
        "keys": ["b", "a"],
        "falls": 1,
        "repeated": 0,
        "kinds": "list of float float",
    }
    assert expanded({"a": 2.0, "b": 1.0})["falls"] == 0
    assert expanded({"a": "t", "b": "t"})["repeated"] == 1
    assert expanded({(1, 2): None})["keys"] == [(1, 2)]


def _leak(x, rng):
    letters = [chr(97 + k) for k in rng.integers(26, size=900)]
    letters[700] = "qz"[x]
    return "".join(letters)


def telling_view(first, second):
    """The view of what tells, which is there."""
    (view,) = (view for view, *_ in learn_expanded_layouts(first, second) if isinstance(view.expansion, Telling))
    return view


def test_a_path_leads_to_the_part_that_it_was_made_of():
    outputs = [
        {"a": ["one two", {"b": "c" * 70}], "j": json.dumps({"n": "many words here", "m": [1, "x y"]})},
        Failed("ValueError", "row 40: no parse"),
        base64.b64encode(b"some text that is long enough").decode(),
        ["first line, of two\nsecond, line"],
    ]
    for output in outputs:
        long = {}
        expanded(output, long=long)
        assert long
        for path, part in long.items():
            assert part_at(output, path) == part
    others = [{"a": 1}, "two words", [1, 2], (), 7, None, 1.5, b"ab", Failed("KeyError", "a"), np.zeros(3), {1, 2}]
    paths = [("'b'",), ("JSON", "'n'"), ("3",), ("'a'", "0"), ("message", "words"), ("one two", "")]
    assert all(part_at(other, path) is None for other in others for path in paths)


def test_a_place_may_hold_texts_lists_and_bytes_in_turn():
    rng = RNG(4)
    some = ["q" * 80 + "z", [1.0] * 300, b"r" * 300, "short", 3]
    first, second = (from_objects([some[k] for k in rng.integers(len(some), size=200)]) for _ in range(2))
    for view, *_ in learn_expanded_layouts(first, second):
        assert len(view(from_objects([*some, {}, None, Failed("KeyError", "a")]))) == 8


def test_rules_of_an_earlier_version_that_read_pieces_are_refused():
    record = {"expansion": {"places": [], "pieces": [{"path": [], "pieces": ["ab"]}]}, "layout": {"leaves": []}}
    with pytest.raises(ValueError, match="earlier"):
        ExpandedLayout.from_dict(record)
    record["expansion"]["pieces"] = []
    assert ExpandedLayout.from_dict(record).to_dict()["expansion"] == record["expansion"]


def test_a_place_of_a_long_text_is_learned_and_read_on_other_outputs():
    rng = RNG(1)
    first, second, later = (from_objects([_leak(x, rng) for _ in range(60)]) for x in (1, 0, 1))
    view = telling_view(first, second)
    assert 700 in view.expansion.places[()]
    column = next(k for k in range(len(view.layout.leaves)) if (view(later).numbers[:, k] == ord("z")).all())
    assert (view(second).numbers[:, column] == ord("q")).all()
    assert view.name_of(column) == "place 700 of the output" and view.values_of(column) is None


def test_pieces_of_texts_are_learned():
    rng = RNG(2)
    texts = [["".join(chr(97 + k) for k in rng.integers(26, size=100)) for _ in range(80)] for _ in range(2)]
    texts[0] = [text[:k] + "xqzk" + text[k:] if k < 30 else text for k, text in enumerate(texts[0])]
    view = telling_view(*map(from_objects, texts))
    assert "xqzk" in view.expansion.pieces[()]
    names = [view.name_of(k) for k in range(len(view.layout.leaves))]
    column = names.index("whether 'xqzk' is in the output")
    assert view.values_of(column) == {0.0: "no", 1.0: "yes"}
    assert view(from_objects(["--xqzk--", "xq zk", 7])).numbers[:, column].tolist()[:2] == [1.0, 0.0]


def test_every_column_of_what_is_looked_for_has_a_name():
    # A long text that some outputs lack is a column of its own: how many such texts there are.
    rng = RNG(4)
    first, second = (
        from_objects([{"sign": sign} if keep else {} for keep in rng.random(100) < 0.7])
        for sign in ("down the hill", "up the hill")
    )
    view = telling_view(first, second)
    names = [view.name_of(k) for k in range(len(view.layout.leaves))]
    assert "length of what is looked for in the output" in names
    assert "length of what is looked for in the part 'sign' of the output" in names
    assert "whether 'do' is in the part 'sign' of the output" in names
    assert "place of 'do', which is looked for in the part 'sign' of the output" in names
    assert len(set(names)) == len(names)


def test_an_output_is_read_by_itself_and_scores_come_back_from_data():
    rng = RNG(3)
    outputs = [[json.dumps({"n": 2 * int(rng.integers(500)) + x, "m": [1] * 3}) for _ in range(60)] for x in (1, 0)]
    first, second = map(from_objects, outputs)
    found = [
        score for score, *_ in candidates(first, second, True) if isinstance(getattr(score, "view", 0), ExpandedLayout)
    ]
    assert found
    for score in found:
        together = score(first)
        alone = [score(from_objects([output]))[0] for output in outputs[0]]
        np.testing.assert_array_equal(together, alone)
        again = score_from_dict(json.loads(json.dumps(score.to_dict())), None, 1, 0)
        np.testing.assert_array_equal(again(second), score(second))
        assert "the output" in score.describe()


def test_a_place_that_is_no_position_is_refused():
    record = {"places": [{"path": [], "places": [-1]}], "pieces": []}
    with pytest.raises(ValueError, match="places must be at least 0"):
        Telling.from_dict(record)


def test_what_refers_to_itself_twice_is_seen_at_once():
    # Two objects that hold each other twice: 2^40 ways to go 40 levels deep.
    class Part:
        pass

    first, second = Part(), Part()
    first.one, first.other, second.one, second.other, first.value = second, second, first, first, 1.5
    token = canonical(seen(first))
    assert "'value':1.5" in token and "that it is in" in token


def test_what_a_tuple_holds_beside_its_items_is_seen():
    class Result(tuple):
        pass

    result = Result((1.0, 2.0))
    assert seen(result) == (1.0, 2.0)
    result.sign = -1
    assert seen(result) == (1.0, 2.0, {"sign": -1})


def test_what_offers_itself_as_an_array_is_read_as_one():
    class Image:
        def __init__(self, pixels):
            self._pixels = pixels

        @property
        def __array_interface__(self):
            return self._pixels.__array_interface__

    pixels = np.arange(6).reshape(2, 3)
    assert seen(Image(pixels)).tolist() == pixels.tolist()


def test_texts_in_compressed_texts_end():
    text = "a b"
    for _ in range(3):  # 64 lines in each line, 64 parts of each: 64^3 in all
        cell = base64.b64encode(zlib.compress("\n".join([text] * 64).encode(), 9)).decode()
        text = cell + "=" * (-len(cell) % 4)
    left = [1_000]
    expanded(text, left=left)
    assert left[0] < 0 and left[0] > -300_000
    before = [20_000]
    assert expanded({"a": "x y"}, left=before) == expanded({"a": "x y"}) and before[0] > 19_900


def test_equal_expansions_share_their_notes_and_read_the_same():
    tables = [{"cell": ["a", "b"], "count": [float(RNG(k).normal()), float(k % 3)]} for k in range(60)]
    noted, plain = from_objects(tables).with_notes(), from_objects(tables)
    layouts = [next(learn_expanded_layouts(side.rows(slice(0, 30)), side.rows(slice(30, 60))))[0]
               for side in (noted, plain)]  # fmt: skip
    assert layouts[0] == layouts[1]
    assert np.array_equal(layouts[0](noted).numbers, layouts[0](plain).numbers, equal_nan=True)
    shared = noted.seen_by(layouts[0].expansion).notes
    assert len({id(note) for note in shared}) < 20 and sum(note.is_shared for note in shared) > 50


@pytest.mark.parametrize("others", [(1, True), (1, 1.0), (0.0, -0.0), ("1", 1), ([1], (1,))])
def test_expansions_of_other_types_share_nothing(others):
    shared = Shared()
    first, second = (shared.of({"keys": [value]}) for value in others)
    assert first[1] is not second[1] and repr(second[0]["keys"][0]) == repr(others[1])
    assert shared.of({"keys": [others[0]]})[1] is first[1]


def test_what_cannot_be_pickled_is_shared_with_nothing():
    class Key:
        pass

    value = {"keys": [Key()]}
    kept, notes = Shared().of(value)
    assert kept is value and not notes.is_shared


def test_what_is_remembered_of_expansions_has_a_bound():
    shared = Shared()
    for k in range(4_000):
        shared.of({"log": [float(k)] * 60, "k": k})
        assert shared._bytes <= MOST_REMEMBERED and shared._bytes == sum(map(len, shared._known))
    assert 0 < len(shared._known) < 4_000
    assert shared.of({"long": list(range(5_000))})[1] is not shared.of({"long": list(range(5_000))})[1]
    once, twice = (shared.of({"same": 1.0})[1] for _ in range(2))
    assert once is twice and twice.is_shared
