"""What `--plot` draws, read from the figure before it becomes a file."""

import sys

import devices
import matplotlib
import pytest
from hostile import hostile
from matplotlib.text import Text
from msgspec.structs import replace
from reports import run_report, variant_report
from rooflines import H200, h200

import gpulab
from gpulab.core.statuses import Status, Verdict
from gpulab.core.text import one_line
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.report.report import Time
from gpulab.show.picture import curves, image, picture, plotted
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
                time_s=Time(median=time, low=0.9 * time, high=1.2 * time),
            )
            for point, time in zip(h200().points, seconds, strict=True)
        ],
        comparisons=[
            Comparison(
                variant=after, against=before, speedup=2.0, low=1.9, high=2.1, verdict=verdict
            )
            for after, before, verdict in LADDER
        ],
    )


@pytest.fixture(scope="module")
def halves():
    return picture(report()).axes


def test_every_source_of_every_roof_is_a_line_and_only_what_was_measured_is_solid(halves):
    lines = {
        line.get_label(): line for line in halves[0].lines if not line.get_label().startswith("_")
    }
    assert sorted(lines) == [
        "1,071 TFLOP/s matrix fp16, derived",
        "16.7 TB/s cache, derived",
        "4.40 TB/s device memory triad, measured",
        "4.80 TB/s device memory, datasheet",
        "4.81 TB/s device memory, derived",
        "784 TFLOP/s matrix bf16, measured",
        "8.59 TB/s cache read, measured",
        "989 TFLOP/s matrix fp16, datasheet",
    ]
    for label, line in lines.items():
        measured = label.endswith("measured")
        assert (line.get_linestyle() == ":", line.get_alpha() < 0.5) == (not measured, not measured)
    flat = lines["784 TFLOP/s matrix bf16, measured"]
    assert set(flat.get_ydata()) == {784e12}
    assert flat.get_xdata()[0] == pytest.approx(784 / 4.40)  # the ridge
    (legend,) = [artist for artist in halves[0].artists if artist is not halves[0].get_legend()]
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted(lines)


def test_every_point_is_marked_named_and_has_its_interval(halves):
    points = {
        letter: point
        for letter, point in zip("ABCDEFGH", h200().points, strict=True)
        if point.intensity
    }
    marks = {mark.get_label()[0]: mark for mark in halves[0].containers}
    assert sorted(marks) == sorted(points) == list("ABCDEGH")  # F only copies
    letters = {text.get_text(): text.xy for text in halves[0].texts if text.get_text()}
    for letter, point in points.items():
        middle, _, (bars,) = marks[letter].lines
        assert (
            (*middle.get_xdata(), *middle.get_ydata())
            == letters[letter]
            == (point.intensity, point.rate)
        )
        assert bars.get_segments()[0][:, 1] == pytest.approx([point.rate_low, point.rate_high])
        assert point.variant in marks[letter].get_label()
        assert middle.get_alpha() == (0.4 if letter == "E" else 1)  # of another type
    labels = [text.get_text() for text in halves[0].get_legend().get_texts()]
    assert labels == [marks[letter].get_label() for letter in "ABCDEGH"]
    assert len([text for text in halves[0].texts if text.arrow_patch]) == len(LADDER)


def test_every_variant_has_a_bar_with_its_interval_and_its_verdict(halves):
    bars = [patch for patch in halves[1].patches if patch.get_width()]
    assert [bar.get_width() for bar in bars] == pytest.approx(
        [variant.time_s.median for variant in report().variants]
    )
    assert [text.get_text() for text in halves[1].get_yticklabels()] == [
        point.variant for point in h200().points
    ]
    intervals = [ends[:, 0] for lines in halves[1].collections for ends in lines.get_segments()]
    assert intervals[0] == pytest.approx([0.9 * 8e-3, 1.2 * 8e-3])
    assert len(intervals) == len(bars)
    labels = [text.get_text() for text in halves[1].texts]
    assert labels[0] == "8.00 ms"
    assert labels[1] == "7.00 ms   2.00x (1.900 to 2.10) faster"
    assert labels[5].endswith("3.78 TB/s, 86% of device memory triad")
    assert bars[1].get_facecolor() != bars[2].get_facecolor() != bars[3].get_facecolor()
    assert halves[1].get_xscale() == "linear"


def test_times_far_apart_are_drawn_on_a_logarithmic_axis():
    axes = picture(report(seconds=(1.0, *[1e-3] * 7))).axes[1]
    assert axes.get_xscale() == "log"
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    assert ends == pytest.approx([1.0, *[1e-3] * 7])


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("Attention: in one pass", "attention: in one pass"),
        ("No colon", "attention: No colon"),
        ("", "attention"),
    ],
)
def test_above_it_stand_the_scenario_its_title_and_the_device(title, heading):
    run = run_report(scenario="attention", title=title, device=devices.H200)
    assert picture(run).get_suptitle() == f"{heading}\nNVIDIA H200"
    below = "NVIDIA H200 · a quick run: wide intervals"
    assert picture(replace(run, quick=True)).get_suptitle() == f"{heading}\n{below}"


