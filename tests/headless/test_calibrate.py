"""`--calibrate` and `--plot`: real ceilings as a table, a roofline and JSON; pictures for slides."""

import json
import struct

import pytest

from gpulab.headless import plot
from gpulab.model.conclude import run_result
from gpulab.run.request import UsageError

SCENARIO = """
    \"\"\"Drawn: x.\"\"\"
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("mine", smoke={})

    @scenario.variant
    def one(lab):
        x = torch.rand(4096)
        return Work(lambda: x * 2, inputs=x, bytes=2 * x.nbytes, flops=4096)

    @scenario.variant
    def two(lab):
        x = torch.rand(4096)
        return Work(lambda: x + x, inputs=x, bytes=2 * x.nbytes, flops=4096)
"""


@pytest.mark.slow
def test_a_calibration_prints_keeps_and_writes_what_the_device_can_do(lab):
    done = lab.call("--calibrate", "--device", "cpu", "--telemetry", "off", "--json", "out.json", "--plot", "out.svg")
    assert done.code == 0, done.stderr
    found = json.loads((lab.folder / "out.json").read_text())
    assert (found["schema"], found["outcome"]) == ("gpulab.ceilings/1", "measured")
    known = {(one["roof"], one["kind"]): one for one in found["ceilings"]}
    for name in [("device memory", "triad"), ("cache", "read"), ("matrix", "fp64"), ("matrix", "int8")]:
        assert known[name]["samples"] >= 5
        assert known[name]["best"] >= known[name]["median"] > 0
        assert known[name]["how"]
    assert ("matrix", "fp16") not in known  # emulated on a CPU
    assert 0 < known["launch", "enqueue"]["best"] < 1e-3
    assert "device memory triad" in done.stdout
    assert "FLOP/byte" in done.stdout  # and drawn
    assert "ceilings device memory" in done.stderr  # with progress
    (kept,) = (lab.folder / "cache" / "gpulab" / "ceilings").iterdir()
    key = json.loads(kept.read_text())["key"]
    assert (key["device"], key["threads"], key["torch"]) == (
        found["device"]["name"],
        1,
        found["environment"]["torch"],
    )
    assert "<svg" in (lab.folder / "out.svg").read_text()


def test_a_run_is_drawn_for_slides(lab):
    done = lab.run(lab.write("drawn.py", SCENARIO), "--plot", "pictures/out.png", time_s="1")
    assert done.code == 0, done.stderr
    assert "picture: pictures/out.png" in done.stderr
    width, height = struct.unpack(">II", (lab.folder / "pictures" / "out.png").read_bytes()[16:24])
    assert width > height > 500
    again = run_result(done.state)  # the run file has all that it takes
    roofs, times = plot.picture(again).axes
    assert [one.get_label()[:6] for one in roofs.containers] == ["A  one", "B  two"]
    assert [one.get_text() for one in times.get_yticklabels()] == ["one", "two"]
    plot.plot(again, lab.folder / "again.svg")
    assert "<svg" in (lab.folder / "again.svg").read_text()
    plot.plot(again, lab.folder / "again.pdf")
    assert (lab.folder / "again.pdf").read_bytes().startswith(b"%PDF")


def test_of_several_runs_each_has_its_picture(lab):
    lab.write("drawn.py", SCENARIO)
    lab.write("other.py", SCENARIO)
    options = ("--device", "cpu", "--smoke", "--telemetry", "off", "--plot", "all.png")
    assert lab.call("--run", "drawn.py", "other.py", *options).code == 0
    assert {path.name for path in lab.folder.glob("*.png")} == {"all-drawn.png", "all-other.png"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--run", "drawn.py", "--plot", "out.jpg"), "the name ends in .png, .svg, .pdf"),
        (("--run", "drawn.py", "--plot", "/proc/nowhere/out.png"), "--plot /proc/nowhere/out.png"),
        (("--list", "--plot", "out.png"), "--plot goes with --run"),
        (("--calibrate", "drawn.py"), "put it behind --run or --list"),
        (("--calibrate", "--fail-below", "1.2"), "--fail-below goes with --run"),
        (("--calibrate", "--device", "tpu"), "write cpu, cuda or cuda:N"),
        (("--calibrate", "--json", "/proc/nowhere/out.json"), "--json /proc/nowhere/out.json"),
        (("--run", "drawn.py", "--plot", "x.svg", "--json", "x.svg"), "that is where --json goes"),
        (("--run", "drawn.py:one", "drawn.py:two", "--plot", "x.svg"), "have the same name"),
        (("--run", "drawn.py", "--observer-effect", "--plot", "x.svg"), "without --sweep or --plot"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(lab, arguments, message):
    lab.write("drawn.py", SCENARIO)
    done = lab.call(*arguments)
    assert (done.code, message in done.stderr) == (2, True), done.stderr


def test_without_matplotlib_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(plot.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'gpulab\[plot\]'"):
        plot.check_plot(tmp_path / "out.png")
