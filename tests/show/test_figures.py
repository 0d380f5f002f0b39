"""What a run is drawn as: figures as data, as SVG, and by matplotlib."""

import sys
from itertools import pairwise

import matplotlib
import pytest
from hostile import hostile
from msgspec.structs import replace
from reports import run_report, variant_report
from rooflines import H200, h200

import gpulab
from gpulab.core.estimate import Estimate
from gpulab.core.statuses import Status, Verdict
from gpulab.draw.axis import axis_of, evened
from gpulab.draw.figure import Figure, Mark, Scale, decade, decades
from gpulab.draw.plot import plot
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.sweeps.figure import curves_figure
from gpulab.show.display import figure, image
from gpulab.show.figures import figures_of
from gpulab.show.svg import file_of
from gpulab.stats.comparison import Comparison

LADDER = (
    ("masked_in_place", "naive", Verdict.FASTER),
    ("flash", "masked_in_place", Verdict.SLOWER),
)


def report(*, seconds=(8e-3, 7e-3, 6e-3, 5e-3, 4e-3, 3e-3, 2e-3, 1e-3), ceilings=H200):
    return run_report(
        scenario="attention",
        ceilings=CeilingsMeasured(ceilings=list(ceilings)) if ceilings else None,
        variants=[
            variant_report(
                name=point.variant,
                status=Status.OK,
                roofline=point if ceilings else None,
                time_s=Estimate(value=time, low=0.9 * time, high=1.2 * time),
            )
            for point, time in zip(h200().points, seconds, strict=True)
        ],
        comparisons=[
            Comparison(
                variant=after,
                against=before,
                speedup=Estimate(value=2.0, low=1.9, high=2.1),
                verdict=verdict,
            )
            for after, before, verdict in LADDER
        ],
    )


@pytest.mark.parametrize(
    ("xs", "drawn"),
    [
        ((5.0, 5.0), "first AB second"),
        ((5.0,) * 4, "third CABD fourth"),
        ((5.0,) * 6, "EC+BD"),
        ((5.0, 9.0), "A first"),
    ],
)
def test_letters_of_one_cell_stand_side_by_side_or_are_named_together(xs, drawn):
    names = ("first", "second", "third", "fourth", "fifth", "sixth")
    marks = [
        Mark(letter, name, x, 5.0) for letter, name, x in zip("ABCDEF", names, xs, strict=False)
    ]
    axis = Scale("x", 0.0, 10.0, str, logarithmic=False)
    shown = plot(Figure("close", axis, axis, marks=marks), 50, 12).plain
    assert drawn in shown
    assert ("A+F" in shown) == (len(xs) == 6)


def test_times_are_bars_from_zero_with_their_intervals_and_verdicts():
    times, _ = figures_of(report())
    assert [bar.value for bar in times.bars] == [each.time_s.value for each in report().variants]
    assert (times.bars[0].low, times.bars[0].high) == pytest.approx((0.9 * 8e-3, 1.2 * 8e-3))
    assert times.bars[0].words == "8.00 ms"
    assert times.bars[1].words == "7.00 ms  2.00x (1.900 to 2.10) faster"
    assert times.bars[1].style != times.bars[2].style
    assert (times.x.low, times.x.logarithmic) == (0.0, False)


def test_a_roofline_has_the_roofs_of_one_type_and_every_point_that_has_an_intensity():
    _, roofline = figures_of(report())
    drawable = [point for point in h200().points if point.flops_per_byte]
    assert [(mark.x, mark.y) for mark in roofline.marks] == [
        (point.flops_per_byte, point.rate.value) for point in drawable
    ]
    assert [mark.letter for mark in roofline.marks] == list("ABCDEGH")  # F only copies
    assert [mark.letter for mark in roofline.marks if mark.style == "dim"] == ["E"]
    labels = [line.label for line in roofline.lines if line.label]
    assert any(label.startswith("784 TFLOP/s bf16 matrix") for label in labels)
    memory = next(line for line in roofline.lines if "device memory" in line.label)
    assert "datasheet 4.80 TB/s" in memory.label
    assert memory.points[-1] == pytest.approx((784e12 / 4.40e12, 784e12))  # the ridge
    arrows = [line for line in roofline.lines if not line.label]
    assert len(arrows) == len(LADDER)


@pytest.mark.parametrize("rows", [8, 12, 20, 40])
def test_ticks_upwards_are_powers_of_ten_in_equal_steps_of_rows(rows):
    low, high = 2e8, 1.2e14
    scale = evened(Scale("FLOP/s", low, high, decade, ticks=decades(low, high)), rows, 2)
    axis = axis_of(scale, rows)
    assert axis.cell(low) >= 0
    assert axis.cell(high) < rows
    places = [axis.position(tick) for tick in scale.ticks]
    steps = {round(after - before, 3) for before, after in pairwise(places)}
    assert len(steps) == 1
    assert steps.pop() == pytest.approx(round(places[1] - places[0]))
    assert places[1] - places[0] >= 2


