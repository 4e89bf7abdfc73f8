"""Recorded noise: what is proved, what is only implied, what is refused; against closed forms and plain runs."""

import copy
import ctypes
import itertools
import math
import random
import secrets
import sys
import time
import types
from random import gauss

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.symbolic.interception import recorded
from dpaudit.symbolic.laws import Law, combined
from dpaudit.symbolic.program_state import FUNCTIONS
from dpaudit.symbolic.tape import Tape

SEED = 7


def of(mechanism, pair=(0.0, 1.0), claim="eps=1"):
    return dpaudit.record_noise(mechanism, [pair], claim, seed=SEED)


# One mechanism, x + Laplace noise of scale 1/2 (loss 2), from every generator that is intercepted.
SOURCES = {
    "numpy generator": lambda x, rng: x + rng.laplace(scale=0.5),
    "location": lambda x, rng: rng.laplace(x, 0.5),
    "default_rng": lambda x: x + np.random.default_rng().laplace(scale=0.5),
    "module": lambda x: x + np.random.laplace(scale=0.5),  # noqa: NPY002
    "RandomState": lambda x: x + np.random.RandomState().laplace(scale=0.5),
    "seed": lambda x, seed: x + np.random.default_rng(seed).laplace(scale=0.5),
    "two exponentials": lambda x: x + random.expovariate(2.0) - random.expovariate(2.0),
    "array": lambda x, rng: (np.array([x, 0.0]) + rng.laplace(scale=0.5, size=2)).tolist(),
    "in place": lambda x, rng: _in_place(x, rng),
    "dictionary": lambda x, rng: {"total": x + rng.laplace(scale=0.5), "note": "fixed"},
    "scaled": lambda x, rng: (2.0 * x + rng.laplace(scale=1.0)) / 2.0,
    "entropy": lambda x: x + np.random.default_rng(secrets.randbits(64)).laplace(scale=0.5),
}


def _in_place(x, rng):
    total = np.full(2, x)
    total += rng.laplace(scale=0.5, size=2)
    return total[:1]


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "entropy"])
def test_the_loss_of_additive_noise_is_exact_wherever_the_noise_is_from(source):
    result = of(SOURCES[source])
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(2.0, rel=1e-12)
    assert result.pairs[0].places[0].startswith("test_recording_noise.py:")
    assert of(SOURCES[source], claim="eps=2").grade == "same"


def test_noise_seeded_from_entropy_is_no_constant():
    # A look at entropy is not followed: nothing is proved, and nothing is called a constant.
    assert of(SOURCES["entropy"], claim="eps=2").grade != "proved"


def test_a_function_taken_by_name_is_followed():
    result = of(lambda x: x + gauss(0.0, 0.5), claim="mu=1")
    assert result.grade == "proved" and "2 standard deviations" in result.pairs[0].statement


def held():
    return np.random.laplace, np.asarray, np.random.RandomState, random.gauss, random.Random, secrets.choice, math.log


HELD = held()


def shows_real_functions(x, rng):
    is_real = all(one is other for one, other in zip(held(), HELD, strict=True))
    is_real &= type(np.random.RandomState()) is np.random.RandomState and repr(np.random.laplace) == repr(HELD[0])
    return rng.laplace() + (x if is_real else 0.0)


def test_a_program_sees_the_real_functions_and_what_libraries_see_is_put_back():
    assert of(shows_real_functions, claim="eps=0.9").grade == "proved"
    law = vars(stats.laplace).get("rvs")
    with pytest.raises(ZeroDivisionError), recorded(Tape(SEED, 0)):
        assert not any(one is other for one, other in zip(held(), HELD, strict=True) if other is not np.asarray)
        assert isinstance(np.random.mtrand._rand, np.random.RandomState) and gauss is HELD[3]
        assert vars(stats.laplace)["rvs"] is not law
        raise ZeroDivisionError
    assert vars(stats.laplace).get("rvs") is law and all(one is other for one, other in zip(held(), HELD, strict=True))


