"""Each known fault can be put in: the text that it changes stands once in its module, and its tests are there."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_known_fault_can_be_put_in():
    faults = json.loads((ROOT / ".ci" / "known_faults.json").read_text(encoding="utf-8"))
    assert len(faults) >= 60
    for fault in faults:
        found = (ROOT / fault["module"]).read_text(encoding="utf-8").count(fault["old"])
        file = fault["tests"].partition(" ")[0].partition("::")[0]
        assert found == 1 and fault["old"] != fault["new"] and (ROOT / file).is_file(), fault