def test_a_roofline_has_no_decades_far_from_its_points():
    _, roofline = figures_of(report())
    assert roofline.x.low > min(mark.x for mark in roofline.marks) / 10
    assert roofline.y.low > min(mark.y for mark in roofline.marks) / 10


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 50), (30, 8)])
def test_on_a_terminal_all_of_it_is_inside(width, height):
    _, roofline = figures_of(report())
    drawn = plot(roofline, width, height).plain
    assert len(drawn.split("\n")) <= height
    assert max(map(len, drawn.split("\n"))) <= width
    if width > 30:
        assert "784 TFLOP/s bf16 matrix" in drawn


def test_without_times_or_roofs_there_is_no_figure():
    assert figures_of(run_report(scenario="", ceilings=CeilingsMeasured())) == []
    assert len(figures_of(report(ceilings=()))) == 1


def of_sweep(*runs):
    """A report for each (parameters, seconds)."""
    first, second = (variant_report(name=name, status=Status.OK) for name in ("a", "b"))
    return [
        run_report(
            scenario="attention",
            params=params,
            variants=[
                replace(first, time_s=Estimate(value=time, low=0.9 * time, high=1.2 * time)),
                replace(second, time_s=Estimate(value=2 * time)),
            ],
        )
        for params, time in runs
    ]


def test_runs_that_differ_in_a_parameter_are_a_curve_of_each_variant():
    drawn = curves_figure(of_sweep(*(({"n": n, "m": 3}, 1e-6 * n) for n in (64, 16, 256))))
    assert [x for x, _ in drawn.lines[0].points] == [16, 64, 256]
    assert [y for _, y in drawn.lines[1].points] == pytest.approx([32e-6, 128e-6, 512e-6])
    assert drawn.marks[0].low == pytest.approx(0.9 * 16e-6)
    assert drawn.x.logarithmic
    assert [drawn.x.label(value) for value in drawn.x.ticks] == ["16", "64", "256"]
    (axes,) = figure(of_sweep(({"n": 1}, 1e-6), ({"n": 9}, 3e-6)), None).axes
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "n")


def test_texts_of_a_parameter_lie_side_by_side():
    drawn = curves_figure(of_sweep(({"kind": "x"}, 1e-6), ({"kind": "$y"}, 3e-6)))
    assert not drawn.x.logarithmic
    assert [drawn.x.label(value) for value in drawn.x.ticks] == ["x", "$y"]


@pytest.mark.parametrize(
    ("runs", "error"),
    [
        ([], "a curve is of several runs of one scenario"),
        (of_sweep(({"n": 1}, 1.0), ({"n": 1}, 1.0)), "differ in one parameter; these in: none"),
        (of_sweep(({"n": 1, "m": 1}, 1.0), ({"n": 2, "m": 2}, 1.0)), "these in: n, m"),
        ([*of_sweep(({"n": 1}, 1.0)), run_report(scenario="other")], "runs of one scenario"),
        (
            [run_report(scenario="", params={"n": n}) for n in (1, 2)],
            "a curve is of runs that measured times",
        ),
    ],
)
def test_runs_that_make_no_curve_say_why(runs, error):
    with pytest.raises(ValueError, match=error):
        curves_figure(runs)


def test_a_report_plots_itself_for_a_notebook_and_into_a_file(tmp_path, monkeypatch):
    report_to_plot = report(ceilings=())
    drawn = report_to_plot.plot(tmp_path / "out.svg")
    assert [len(axes.patches) for axes in drawn.axes] == [8]
    assert drawn._repr_png_().startswith(b"\x89PNG")
    assert (tmp_path / "out.svg").read_bytes().startswith(b"<svg")
    monkeypatch.delitem(sys.modules, "gpulab.show.picture")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"needs matplotlib: pip install 'gpulab\[plot\]'"
    ):
        report_to_plot.plot()


def test_a_path_of_another_ending_or_what_is_no_report_says_so(tmp_path):
    report_to_plot = report(ceilings=())
    for wrong in (report_to_plot, ["x"]):
        with pytest.raises(gpulab.UsageError, match="reports: write a list of reports"):
            gpulab.plot(wrong)
    with pytest.raises(gpulab.UsageError, match="path=3: write the name of a file"):
        gpulab.plot([report_to_plot], 3)
    with pytest.raises(ValueError, match=r"out\.jpg: the name ends in \.png, \.svg, \.pdf"):
        report_to_plot.plot(tmp_path / "out.jpg")


@pytest.mark.parametrize(
    "text", [r"$\frac{$", "</svg><script>1</script>\x1b[31m\ud800" + "x" * 999]
)
def test_no_text_is_markup_or_a_formula(text):
    forged = hostile(report(), text=text)
    assert "<script" not in file_of(figures_of(forged))
    assert image([forged], "png").startswith(b"\x89PNG")


def test_settings_of_matplotlib_change_nothing(tmp_path, monkeypatch):
    times = [report(ceilings=())]
    before = image(times, "png")
    file = tmp_path / "matplotlibrc"
    file.write_text("text.usetex: True\nfigure.dpi: 9\nsavefig.bbox: tight")
    with matplotlib.rc_context(fname=file):
        assert image(times, "png") == before