# Decisions: losses of finite mechanisms, exactly.


def test_randomised_response_has_the_loss_of_its_probabilities():
    result = of(lambda bit, rng: bit if rng.random() < 0.75 else 1 - bit, (0, 1))
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(math.log(3.0), rel=1e-12)


def test_gumbel_noise_and_the_largest_is_the_exponential_mechanism():
    # P(0) = 1/2 and e^2 / (1 + e^2).
    result = of(lambda x, rng: np.argmax(np.array([x, 0.0]) + rng.gumbel(scale=0.5, size=2)), claim="eps=0.5")
    assert result.pairs[0].loss == pytest.approx(math.log(0.5 * (1.0 + math.exp(2.0))), rel=1e-9)


def test_a_clip_is_decided_and_keeps_the_loss_of_its_tail():
    result = of(lambda x, rng: min(max(x + rng.laplace(scale=0.5), -3.0), 4.0))
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(2.0, rel=1e-9)
    assert of(lambda x, rng: min(max(x + rng.laplace(scale=0.5), -3.0), 4.0), claim="eps=2").grade != "proved"


@pytest.mark.parametrize(
    "law",
    [Law(family, 0.7) for family in ("laplace", "normal", "gumbel", "logistic", "exponential", "uniform", "cauchy")],
    ids=lambda law: law.family,
)
def test_a_mass_is_the_integral_of_its_density(law):
    from scipy.integrate import quad

    for low, high in ((-1.0, 0.3), (0.1, 0.6), (0.2, 3.0)):
        ends = sorted({low, high, *(point for point in (0.0, 0.7) if low < point < high)})
        parts = [quad(lambda z: math.exp(law.log_density(z)), a, b)[0] for a, b in itertools.pairwise(ends)]
        assert law.mass(low, high) == pytest.approx(math.fsum(parts), abs=1e-8)  # quad's own tolerance


@pytest.mark.parametrize("law", [Law("geometric", 0.3), Law("two-sided geometric", 0.6)], ids=lambda law: law.family)
def test_a_mass_of_whole_numbers_is_the_sum_of_their_probabilities(law):
    for low, high in ((-3.0, 2.0), (0.0, 4.5), (2.0, math.inf), (-math.inf, -1.0)):
        numbers = [k for k in range(-200, 201) if low < k <= high]
        chances = [math.exp(law.log_density(float(k))) for k in numbers]
        assert law.mass(low, high) == pytest.approx(math.fsum(chances), abs=1e-12)


def test_noises_without_a_common_name_are_not_combined():
    assert combined([(1.0, Law("laplace", 1.0)), (1.0, Law("laplace", 1.0))]) is None
    assert combined([(1.0, Law("exponential", 1.0)), (-1.0, Law("exponential", 2.0))]) is None


# Sound mechanisms that look like faulty ones: never accused.


def sparse_vector(answers, rng):
    threshold = 0.5 + rng.laplace(scale=2.0)
    for k, answer in enumerate(answers):
        if answer + rng.laplace(scale=4.0) >= threshold:
            return k
    return -1


def permute_and_flip(scores, rng):
    top = max(scores)
    for k in rng.permutation(len(scores)):
        if rng.random() <= math.exp(0.5 * (scores[k] - top)):
            return int(k)
    return -1


def rejection(x, rng):
    while True:
        noisy = x + rng.laplace(scale=2.0)
        if -5.0 <= noisy <= 5.0:
            return noisy


