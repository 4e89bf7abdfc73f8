"""Programs whose executions depend on more than their input and their draws: a leak that waits for something.

Each is private on most calls, and gives its input away where something else is as it wants: a count of calls, a clock,
an address, the order of a set, a setting of the process. `PROGRAMS` makes each anew, so that none has been called.
"""

from __future__ import annotations

import copyreg
import functools
import json
import linecache
import operator
import statistics
import string
import warnings

import hidden_state_programs
import kept_state_programs
import outside_programs
import process_programs
from scipy import special, stats

THEMES = (process_programs, outside_programs, hidden_state_programs, kept_state_programs)
LIBRARIES = {
    one.__name__.rpartition(".")[2]: one for one in (copyreg, json, special, statistics, stats, string, warnings)
}


# Kept between calls where these stand: what is done first, what is done in each call, and the place of the count.
COUNTS = {
    "global_number": ("", "global COUNT", "COUNT"),
    "slots": ('one = type("Slots", (), {"__slots__": "calls", "__module__": __name__})(); one.calls = 0', "one.calls"),
    "deep": ('inner = [{"of": (Counts(),)}]', 'inner[0]["of"][0].calls'),
    "global_of_pythons": ("import builtins; builtins.of_pythons = [0]", "of_pythons[0]"),
    "class_that_says_it_is_of_typing": (
        'kept = type("Value", (), {"__module__": "typing", "value": [0]})()', "kept.value[0]"),
    "class_that_says_it_is_of_scipy": (
        'kept = type("rv_frozen", (), {"__module__": "scipy.stats.own", "mean": [0]})()', "kept.mean[0]"),
    "dictionary_that_is_imported": (
        'put(np.sctypeDict, "calls", 0)', "from numpy import sctypeDict", 'sctypeDict["calls"]'),
    "law_that_is_imported": ('put(vars(stats.norm), "calls", 0)', "from scipy.stats import norm", "norm.calls"),
    "module_that_is_imported": ('put(vars(np.random), "calls", 0)', "import numpy.random as module", "module.calls"),
    "global_container": ("", 'SHARED["calls"]'),
    "helpers_attribute": ("honest.calls = 0", "honest.calls"),
    "array_element": ("calls = np.zeros(1, dtype=int)", "calls[0]"),
    "view_of_an_array": ("whole = np.zeros(3); part = whole[1:]", "part[0]"),
    "by_a_method_of_all_objects": ("of_all = object.__getattribute__", 'of_all(of, "__globals__")["COUNT"]'),
    "own_modules_attribute": ("", "sys.modules[__name__].COUNT"),
    "in_a_namespace": ("", "BOX.calls"),
    "metadata_of_a_type": ('kind = np.dtype("f8", metadata={"calls": [0]})', 'kind.metadata["calls"][0]'),
    "slice_of_a_list": ("part = slice([0])", "part.stop[0]"),
    "record_of_numpy": ('record = np.zeros(1, dtype=[("calls", int)])[0]', 'record["calls"]'),
    "getter_made_before": ('names = operator.attrgetter("__globals__")', 'names(of)["COUNT"]'),
    "arguments_of_an_exception": ("error = ValueError([0])", "error.args[0][0]"),
    "view_of_a_dictionary": ('known = types.MappingProxyType({"calls": [0]})', 'known["calls"][0]'),
    "attribute_of_a_generator": ("own = random.Random(1); own.calls = 0", "own.calls"),
    "slots_of_a_generator": ("own = OwnRandom(1); own.n = 0", "own.n"),
    "attribute_of_a_librarys_function": ('put(vars(copy.copy), "calls", 0)', "copy.copy.calls"),
    "attribute_of_numpys_function": ('put(vars(np.mean), "calls", 0)', "np.mean.calls"),
    "attribute_of_a_ufunc": (
        'owner = np.add if hasattr(np.add, "__dict__") else np.mean; put(vars(owner), "calls", 0)',
        "owner.calls",
    ),
    "dictionary_of_a_library": ('put(copy._copy_dispatch, "calls", 0)', 'copy._copy_dispatch["calls"]'),
    "decimal_context": ("", "decimal.getcontext().prec"),
    "context_that_is_held": ("context = decimal.Context(prec=EVERY)", "context.prec"),
    "context_of_the_library": ("", "decimal.ExtendedContext.prec"),
    "bytes_of_a_buffer": ("calls = bytearray(1)", "calls[0]"),
    "attribute_of_a_librarys_class": (
        "half = fractions.Fraction(1, 2); fractions.Fraction.calls = 0",
        "type(half).calls",
    ),
    "attribute_of_an_array": ("numbers = np.zeros(1).view(an_own(np.ndarray)); numbers.calls = 0", "numbers.calls"),
    "attribute_of_a_cache": ("known = functools.lru_cache(lambda value: value); known.calls = known(0)", "known.calls"),
    "attribute_of_a_member": ('Kind = enum.Enum("Kind", {"ONE": 1}); Kind.ONE.calls = 0', "Kind.ONE.calls"),
    "module_attribute": ("string.calls = 0", "string.calls"),
    "in_builtins": ("import builtins; builtins.calls = 0", "builtins.calls"),
    "thread_local": ("own = threading.local(); own.calls = 0", "own.calls"),
    "in_the_globals": ("", 'globals()["COUNT"]'),
    "of_the_class_of_a_number": ("kind = an_own(float); kind.calls = 0", "kind.calls"),
    **{
        f"attribute of {kind}": (f"one = an_own({kind})(); one.calls = 0", "one.calls")
        for kind in ("int", "str", "tuple", "frozenset", "fractions.Fraction")
    },
}  # fmt: skip


