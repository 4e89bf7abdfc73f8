"""Programs whose executions depend on more than their input and their draws: a leak that waits for something.

Each is private on most calls, and gives its input away where something else is as it wants: a count of calls, a clock,
an address, the order of a set, a setting of the process. `PROGRAMS` makes each anew, so that none has been called.
"""

from __future__ import annotations

import functools
import linecache
import operator

import hidden_state_programs
import kept_state_programs
import outside_programs
import process_programs

THEMES = (process_programs, outside_programs, hidden_state_programs, kept_state_programs)


# Kept between calls, where one of these stands: what is done first, and the place of the count.
COUNTS = {
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
}


# What is done first, and what is asked in each call.
HELD = {
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
}


def made(name):
    """A program of one of these tables, by the code of a file of its own."""
    first, asked = COUNTS.get(name) or HELD[name]
    counts = f"{asked} = {asked} % EVERY + 1; return {asked} == EVERY" if name in COUNTS else f"return {asked}"
    space = functools.reduce(operator.or_, map(vars, THEMES), {})
    text = f"def make():\n {first}\n def is_due():\n  {counts}\n return of(is_due)\n"
    file = __file__.replace("dependent_programs", name)
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # else nothing is proved of it
    exec(compile(text, file, "exec"), space)
    return space["make"]()


PROGRAMS = [
    *(one for theme in reversed(THEMES) for one in theme.PROGRAMS),
    *(functools.partial(made, name) for name in (*COUNTS, *HELD)),
]