SOUND = {
    "sparse vector": (sparse_vector, ([0.0] * 5, [1.0] * 5), "eps=1"),
    "permute and flip": (permute_and_flip, ([0.0, 1.0, 2.0], [1.0, 0.0, 2.0]), "eps=1"),
    "rejection": (rejection, (0.0, 1.0), "eps=1.2"),  # 0.5, and the logarithm of the ratio of two masses
    "noisy max": (
        lambda scores, rng: np.argmax(np.asarray(scores) + rng.laplace(scale=2.0, size=3)),
        ([0.0, 1.0, 2.0], [1.0, 0.0, 2.0]), "eps=1",
    ),
    "post-processing": (lambda x, rng: round(max(x + rng.laplace(), 0.0)), (0.0, 1.0), "eps=1"),
    "public constants": (lambda x, rng: (x + rng.laplace(), "v1", 3, None), (0.0, 1.0), "eps=1"),
    "public projection": (lambda x, rng: np.random.default_rng(1).normal() * (x + rng.laplace()), (0.0, 1.0), "eps=1"),
    "isinstance": (lambda x, rng: _by_type(x, x + rng.laplace()), (0.0, 1.0), "eps=1"),
    "subtracted later": (lambda x, rng: (rng.laplace() - 3.0) + x, (0.0, 1.0), "eps=1"),
    "rounding": (lambda x, rng: sum([0.1] * int(10 * x + 10)) - 0.1 * int(10 * x + 10), (0.0, 1.0), "eps=1"),
}  # fmt: skip


def _by_type(x, noisy):
    return noisy if isinstance(noisy, float) else x


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_mechanism_is_not_accused(name):
    mechanism, pair, claim = SOUND[name]
    result = of(mechanism, pair, claim)
    assert result.grade != "proved" and result.side_finding().status != "found", result.pairs[0].statement


def test_composition_above_the_claim_is_implied_and_not_found():
    def of_two_scales(x, rng):  # the scale of a draw is not shown: between 1 and 2 nats
        return x + rng.laplace(scale=1.0 if rng.random() < 0.9 else 0.5)

    result = of(of_two_scales)
    assert result.grade == "implied" and result.side_finding().status == "nothing_found"
    assert "implied by what was recorded" in result.pairs[0].statement and result.pairs[0].implied == pytest.approx(2)


def test_one_half_of_a_randomised_rounding_is_not_called_a_number_without_noise():
    # floor(x + u) with x in [0, 1] is a coin of probability x; its loss is that of the coin, here log 3.
    result = of(lambda x, rng: 1 if x + rng.random() >= 1.0 else 0, (0.25, 0.75), "eps=1.2")
    assert result.grade != "proved" and result.pairs[0].loss == pytest.approx(math.log(3.0))


# Faults.


def twice(x, rng):
    noise = rng.laplace(scale=10.0)
    return x + noise, 2.0 * x + noise


