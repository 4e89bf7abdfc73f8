"""What a program waits for before its first audit: no library and no room that few audits need."""

import subprocess
import sys

LATE = (
    *("scipy.stats", "scipy.special", "scipy.spatial", "scipy.optimize", "joblib", "matplotlib", "jinja2", "rich"),
    *("sqlite3", "dpaudit.scores", "dpaudit.symbolic", "dpaudit.running.store", "dpaudit.audits.grey_box"),
)


def test_the_door_of_audits_imports_neither_slow_libraries_nor_rooms_that_few_audits_need():
    code = f"import sys, dpaudit; dpaudit.audit; print([name for name in {LATE!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_list_names_what_exists():
    """Else the test above could not fail."""
    code = f"import importlib; [importlib.import_module(name) for name in {LATE!r}]"
    subprocess.run([sys.executable, "-c", code], check=True)
