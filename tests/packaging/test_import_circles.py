"""No module imports one that imports it, through others or inside a function."""

import graphlib

import grimp
import pytest


@pytest.mark.parametrize("package", ["dpaudit", "dpaudit_mechanisms"])
def test_there_is_no_import_circle(package):
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 100
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))