OLD_NUMBER = np.random.RandomState(42).laplace()
FAULTS = {
    "noise used twice": (twice, (0.0, 1.0), "have the same noise"),
    "a fixed seed": (lambda x: x + np.random.default_rng(42).laplace(scale=5.0), (0.0, 1.0), "without noise"),
    "an old generator": (lambda x: x + np.random.RandomState(42).laplace(), (0.0, 1.0), f"is {OLD_NUMBER:.9g} on x"),
    "a scale of the data": (
        lambda data, rng: sum(data) + rng.laplace(scale=1.0 / len(data)),
        ([0.5], [0.5, 0.5]),
        "the scale of the laplace noise",
    ),
    "an exception": (lambda x, rng: 1.0 / x + rng.laplace(), (0.0, 1.0), "ZeroDivisionError is raised"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_proved_in_its_words(name):
    mechanism, pair, said = FAULTS[name]
    result = of(mechanism, pair)
    assert result.grade == "proved" and said in result.pairs[0].statement
    assert any(note.kind == "seed" for note in result.pairs[0].notes) == (name in ("a fixed seed", "an old generator"))
    assert result.pairs[0].loss == math.inf


def test_several_laplace_numbers_together_break_an_approximate_claim():
    pytest.importorskip("dp_accounting", reason="the composed profile needs dp-accounting")
    pair = (np.zeros(20), np.full(20, 0.5))
    result = of(lambda x, rng: x + rng.laplace(size=20), pair, "eps=3,delta=0.001")
    assert result.grade == "proved" and "delta" in result.pairs[0].statement


@pytest.mark.parametrize(("rate", "grade"), [(0.5, "proved"), (0.04, "same")])
def test_a_subsampled_gaussian_is_held_to_the_divergence_of_its_mixture(rate, grade):
    # delta at epsilon 0 is rate * (2 Phi(5/2) - 1) = 0.9876 rate: the distance of N(0, 0.2) and N(1, 0.2).
    def sampled(data, rng):
        return sum(value for value in data if rng.random() < rate) + rng.normal(scale=0.2)

    result = of(sampled, ([], [1.0]), "eps=0,delta=0.04")
    assert (result.grade == "proved") == (grade == "proved"), result.pairs[0].statement
    if grade == "proved":
        assert float(result.pairs[0].statement.split("delta ")[-1].split()[0]) == pytest.approx(0.9876 * rate, rel=1e-3)


@pytest.mark.parametrize(("claim", "grade"), [("rho=0.5", "same"), ("rho=0.49", "proved"), ("mu=1", "same")])
def test_a_gaussian_is_held_to_its_divergence(claim, grade):
    assert of(lambda x, rng: x + rng.normal(), claim=claim).grade == grade


# What is refused, or cannot be known.


def test_randomness_that_is_not_recorded_is_noticed():
    stream = np.random.default_rng(1)
    result = of(lambda x: x + stream.laplace(scale=0.1))
    assert result.grade != "proved" and "randomness that is not recorded" in result.pairs[0].unproved


NUMPY_STREAM, PYTHON_STREAM = np.random.default_rng(3), random.Random(3)
HIDDEN = {
    "numpy": lambda: NUMPY_STREAM.random(),
    "python": lambda: PYTHON_STREAM.random(),
    "bits": lambda: np.random.Generator(np.random.PCG64()).random(),
    "clock": lambda: random.Random(time.time_ns()).random(),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_rare_lie_of_a_hidden_generator_is_not_taken_for_a_constant(name):
    # Randomised response of epsilon 20.7: two runs almost never differ.
    result = of(lambda bit: bit if HIDDEN[name]() < 1.0 - 1e-9 else 1 - bit, (0, 1), "eps=21")
    assert result.grade != "proved" and result.pairs[0].unproved


def seeded(x, seed):
    return x + stats.laplace.rvs(scale=0.5, random_state=seed)


def test_a_seed_for_scipy_is_a_constant_and_one_that_is_handed_in_is_none():
    constant = of(lambda x: seeded(x, 3))
    assert constant.grade == "proved" and math.isinf(constant.pairs[0].loss)
    handed = of(seeded)
    assert handed.grade == "proved" and handed.pairs[0].loss == pytest.approx(2.0)


SYSTEM = random.SystemRandom()


@pytest.mark.parametrize("draw", [np.random.sample, np.random.random_sample, lambda: getattr(np.random, "ranf")()])  # noqa: B009
def test_a_seed_makes_the_draws_of_all_functions_constants(draw):
    assert of(lambda x: np.random.seed(3) or x + draw()).grade == "proved"  # noqa: NPY002
    assert of(lambda x: x + 0.0 * draw() + np.random.laplace(), claim="eps=1").grade == "same"  # noqa: NPY002


@pytest.mark.parametrize(("claim", "grade"), [("eps=21", "hint"), ("eps=20.7", "proved")])  # ln((1 - 1e-9) / 1e-9)
def test_a_generator_of_the_system_is_followed_whenever_it_was_made(claim, grade):
    assert of(lambda bit: bit if SYSTEM.random() < 1.0 - 1e-9 else 1 - bit, (0, 1), claim).grade == grade


def test_a_program_is_refused():
    subject = types.SimpleNamespace(is_program=True, sample=lambda data, size, rng: [data], name="a program")
    with pytest.raises(UsageError, match="mechanism must run in this process to be recorded, got"):
        dpaudit.record_noise(subject, [(0, 1)], "eps=1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"claim": 3, "pairs": [(0, 1)]}, "claim must be a Claim or a string such as 'eps=1', got 3"),
        ({"claim": "eps=1"}, "pairs must be given"),
        ({"claim": "eps=1", "pairs": [(0, 1)], "seed": -1}, "seed must be a non-negative integer, got -1"),
    ],
)
def test_bad_input_has_one_clear_message(arguments, message):
    with pytest.raises(UsageError, match=message):
        dpaudit.record_noise(lambda x, rng: x + rng.laplace(), **arguments)


# Other libraries.


@pytest.mark.parametrize("state", [0, np.random.RandomState(7), np.random.default_rng(7)], ids=["seed", "old", "new"])
def test_noise_of_scipy_from_a_seed_is_no_noise(state):
    from scipy import stats

    result = of(lambda x: x + stats.laplace.rvs(scale=1.0, random_state=copy.deepcopy(state)), claim="eps=1.1")
    assert result.grade != "same"


def test_noise_of_scipy_from_the_generator_that_is_given_is_followed():
    from scipy import stats

    def release(x, rng):
        return x + stats.laplace.rvs(scale=1.0, random_state=rng)

    assert dpaudit.record_noise(release, [(0, 1)], "eps=1.1", seed=1).grade == "same"


def test_diffprivlib_is_followed():
    mechanisms = pytest.importorskip("diffprivlib.mechanisms", reason="diffprivlib is not installed")

    def half(x):
        return mechanisms.Laplace(epsilon=1.0, sensitivity=0.5).randomise(x)

    result = of(half)
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(2.0)
    assert of(half, claim="eps=2").grade == "same"


def test_python_dp_is_followed():
    numerical = pytest.importorskip("pydp.algorithms.numerical_mechanisms", reason="python-dp is not installed")

    def half(x):
        return numerical.LaplaceMechanism(epsilon=1.0, sensitivity=0.5).add_noise(float(x))

    result = of(half)
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(2.0)


@pytest.fixture
def dp():
    dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    dp.enable_features("contrib")
    return dp


def test_opendp_noise_of_doubles_is_followed(dp):
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    laplace, gaussian = dp.m.make_laplace(*space, scale=0.5), dp.m.make_gaussian(*space, scale=1.0)
    for call in (laplace, laplace.invoke, lambda x: x + dp.m.make_laplace(*space, scale=0.5)(0.0)):
        assert of(call).grade == "proved" and of(call).pairs[0].loss == pytest.approx(2.0)
        assert of(call, claim="eps=2").grade == "same"
    delta = math.erf(0.5 / math.sqrt(2.0))  # of unit noise and a distance of 1, at epsilon 0
    assert of(gaussian, claim=f"eps=0,delta={delta * 0.999}").grade == "proved"
    assert of(gaussian, claim=f"eps=0,delta={delta * 1.001}").grade == "same"


def test_opendp_noise_of_a_list_is_followed(dp):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    laplace = dp.m.make_laplace(*space, scale=0.5)
    result = of(lambda x: laplace([x, 0.0, x]))
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(4.0)


def test_other_opendp_measurements_are_recorded_and_not_accused(dp):
    whole = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=0.5)
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    coarse = dp.m.make_laplace(*space, scale=0.5, k=0)
    sized = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=1), dp.symmetric_distance()
    chain = sized >> dp.t.then_sum() >> dp.m.then_laplace(scale=0.5)
    for call in (lambda x: whole(int(x)), coarse, lambda x: chain([x])):
        result = of(call)
        assert result.grade != "proved" and "opendp measurement(map(1)=" in result.pairs[0].trace[0].x


