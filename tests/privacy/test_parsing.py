"""Parsing: every form reads, `str` reads back exactly, and every malformed text gets one message that names it."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.metrics import EuclideanMetric, GeoMetric
from dpaudit.privacy.parsing import parse_claim, parse_pairs, read_metric

bounded = settings(max_examples=100, deadline=None, derandomize=True)
budgets = st.floats(0.0, allow_nan=False)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A function that writes a file into an empty working directory and returns its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return name

    return write


# --- claims ---


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("eps=1", PureDP(1.0)),
        ("epsilon=1", PureDP(1.0)),
        (" eps = 1.5 ", PureDP(1.5)),
        ("eps=inf", PureDP(math.inf)),
        ("eps=.5", PureDP(0.5)),
        ("eps=1,delta=1e-6", ApproxDP(1.0, 1e-6)),
        ("delta=1e-6, epsilon=1", ApproxDP(1.0, 1e-6)),
        ("eps=1,delta=0", ApproxDP(1.0, 0.0)),
        ("rho=0.5", ZeroConcentratedDP(0.5)),
        ("mu=1", GaussianDP(1.0)),
        ("order=2,rdp=0.3", RenyiDP(2.0, 0.3)),
        ("rdp=0.3,order=2", RenyiDP(2.0, 0.3)),
    ],
)
def test_every_form_of_a_claim_reads(text, claim):
    assert parse_claim(text) == claim


@bounded
@given(
    st.one_of(
        st.builds(PureDP, budgets),
        st.builds(ApproxDP, budgets, st.floats(0.0, 1.0)),
        st.builds(GaussianDP, budgets),
        st.builds(ZeroConcentratedDP, budgets),
        st.builds(RenyiDP, st.floats(1.0, 1e300, exclude_min=True), budgets),
    )
)
def test_a_claim_reads_back_from_its_text_exactly(claim):
    assert parse_claim(str(claim)) == claim


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"claim must be eps=E, .* metric=FILE or tradeoff=\.\.\., got ''\.$"),
        ("1", r"claim must be eps=E, .*, got '1'\. Did you mean 'eps=1'\?$"),
        ("eps:1", r"Did you mean 'eps=1'\?$"),
        ("ε=1, δ=1e-5", r"Did you mean 'eps=1,delta=1e-5'\?$"),
        ("\u00b5=1", r"Did you mean 'mu=1'\?$"),  # as keyboards have it: the micro sign
        ("\u03f5=1", r"Did you mean 'eps=1'\?$"),
        ("eps=1,0.001", r"got '0\.001' at 'eps=1,0\.001'\. Did you mean 'eps=1,delta=0\.001'\?$"),
        ("eps=1 delta=1e-5", r"got '1 delta=1e-5' at claim .*\. Did you mean 'eps=1,delta=1e-5'\?$"),
        ("sigma=1", r"got 'sigma=1'\.$"),
        ("eps", r"got 'eps'\.$"),
        ("eps=1,", r"got '' at 'eps=1,'\."),
        ("alpha=1", r"got 'alpha=1'\.$"),
        ("eps=one", r"eps must be a number, got 'one' at claim 'eps=one'\."),
        ("eps=", r"eps must be a number, got '' at claim 'eps='\."),
        ("eps=-1", r"epsilon must be in \[0, inf\], got -1\.0 at claim 'eps=-1'\."),
        ("eps=1,delta=2", r"delta must be in \[0, 1\], got 2\.0 at claim 'eps=1,delta=2'\."),
        ("order=1,rdp=1", r"order must be in \(1, inf\), got 1\.0 at claim 'order=1,rdp=1'\."),
        ("metric=", r"metric must be a file that ends in \.csv or \.json, got ''\."),
        ("metric=cities", r"metric must be a file that ends in \.csv or \.json, got 'cities'\."),
        ("metric=no.csv,on=rows", r"on must be 'inputs' or 'records', got 'rows' at claim 'metric=no\.csv,on=rows'\."),
        ("metric=no.csv,scale=x", r"scale must be a number, got 'x' at claim 'metric=no\.csv,scale=x'\."),
    ],
)
def test_a_malformed_claim_gets_one_message_that_names_it(text, message):
    with pytest.raises(UsageError, match=message):
        parse_claim(text)


# --- metric files ---

MATRIX = "from,a,b,c\na,0,1,inf\nb,1,0,inf\nc,inf,inf,0\n"


def test_a_csv_matrix_reads(write):
    claim = parse_claim(f"metric={write('d.csv', MATRIX)}")
    assert claim.for_pair("a", "b") == PureDP(1.0)
    assert claim.for_pair("a", "c").is_vacuous
    assert claim.on == "inputs"


def test_a_metric_claim_reads_back_from_its_text(write):
    write("d.csv", MATRIX)
    for text in (
        "metric=d.csv",
        "metric=d.csv,on=records",
        "metric=d.csv,scale=0.1",
        "metric=d.csv,scale=2,on=records",
    ):
        assert str(parse_claim(text)) == text
        assert parse_claim(str(parse_claim(text))) == parse_claim(text)
    assert parse_claim("metric=d.csv,on=records").for_pair("ab", "ba") == PureDP(2.0)
    assert parse_claim("metric=d.csv,scale=0.5").for_pair("a", "b") == PureDP(0.5)


def test_ids_that_read_as_numbers_are_the_numbers_of_the_pairs(write):
    claim = parse_claim(
        f"metric={write('d.csv', ',0,1.5,007' + chr(10) + '0,0,1,1' + chr(10) + '1.5,1,0,1' + chr(10) + '007,1,1,0')}"
    )
    (pair,) = parse_pairs("0,1.5")
    assert claim.for_pair(pair.x, pair.x_prime) == PureDP(1.0)
    assert claim.for_pair(0, "007") == PureDP(1.0)


def test_csv_coordinates_read_as_euclidean_distance_or_as_places(write):
    plane = read_metric(write("plane.csv", "id,x,y\no,0,0\np,3,4\n"), scale=0.1)
    assert plane("o", "p") == EuclideanMetric(0.1)((0, 0), (3, 4))
    places = read_metric(write("places.csv", "id,lat,lon\nParis,48.8566,2.3522\nBerlin,52.52,13.405\n"), scale=0.01)
    assert places("Paris", "Berlin") == pytest.approx(GeoMetric(0.01)((48.8566, 2.3522), (52.52, 13.405)), rel=1e-12)


def test_json_matrices_and_coordinates_read(write):
    own = read_metric(write("d.json", {"ids": ["a", "b"], "matrix": [[0, "inf"], ["inf", 0]]}))
    assert own("a", "b") == math.inf
    numbered = read_metric(write("n.json", {"matrix": [[0, 2], [2, 0]], "scale": 0.5}), scale=10)
    assert numbered(0, 1) == 10.0
    line = read_metric(write("c.json", {"ids": [[0, 0], [1, 1]], "coordinates": [[0], [7]]}))
    assert line([0, 0], [1, 1]) == 7.0
    places = read_metric(write("g.json", {"coordinates": [[0, 0], [0, 90]], "metric": "geo", "scale": 1e-3}))
    assert places(0, 1) == pytest.approx(10.0075, abs=1e-3)  # a quarter of the circumference, 10 007.5 km


def test_a_byte_order_mark_and_empty_lines_are_passed_over(write):
    assert read_metric(write("d.csv", "\ufefffrom,a,b\n\na,0,1\nb,1,0\n\n"))("a", "b") == 1.0


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.csv", "", r"metric must be a CSV file with a row of names and a row a point, got 'd\.csv'\."),
        ("d.csv", "from,a,b\na,0,1\nb,1\n", r"metric must have 3 cells in each row, got 2 at row 3 of 'd\.csv'\."),
        ("d.csv", "from,a,b\nb,0,1\na,1,0\n", r"the same ids in its first row and column, .*, got .* at 'd\.csv'\."),
        ("d.csv", "f,a,b\na,0,1\nb,2,0\n", r"metric violates symmetry: .* This was read from 'd\.csv'\."),
        (
            "d.csv",
            "f,a,b,c\na,0,1,3\nb,1,0,1\nc,3,1,0\n",
            r"triangle inequality: .* Use metric\.closure\(\) to repair it\. This was read from 'd\.csv'\.",
        ),
        (
            "d.csv",
            "id,x\na,0\na,1\n",
            r"ids must be unique, got 'a' at positions 0 and 1\. This was read from 'd\.csv'\.",
        ),
        ("d.csv", "id,lat,lon\na,95,0\nb,0,0\n", r"latitude in \[-90, 90\], got .* This was read from 'd\.csv'\."),
        (
            "d.json",
            [[0, 1], [1, 0]],
            r"must be a JSON object with `matrix` or `coordinates`, got \[\[0, 1\], \[1, 0\]\] at",
        ),
        ("d.json", {"matrix": [[0]], "coordinates": [[0]]}, r"must be a JSON object with `matrix` or `coordinates`"),
        (
            "d.json",
            {"matrix": [[0]], "metric": "geo"},
            r"`metric` must be 'euclidean' or 'geo', .*, got 'geo' at 'd\.json'\.",
        ),
        ("d.json", {"coordinates": [[0]], "metric": "l1"}, r"`metric` must be 'euclidean' or 'geo', .*, got 'l1' at"),
        (
            "d.json",
            {"matrix": [[0, 1]]},
            r"matrix must be square with at least one point, got shape \(1, 2\)\. This was read",
        ),
        ("d.json", {"matrix": [[0]], "ids": "a"}, r"`ids` must be a list, got 'a' at 'd\.json'\."),
        (
            "d.json",
            {"matrix": [[0]], "ids": ["a", "b"]},
            r"ids must be as many as points, got 2 ids for 1 points\. This was read from 'd\.json'",
        ),
        ("d.json", {"matrix": [[0]], "scale": 0}, r"scale must be in \(0, inf\), got 0 at 'd\.json'\."),
    ],
)
def test_a_malformed_metric_file_gets_one_message_that_names_it(write, name, content, message):
    with pytest.raises(UsageError, match=message):
        parse_claim(f"metric={write(name, content)}")


def test_a_file_that_is_not_utf_8_is_refused(write, tmp_path):
    (tmp_path / "d.csv").write_bytes(b"id,x\n\xff,1\n")
    with pytest.raises(UsageError, match=r"metric must be a file in UTF-8, got 'd\.csv' \(byte 5 is not\)\."):
        parse_claim("metric=d.csv")


# --- pairs ---


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("0,1", [(0, 1)]),
        (" 0.5 , 1e-3 ", [(0.5, 1e-3)]),
        ("0,1;1,2", [(0, 1), (1, 2)]),
        ("0,1 ; 1,2 ;", [(0, 1), (1, 2)]),
        ('"a,b","c;d"', [("a,b", "c;d")]),
        ("[0, 1],[1, 1]", [([0, 1], [1, 1])]),
        ('{"age": 30}, {"age": 31}', [({"age": 30}, {"age": 31})]),
        ("true,null", [(True, None)]),
        ("[],[1]", [([], [1])]),
        ("0,-Infinity", [(0, -math.inf)]),
    ],
)
def test_every_form_of_pairs_reads(text, pairs):
    assert [(pair.x, pair.x_prime) for pair in parse_pairs(text)] == pairs


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@bounded
@given(st.lists(st.tuples(json_values, json_values), min_size=1, max_size=4))
def test_any_json_values_make_pairs(pairs):
    text = ";".join(f"{json.dumps(x)},{json.dumps(x_prime)}" for x, x_prime in pairs)
    assert [(pair.x, pair.x_prime) for pair in parse_pairs(text)] == pairs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"pairs must be `x,x'` as JSON values, several separated by `;`, or a \.json file, got '' at its end\."),
        ("a,b", r"got 'a,b' at character 1\. Write `\"a\",\"b\"`\."),
        ("Ada Lovelace,Bob; 0,1", r"Write `\"Ada Lovelace\",\"Bob\"; 0,1`\."),
        ("(0,1)", r"got '\(0,1\)' at character 1\. Write `0,1`\."),
        ("[('a',1),('b',2)]", r"Write `\"a\",1; \"b\",2`\."),
        ("{a},b", r"got '{a},b' at character 1\. Write strings in double quotes, and close every bracket\."),
        ("0", r"got '0' at its end\. A pair is two inputs, with a ',' between them\."),
        ("[0,1]", r"got '\[0,1\]' at its end\. Write `0,1` or `\[0, 1\],x'` if that is one input\."),
        ("[[0,1]]", r"at its end\. Write `0,1` or `\[\[0, 1\]\],x'` if that is one input\."),
        ("[[1,2],[1,3]]", r"at its end\. Write `\[1, 2\],\[1, 3\]` or `1,2; 1,3` or .* if that is one input\."),
        ("0 1", r"got '0 1' at character 3\. A ',' is due there\."),
        ("0,", r"got '0,' at its end\. Write strings"),
        ("0,1,2", r"got '0,1,2' at character 4\. A ';' is due there\."),
        ("0,1;2", r"got '0,1;2' at its end\. A pair is two inputs"),
        ("0,1;;2,3", r"got '0,1;;2,3' at character 5\."),
        ("[0,1", r"got '\[0,1' at character 1\."),
        ("no.json", r"^pairs must be a readable file, got 'no\.json' \(No such file or directory\)\."),
    ],
)
def test_malformed_pairs_get_one_message_that_names_the_place(text, message):
    with pytest.raises(UsageError, match=message):
        parse_pairs(text)


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ([[0, 1], [1, [2]]], ["0|1", "1|[2]"]),
        ({"inputs": [0, 1, 2], "pairs": "all"}, ["0|1", "0|2", "1|2"]),
        ({"inputs": [0, 1, 2]}, ["0|1", "0|2", "1|2"]),
        ({"inputs": [0, 1, 2], "pairs": [[2, 0]], "ids": ["a", "b", "c"]}, ["c|a"]),
        ({"inputs": [[0], [1]], "ids": ["none", "one"]}, ["none|one"]),
    ],
)
def test_every_form_of_a_pairs_file_reads(write, content, ids):
    assert [pair.id for pair in parse_pairs(write("pairs.json", content))] == ids


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", r"pairs must be JSON, got 'p\.json': Expecting"),
        (3, r'pairs must be a JSON file \[\[x, x\'\], \.\.\.\] or \{"inputs".*, got 3 at \'p\.json\'\.'),
        ({"inputs": [0]}, r"inputs must be at least two, got 1 at 'p\.json'\."),
        ({"inputs": [0, 1], "ids": "ab"}, r"`ids` must be a list of texts, got 'ab' at 'p\.json'\."),
        ({"inputs": [0, 1], "ids": ["a"]}, r"ids must be as many as inputs, got 1 ids for 2 inputs at 'p\.json'\."),
        ({"inputs": [0, 1], "ids": ["a", "a"]}, r"ids must be unique, got 'a' twice at 'p\.json'\."),
        (
            {"inputs": [0, 1], "pairs": "some"},
            r"`pairs` must be 'all' or a list of positions \[i, j\], got 'some' at 'p",
        ),
        (
            {"inputs": [0, 1], "pairs": [[0, 2]]},
            r"`pairs`\[0\] must be two different positions .* from 0 to 1, got \[0, 2\]",
        ),
        (
            {"inputs": [0, 1], "pairs": [[1, 1]]},
            r"`pairs`\[0\] must be two different positions .*, got \[1, 1\] at 'p\.json'",
        ),
    ],
)
def test_a_malformed_pairs_file_gets_one_message_that_names_it(write, content, message):
    with pytest.raises(UsageError, match=message):
        parse_pairs(write("p.json", content))


@pytest.mark.parametrize(
    "text", ["eps=1e400", "eps=1e999,delta=1e-6", "rho=1e400", "mu=-1e400", "eps=1,delta=1e-400", "eps=.01e-323"]
)
def test_a_number_beyond_the_doubles_is_no_infinity_or_zero_that_was_meant(text):
    with pytest.raises(UsageError, match="must"):
        parse_claim(text)
    assert parse_claim("eps=inf") == PureDP(math.inf)
    assert parse_claim("eps=0.0e5,delta=-.0") == ApproxDP(0.0, 0.0)


@pytest.mark.parametrize("cell", ["1e400", "1e-400"])
def test_a_budget_beyond_the_doubles_is_no_infinity_or_zero_that_was_meant(write, cell):
    with pytest.raises(UsageError, match=f"metric must be a number that a double holds, or inf, got '{cell}' at row 2"):
        read_metric(write("d.csv", f"from,a,b\na,0,{cell}\nb,{cell},0\n"))
    content = f'{{"matrix": [[0, {cell}], [{cell}, 0]]}}'
    with pytest.raises(UsageError, match=f"metric must be JSON, got .*d.json': {cell} is beyond what a double holds"):
        read_metric(write("d.json", content))
    with pytest.raises(UsageError, match=f"at character 3. {cell} is beyond what a double holds"):
        parse_pairs(f"0,{cell}")
    with pytest.raises(UsageError, match=f"{cell} is beyond what a double holds"):
        parse_pairs(write("p.json", f"[[0, {cell}]]"))