def test_only_what_there_is_is_drawn():
    (times,) = picture(report(ceilings=())).axes
    assert len(times.patches) == 8
    (roofs,) = picture(run_report(scenario="", ceilings=CeilingsMeasured(ceilings=list(H200)))).axes
    assert roofs.lines
    assert not roofs.containers
    (blank,) = picture(run_report(scenario="", ceilings=CeilingsMeasured())).axes
    assert blank.get_title() == "no ceiling is known"


def of_sweep(*runs):
    """A report for each (parameters, seconds)."""
    first, second = (variant_report(name=name, status=Status.OK) for name in ("a", "b"))
    return [
        run_report(
            scenario="attention",
            params=params,
            variants=[
                replace(first, time_s=Time(median=time, low=0.9 * time, high=1.2 * time)),
                replace(second, time_s=Time(median=2 * time)),
            ],
        )
        for params, time in runs
    ]


def test_runs_that_differ_in_a_parameter_are_a_curve_of_each_variant():
    figure = curves(of_sweep(*(({"n": n, "m": 3}, 1e-6 * n) for n in (64, 16, 256))))
    (axes,) = figure.axes
    assert figure.get_suptitle() == "attention\nm=3"
    drawn = {curve.get_label(): curve.lines[0] for curve in axes.containers}
    assert list(drawn) == ["a", "b"]
    assert list(drawn["a"].get_xdata()) == [16, 64, 256]
    assert list(drawn["a"].get_ydata()) == pytest.approx([16e-6, 64e-6, 256e-6])
    assert list(drawn["b"].get_ydata()) == pytest.approx([32e-6, 128e-6, 512e-6])
    ends = axes.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert ends == pytest.approx([0.9 * 16e-6, 1.2 * 16e-6])
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "log", "n")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["16", "64", "256"]
    assert axes.yaxis.get_major_formatter()(2e-5, 0) == "20 µs"
    assert axes.get_ylabel().startswith("time per step, logarithmic: median with its 99% interval")


def test_texts_of_a_parameter_lie_side_by_side():
    (axes,) = curves(of_sweep(({"kind": "x"}, 1e-6), ({"kind": "$y"}, 3e-6))).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", r"\$y"]
    assert list(axes.containers[0].lines[0].get_xdata()) == [0, 1]
    assert (axes.get_yscale(), axes.get_ylim()[0]) == ("linear", 0)


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
        plotted(runs)


def test_a_report_plots_itself_for_a_notebook_and_into_a_file(tmp_path, monkeypatch):
    report_to_plot = report(ceilings=())
    figure = report_to_plot.plot(tmp_path / "out.svg")
    assert [len(axes.patches) for axes in figure.axes] == [8]
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert (tmp_path / "out.svg").read_bytes().startswith(b"<?xml")
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


def test_few_bars_are_no_giants_and_their_axis_has_units():
    (axes,) = of_sweep(({}, 2e-5))[0].plot().axes
    low, high = axes.transData.transform([(0, 0), (0, 0.6)])[:, 1]
    assert abs(high - low) < axes.get_window_extent().height / 7
    assert axes.xaxis.get_major_formatter()(2e-5, 0) == "20 µs"
    assert axes.get_xlabel() == "time per step: median with its 99% interval"


def texts_of(figure):
    return [text for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [r"$\frac{$ and \$5$", "$x$\n\nfaster\x1b[31m\u202e\u2028\ud800" + "x" * 9999]
)
def test_no_text_is_parsed_or_has_lines_of_its_own(text):
    drawn = hostile(report(), text=text)
    assert image([drawn], "svg")
    figure = picture(drawn)
    # matplotlib's own decades
    shown = [text for text in texts_of(figure) if "mathdefault" not in text.get_text()]
    assert len(shown) > 20
    for label in shown:
        visible, is_formula = label._preprocess_math(label.get_text())
        assert not is_formula
        assert all(mark.isprintable() for mark in visible.replace("\n", ""))
    assert figure.get_suptitle().count("\n") == 1
    begins = one_line(text)[:20]
    assert any(label._preprocess_math(label.get_text())[0].startswith(begins) for label in shown)


def test_settings_of_matplotlib_change_nothing(tmp_path, monkeypatch):
    times = [report(ceilings=())]
    before = image(times, "png")
    file = tmp_path / "matplotlibrc"
    file.write_text("text.usetex: True\nfigure.dpi: 9\nsavefig.bbox: tight")
    with matplotlib.rc_context(fname=file):
        assert image(times, "png") == before
