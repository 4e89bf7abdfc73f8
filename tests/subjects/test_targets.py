"""Targets and pairs that name Python code: what they find, and what every mistake is told."""

import re
import sys

import numpy as np
import pytest

from dpaudit.errors import UsageError
from dpaudit.subjects.targets import is_python_pairs, resolve_pairs, resolve_target

RELEASE = "def release(data, rng): return data + rng.laplace()\n"
MECHANISM = """
from dpaudit import PureDP
class Mechanism:
    claim = PureDP(1.0)
    def sample(self, data, size, rng): return data + rng.laplace(size=size)
    def pairs(self): return [(0.0, 1.0)]
class Family:
    member = Mechanism()
mechanism = Mechanism()
number = 3
"""


def message_of(function, text):
    with pytest.raises(UsageError) as caught:
        function(text)
    return str(caught.value)


def test_a_file_in_the_current_folder_is_a_target(project):
    (project / "mymodule.py").write_text(RELEASE)
    subject = resolve_target("mymodule.py:release")
    assert (subject.name, subject.target, subject.interface) == ("release", "mymodule.py:release", "f(data, rng)")
    assert subject.sample(0.0, 3, np.random.default_rng(1)).__len__() == 3


def test_a_file_may_import_its_neighbours_and_the_current_folder(project):
    (project / "here.py").write_text("SCALE = 1.0\n")
    (project / "sub").mkdir()
    (project / "sub" / "neighbour.py").write_text("SHIFT = 0.0\n")
    (project / "sub" / "mech.py").write_text("from here import SCALE\nfrom neighbour import SHIFT\n" + RELEASE)
    assert resolve_target("sub/mech.py:release").name == "release"


def test_a_file_named_like_a_known_module_does_not_replace_it(project):
    import json

    (project / "json.py").write_text("def f(data): return 5\n")
    assert resolve_target("json.py:f").mechanism(0) == 5
    assert sys.modules["json"] is json


def test_a_file_named_like_another_one_works_in_worker_processes(project):
    import joblib

    for folder in ("one", "two"):
        (project / folder).mkdir()
        (project / folder / "worker.py").write_text(f"NAME = {folder!r}\ndef f(data): return NAME\n")
    functions = [resolve_target(f"{folder}/worker.py:f").mechanism for folder in ("one", "two")]
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(f)(0) for f in functions) == ["one", "two"]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("mymodule.py", "package.module:attribute or path/file.py:attribute, got 'mymodule.py'. Put a ':'"),
        (":release", "got ':release'"),
        ("mymodule.py:", "got 'mymodule.py:'"),
        ("mymodule.py:a b", "'a b' is no name of an attribute"),
        ("my-module:release", "'my-module' is no name of a module"),
        ("nothing_here:release", "a module that can be imported, got 'nothing_here' at 'nothing_here:release'"),
        ("mymodule.inner:release", "a module that can be imported, got 'mymodule.inner'"),
        ("nothing.py:release", "an existing file, got 'nothing.py'"),
        ("sub/file.txt:release", "a file that ends in .py, got 'sub/file.txt'"),
        ("mymodule.py:relase", "attribute of mymodule, got 'relase' at 'mymodule.py:relase'. Did you mean 'release'?"),
        ("mymodule.py:zzz", "It has Family, Mechanism, mechanism, release."),
        ("imports.py:nope", "got 'nope' at 'imports.py:nope'. It has release."),  # before: did you mean 'np'?
        ("imports.py:fraction", "It has release."),
        ("mymodule.py:release.zzz", "attribute of release, got 'zzz'"),
        ("mymodule.py:Mechanism", "the class Mechanism at 'mymodule.py:Mechanism'. Instantiate it"),
        ("mymodule.py:number", "got int at 'mymodule.py:number'."),
        ("exec:./no-such-release.sh", "command must be a program that can be started"),
    ],
)
def test_each_bad_target_is_told_what_is_wrong(project, target, words):
    (project / "mymodule.py").write_text(RELEASE + MECHANISM)
    (project / "imports.py").write_text(f"import numpy as np\nfrom fractions import Fraction\nlimit = 3\n{RELEASE}")
    assert words in message_of(resolve_target, target)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os\nx = 1 / 0\n", "ZeroDivisionError: division by zero at line 2 of "),
        ("def f(:\n", "SyntaxError: invalid syntax at line 1 of "),
        ("\n\nimport no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library' at line 3 of "),
        ("raise SystemExit(0)\n", "SystemExit: 0 at line 1 of "),
        ("import json\njson.loads('{')\n", "at line 2 of "),
        ("from . import x\n", "ImportError: attempted relative import with no known parent package at line 1 of "),
    ],
)
@pytest.mark.parametrize("form", ["broken.py:f", "broken:f"])
def test_an_error_in_the_users_file_is_told_with_its_line(project, code, words, form):
    (project / "broken.py").write_text(code)
    message = message_of(resolve_target, form)
    assert re.search(re.escape(words) + ".*broken.py", message), message
    assert f"({form!r})" in message


@pytest.mark.parametrize("text", ["pairs.py:pairs", "pairs:pairs", "pairs.py:LISTED", "pairs.py:generated"])
def test_pairs_come_from_a_function_or_a_list(project, text):
    (project / "pairs.py").write_text(
        "def pairs(): return [(0, 1), (1, 2)]\nLISTED = pairs()\ndef generated():\n    yield (0, 1)\n    yield (1, 2)\n"
    )
    assert [pair.id for pair in resolve_pairs(text)] == ["0|1", "1|2"]


@pytest.mark.parametrize(
    ("text", "is_python"),
    [
        ("0,1", False),
        ('"a:b","c:d"', False),
        ('{"a":1},{"a":2}', False),
        ('{"a":null},null', False),
        ("pairs.json", False),
        ("module:function", True),
        ("package.module:object.method", True),
        ("my folder/a,b.py:function", True),
    ],
)
def test_json_is_told_from_python(text, is_python):
    assert is_python_pairs(text) is is_python


def test_other_texts_are_read_as_json(project):
    assert [pair.id for pair in resolve_pairs('{"a":1},{"a":2}')] == ["{'a': 1}|{'a': 2}"]
