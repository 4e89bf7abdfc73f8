"""Words of a table are not broken where there is room."""

from __future__ import annotations

import pytest

from dpaudit.reports import pdf


def test_no_word_of_a_pdf_table_is_broken_where_there_is_room():
    pytest.importorskip("reportlab")
    pdf._register()
    cells = [("not applicable", "word " * 200, "x" * 200)]
    least = [pdf._least(name, [row[k] for row in cells]) for k, name in enumerate(("status", "evidence", "id"))]
    widths = pdf._widths([5.0, 70.0, 24.0], least, 499.0)
    assert all(width >= low for width, low in zip(widths, least, strict=True)) and sum(widths) == pytest.approx(499.0)
    assert sum(pdf._widths([1.0, 1.0], [400.0, 300.0], 500.0)) == pytest.approx(500.0)
    assert pdf._widths([1.0, 9.0], [50.0, 50.0], 100.0) == pytest.approx([50.0, 50.0])