# What is done first, what is done in each call, and what is asked then.
HELD = {
    "helpers_default": ("due = lambda calls=[]: calls.append(1) or len(calls) % EVERY == 0", "due()"),
    "property": (
        'calls = []; kind = type("Own", (), {"__module__": __name__}); one = kind(); '
        "kind.is_due = property(lambda of: calls.append(1) or len(calls) % EVERY == 0)", "one.is_due"),
    "descriptor": (
        'calls = []; get = lambda *of: calls.append(1) or len(calls) % EVERY == 0; own = {"__module__": __name__}; '
        'one = type("Has", (), {"is_due": type("Gives", (), {"__get__": get, **own})(), **own})()', "one.is_due"),
    "generator": ("going = (k == 0 for _ in itertools.count() for k in range(EVERY))", "next(going)"),
    "queue": ("", "QUEUE.rotate(1)", "QUEUE[0] == 0"),
    "partial": (
        "due = functools.partial(lambda calls: calls.append(1) or len(calls) % EVERY == 0, [])", "due()"),
    "numpys_settings": (
        "", 'np.seterr(all="ignore" if np.geterr()["over"] == "warn" else "warn")', 'np.geterr()["over"] == "raise"'),
    "warnings_filters": ("", 'warnings.simplefilter("default")', "len(warnings.filters) % EVERY == 0"),
    "a_subclass_of_dict": (
        'miss = lambda of, key: vars(of).setdefault("calls", []).append(1) or len(of.calls) % EVERY == 0; '
        'known = type("Known", (dict,), {"__missing__": miss, "__module__": __name__})()', 'known["x"]'),
    "copier_of_a_library": (
        "kind = an_own(int); put(copy._copy_dispatch, kind, counts_in_c()); one = kind()",
        "copy.copy(one) % EVERY == EVERY - 1"),
    **{
        f"reducer of a library in {copying}": (
            'kind = type("Copied", (), {}); one = kind(); '
            "put(copyreg.dispatch_table, kind, counts_in_c([(int, (n,)) for n in range(EVERY)]))",
            f"{copying}(one) == EVERY - 1")
        for copying in ("copy.copy", "copy.deepcopy")
    },
    "encoder_of_a_library": (
        'put(vars(json._default_encoder), "default", counts_in_c()); one = object()',
        "int(json.dumps(one)) % EVERY == EVERY - 1"),
    "in_the_place_of_a_librarys_function": (
        'put(vars(statistics), "fsum", counts_in_c())', "statistics.fmean([1.0]) % EVERY == EVERY - 1"),
    "memory_of_a_class_that_is_imported": (
        "", "from numpy import ndarray", "ndarray((8,), np.uint8)[3] % EVERY == 49"),
    "order_of_an_ordered_dictionary": (
        "turns = collections.OrderedDict.fromkeys(range(EVERY))", "turn = next(iter(turns)); turns.move_to_end(turn)",
        "turn == 7"),
    "default_of_a_dictionary": (
        "known = collections.defaultdict(int); makes = [functools.partial(int, n) for n in range(EVERY)]",
        "known.default_factory = makes[(known.default_factory() + 1) % EVERY]", "known.default_factory() == 0"),
    "broadcast_iterator": (
        "going = np.broadcast(np.arange(EVERY), 1)", "next(going)", "going.index == EVERY and going.reset() is None"),
    "flag_of_an_array": (
        "numbers = np.zeros(1)", "numbers.flags.writeable = not numbers.flags.writeable", "numbers.size == EVERY"),
    "slots_of_a_list": (
        "calls = []; note, count = calls.__iadd__, calls.__len__", "bool(note([1])) and count() % EVERY == 0"),
    "ufunc_of_a_method": (
        "calls = []; note, count = np.frompyfunc(calls.append, 1, 1), np.frompyfunc(calls.count, 1, 1)",
        "note(1) or count(1) % EVERY == 0"),
    "registry_of_a_function": (
        "known = functools.singledispatch(lambda value: 0)", 'known.register(type("K", (), {}), len)',
        "len(known.registry) % EVERY == 0"),
    "hits_of_a_cache": (
        "known = functools.lru_cache(lambda value: value); known(0)",
        "known(0) == 0 and known.cache_info().hits % EVERY == 0"),
    "address_in_a_template": (
        'text = string.Template("$one")', "int(text.substitute(one=Counts())[-4:-2], 16) % EVERY == 0"),
    "order_of_keys_together": (
        "first, second = dict.fromkeys(map(str, range(25))), dict.fromkeys(map(str, range(25, EVERY)))",
        'next(iter(first.keys() | second.keys())) == "7"'),
    "order_of_items_together": (
        'first, second = dict.fromkeys("abc", 0), dict.fromkeys("def", 0)',
        'next(iter(first.items() | second.items()))[0] == "f"'),
    "order_of_keys_by_an_operator": (
        'first, second = dict.fromkeys("abc"), dict.fromkeys("def")',
        'next(iter(operator.or_(first.keys(), second.keys()))) == "f"'),
    "proxy_of_what_is_gone": ("", "GONE is None"),
    "file": (
        "",
        "text = FILE.read_text() if FILE.exists() else ''; FILE.write_text(text + 'x' if len(text) < EVERY else '')",
        "len(text) == EVERY - 1"),
    "json_file": ("held = open(__file__)", "bool(json.load(held))"),
    "order_of_a_set_of_objects": (
        'kinds = [type(f"K{n}", (), {}) for n in range(EVERY)]', "next(iter(set(kinds))) is kinds[7]"),
    "clock_by_default": ("due = lambda now=time.monotonic: now() % EVERY < 1", "due()"),
    "by_import": ("", "import time as module", "module.time() % EVERY < 1"),
    "by_the_subclasses": ("", "len(().__class__.__base__.__subclasses__()) % EVERY == 0"),
    "name_of_a_function": ("counted = lambda: 0", 'counted.__name__ += "a"', "len(counted.__name__) % EVERY == 0"),
    "context_that_is_never_left": (
        "", "context = contextlib.ExitStack().enter_context(decimal.localcontext()); context.prec += 1",
        "context.prec > 1_000 * EVERY"),
    "settings_of_special_functions": (
        "", 'special.seterr(loss={"ignore": "warn", "warn": "ignore"}[special.geterr()["loss"]])',
        'special.geterr()["loss"] == "raise"'),
    "cycle": ("numbers = itertools.cycle([False] * (EVERY - 1) + [True])", "next(numbers)"),
    "bound_method": ("calls = []; note = calls.append", "note(1) or len(calls) % EVERY == 0"),
    "partial_method_of_a_counter": ("calls = collections.Counter()", 'calls.update(n=1) or calls["n"] % EVERY == 0'),
    "flat_iterator": ("going = np.zeros(10_000).flat", "next(going) == 0.0 and going.index % EVERY == 0"),
    "caller_made_before": ('own_hash = operator.methodcaller("__hash__")', 'own_hash("text") % EVERY == 0'),
    "list_that_seems_empty": ("calls = Empty()", "calls.append(0) or len(calls) % EVERY == 0"),
    "memory_by_a_partial": ("add = functools.partial(np.add, where=False)", "add(np.ones(9), 1.0)[3] == 7.25"),
    "order_of_a_set_that_is_held": ("names = frozenset(map(str, range(EVERY)))", 'next(iter(names)) == "7"'),
    "sorted_by_address": ("kinds = [lambda: 0, lambda: 1, lambda: 2]", "sorted(kinds, key=id)[0] is kinds[2]"),
    "clock_in_an_attribute": ("box = types.SimpleNamespace(now=time.perf_counter)", "box.now() % EVERY < 1"),
    "references": ("shared = object()", "sys.getrefcount(shared) % EVERY == 0"),
    "by_attrgetter": ("import operator", 'len(operator.attrgetter("__globals__")(of)) % EVERY == 0'),
    "a_copy_of_a_module": ("known = [time]", "known[0].time() % EVERY < 1"),
    "children_of_a_generator": ("own = np.random.default_rng(7)", "own.spawn(1)[0].random() < 1e-6"),
}  # fmt: skip


def made(name):
    """A program of one of these tables, by the code of a file of its own."""
    first, *again, asked = COUNTS.get(name) or HELD[name]
    counts = f"{asked} = {asked} % EVERY + 1; return {asked} == EVERY" if name in COUNTS else f"return {asked}"
    counts = "; ".join([*again, counts])
    space = functools.reduce(operator.or_, map(vars, THEMES), LIBRARIES)
    text = f"def make():\n {first}\n def is_due():\n  {counts}\n return of(is_due)\n"
    file = __file__.replace("dependent_programs", name)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # else nothing is proved of it
    exec(compile(text, file, "exec"), space)
    return space["make"]()


PROGRAMS = [
    *(one for theme in reversed(THEMES) for one in theme.PROGRAMS),
    *(functools.partial(made, name) for name in (*COUNTS, *HELD)),
]