DRAWN = {  # by a library: what it imports, its noise, and what x = 0 and 1 lose by it
    "a class by name": ("from numpy.random import RandomState", "RandomState().laplace(scale=0.5)", 2.0),
    "a function by name": ("from random import expovariate", "expovariate(2.0) - expovariate(2.0)", 2.0),
    "a function of numpy": ("import numpy as np", "np.random.laplace(scale=0.5)", 2.0),
    "a generator of numpy": ("import numpy as np", "np.random.default_rng().laplace(scale=0.5)", 2.0),
    "a generator of Python": ("import random", "random.Random().expovariate(2.0)", math.inf),
    "a function of Python": ("import random", "random.gauss(0.0, 0.5)", math.inf),
    "a seed": ("import numpy as np", "np.random.seed(3) or np.random.laplace(scale=0.5)", math.inf),
    "a generator that is given": (
        "import numpy as np\ndef own(rng): return rng if isinstance(rng, np.random.RandomState) else 0",
        "own(np.random.RandomState()).laplace(scale=0.5)",
        2.0,
    ),
    "a class of its own": (
        "import random\nmake = lambda: type('Own', (random.Random,), {})(3)",
        "make().random() + random.expovariate(2.0)",
        math.inf,
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_library_that_draws_itself_is_followed(monkeypatch, name):
    library, (imports, noise, loss) = types.ModuleType("some_library"), DRAWN[name]
    library.__file__ = "/somewhere/site-packages/some_library.py"
    exec(compile(f"{imports}\ndef noise(): return {noise}", library.__file__, "exec"), vars(library))
    monkeypatch.setitem(sys.modules, "some_library", library)
    before = dict(vars(library))
    result = of(lambda x: x + library.noise())
    assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(loss)
    assert vars(library) == before and (loss > 2.0 or of(lambda x: x + library.noise(), claim="eps=2").grade == "same")


@pytest.mark.parametrize("is_series", [False, True])
def test_tables_of_noisy_counts_are_recorded_as_audits_read_them(is_series):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame({"age": [1, 2, 2]})

    def counts(table, rng, ages=(1, 2)):
        found = table.groupby("age").size()
        found = (found if ages is None else found.reindex(list(ages), fill_value=0)).reset_index(name="count")
        found["count"] += rng.laplace(scale=0.5, size=len(found))
        return found["count"] if is_series else found

    def clipped(table, rng):
        return counts(table, rng).clip(lower=0.0)

    fewer, place = table.iloc[:-1], "output[1]" if is_series else "output['count'][1]"
    for call in (counts, clipped):
        result = of(call, (table, fewer))
        assert result.grade == "proved" and result.pairs[0].loss == pytest.approx(2.0)
        assert place in result.pairs[0].statement and of(call, (table, fewer), "eps=2").grade == "same"
    result = of(lambda table, rng: counts(table, rng, None), (table, table.iloc[1:]), "eps=9")
    assert result.grade == "proved" and result.pairs[0].loss == math.inf


def test_what_an_object_makes_anew_for_each_reader_is_no_change_of_it():
    held = ctypes.pointer(ctypes.c_double(0.5))  # its `contents`
    assert of(lambda x, rng: x + rng.laplace(scale=0.5 * bool(held))).grade == "proved"


def test_functions_with_attributes_have_them():
    assert all(hasattr(one, "__dict__") for one in (np.mean, np.random.default_rng) if isinstance(one, FUNCTIONS))
    assert of(_asarray).grade == "proved"


def _asarray(x, rng, convert=np.asarray):
    return convert(x) + rng.laplace(scale=0.5)


def test_functions_of_torch_are_recorded_where_it_is_imported(monkeypatch):
    torch = types.ModuleType("torch")
    torch.normal = lambda mean, std: mean + std * 0.3
    monkeypatch.setitem(sys.modules, "torch", torch)
    result = of(lambda x: x + torch.normal(0.0, 1.0 + x))
    assert result.grade != "proved" and result.pairs[0].notes[0].kind == "parameters"
    assert "torch normal" in result.pairs[0].trace[0].x


# Faces.


def test_the_trace_is_printed_in_80_columns_and_as_html(tmp_path):
    source = tmp_path / "clipped.py"
    source.write_text("def total(values, rng):\n    return sum(values) + rng.laplace(scale=1.0)\n")
    page = tmp_path / "trace.html"
    arguments = ["greybox", f"{source}:total", "--claim", "eps=1", "--pairs", "[0], [5]", "--seed", "1", "--trace"]
    run = CliRunner().invoke(main, [*arguments, "--trace-html", str(page)])
    assert run.exit_code == 1 and "Proved by what was recorded" in run.output and "clipped.py:2" in run.output
    assert "[0]|[5]: proved." in run.output and "mplied" not in run.output  # one finding has one grade
    table = run.output[run.output.index("  x  ") :].splitlines()
    assert all(len(line) <= 80 for line in table)
    differing = [line.strip().split(None, 2) for line in table if line.strip().startswith("*")]
    assert differing == [["*", "returns", "returns (other values)"]]
    assert "<td>numpy laplace</td>" in page.read_text() and "(scale=" not in page.read_text()
    assert '<div class="texts">' in page.read_text()  # before, calls stood to the right as numbers do


def test_a_pair_of_which_nothing_is_known_has_the_colour_of_no_verdict(tmp_path):
    """Before, its page had the colour of a promise that nothing was found against."""
    (tmp_path / "texts.py").write_text("def total(values, rng):\n    return str(values[0] + rng.laplace(scale=5))\n")
    page = tmp_path / "trace.html"
    arguments = ["greybox", f"{tmp_path}/texts.py:total", "--claim", "eps=1", "--pairs", "[0], [5]", "--seed", "1"]
    assert "not recorded" in CliRunner().invoke(main, [*arguments, "--trace-html", str(page)]).output
    assert 'class="verdict inconclusive-box"' in page.read_text()


def test_values_are_shown_only_where_they_are_asked_for(tmp_path):
    source = tmp_path / "clipped.py"
    source.write_text("def total(values, rng):\n    return sum(values) + rng.laplace(scale=0.125)\n")
    page = tmp_path / "trace.html"
    arguments = ["greybox", f"{source}:total", "--claim", "eps=1", "--pairs", "[0], [5]", "--seed", "1", "--trace"]
    texts = {}
    for options in ((), ("--with-values",)):
        run = CliRunner().invoke(main, [*arguments, "--trace-html", str(page), *options])
        texts[options] = run.output[run.output.index("Proved by") :] + page.read_text()
    assert "0.125" not in texts[()] and "moves by" not in texts[()] and "clipped.py:2" in texts[()]
    assert texts["--with-values",].count("laplace(scale=0.125)") == 4 and "moves by 5" in texts["--with-values",]


def test_what_is_only_implied_is_no_failure_of_the_command(tmp_path):
    source = tmp_path / "sound.py"
    source.write_text("def answer(values):\n    import random\n    return sum(values) + random.gauss(0, 1) > 0\n")
    run = CliRunner().invoke(main, ["greybox", f"{source}:answer", "--claim", "mu=1", "--pairs", "[0], [1]", "--trace"])
    assert run.exit_code == 0 and "Proved" not in run.output


def test_the_pairs_come_back_in_the_order_of_what_was_found():
    pairs = [(0.0, 1.0), (0.0, 3.0), (0.0, 2.0)]
    result = dpaudit.record_noise(lambda x, rng: x + rng.laplace(), pairs, "eps=1", seed=1)
    assert [pair.x_prime for pair in result.ranked] == [3.0, 2.0, 1.0]
    assert [pair.loss for pair in result.pairs] == pytest.approx([3.0, 2.0, 1.0])


def test_a_form_that_both_inputs_have_is_not_said_to_be_that_of_one():
    def either(x, rng):
        return ("a", x) if rng.random() < 0.01 else x if rng.random() < 0.6 else 1 - x

    on_both = of(either, (0, 1)).pairs[0].statement
    assert "is 0 on x and 1 on x_prime, without noise" in on_both and "whatever the noise" not in on_both
    on_one = of(lambda x, rng: ("a",) if x > 0 and rng.random() < 0.01 else 0, (0, 1)).pairs[0].statement
    assert "with probability 0.01 on x_prime and 0 on x" in on_one and "whatever the noise" not in on_one
