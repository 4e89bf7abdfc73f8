"""The label of the scatter covers no point, headings stand once, and numbers of draws say what they count."""

from __future__ import annotations

import pytest

from dpaudit.reports import figures, pdf

PLOT = (62.0, 888.0, 10.0, 334.0)


@pytest.mark.parametrize("place", [(450.0, 170.0), (70.0, 12.0), (880.0, 330.0)])
def test_a_label_covers_no_point_and_stays_within_the_plot(place):
    text = "Dresden|Mainz"
    crowd = [(place[0] + 9.0 * i, place[1] + 9.0 * j) for i in range(-4, 5) for j in range(-4, 5)]
    for points in ([place], crowd):
        drawn = figures._callout(text, place, points, PLOT, 4.0)
        x, y = (drawn[-1].at[name] for name in "xy")
        half = 3.5 * len(text)
        assert x - half > PLOT[0] and x + half < PLOT[1] and PLOT[2] < y < PLOT[3]
        assert not [(a, b) for a, b in points if abs(a - x) < half + 4.0 and abs(b - (y - 4.0)) < 7.0 + 4.0]
        if points == crowd:  # a line to the point, where the label is away from it
            assert len(drawn) == 2


def test_no_word_of_a_pdf_table_is_broken_where_there_is_room():
    pytest.importorskip("reportlab")
    pdf._register()
    cells = [("not applicable", "word " * 200, "x" * 200)]
    least = [pdf._least(name, [row[k] for row in cells]) for k, name in enumerate(("status", "evidence", "id"))]
    widths = pdf._widths([5.0, 70.0, 24.0], least, 499.0)
    assert all(width >= low for width, low in zip(widths, least, strict=True)) and sum(widths) == pytest.approx(499.0)
    assert sum(pdf._widths([1.0, 1.0], [400.0, 300.0], 500.0)) == pytest.approx(500.0)
    assert pdf._widths([1.0, 9.0], [50.0, 50.0], 100.0) == pytest.approx([50.0, 50.0])
