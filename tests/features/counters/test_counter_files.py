"""--why reads what Nsight Compute exported: tables of an H200 by ncu 2025.3.1, cut to some columns,
and damaged ones.
"""

import csv
import json
import lzma
import random
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpulab.features.counters.metrics import CountedKernel, together
from gpulab.features.counters.reading import is_counters, read

EXPORTS = Path(__file__).parent / "exports"
SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
RAW = EXPORTS / "lessons.raw.csv"
DIRECT = EXPORTS / "direct.csv"


def why(*files):
    command = [sys.executable, "-m", "gpulab", "--why", *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def kernel_of(path, name):
    return next(kernel for kernel in read(path).kernels if kernel.name.startswith(name))


def test_the_raw_page_says_what_tells_lessons_apart():
    coalesced, strided = kernel_of(RAW, "coalesced"), kernel_of(RAW, "strided")
    assert (coalesced.metrics["load_sectors"], strided.metrics["load_sectors"]) == (4, 32)
    # of units: 0.048896 ms; 0.067113 Gbyte and 47.824640 Mbyte
    assert coalesced.metrics["duration_s"] == pytest.approx(48.896e-6)
    assert coalesced.metrics["dram_bytes"] == pytest.approx(67.113e6 + 47.82464e6)
    # with thousands separators
    assert kernel_of(RAW, "conflicts").metrics["load_conflicts"] == 16_361_742
    assert kernel_of(RAW, "padded").metrics["load_conflicts"] == 18_702
    assert max(strided.stalls, key=strided.stalls.get) == "long_scoreboard"
    assert "selected" not in strided.stalls
    assert (strided.grid, strided.block) == ("(65536, 1, 1)", "(256, 1, 1)")


def test_a_ratio_of_nothing_is_missing():
    assert "store_sectors" not in kernel_of(RAW, "reduce_atomic").metrics


def test_what_ncu_prints_while_it_profiles_is_read_behind_its_other_lines():
    kernels = read(DIRECT).kernels
    assert len(kernels) == 4
    assert kernels[0].metrics["duration_s"] == pytest.approx(2.689e-3, rel=1e-3)
    assert "cunn_SoftMaxForwardReg" in kernels[-1].name


def test_two_files_are_compared_kernel_by_kernel(tmp_path):
    result, other = tmp_path / "why.json", tmp_path / "other.csv"
    rows = RAW.read_text().splitlines()
    sectors = rows[0].split(",").index(f'"{SECTORS}"')
    strided = next(csv.reader([row for row in rows if "strided" in row]))
    strided[sectors] = "8"
    other.write_text("\n".join([*rows[:2], '"' + '","'.join(strided) + '"']))
    done = why(RAW, other, "--json", result)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "strided: sectors a load 32 → 8" in lines
    assert "coalesced: in lessons.raw.csv alone" in lines
    assert any("stalls: long scoreboard 47% and drain 37%" in line for line in lines)
    written = json.loads(result.read_bytes())
    assert [file["file"] for file in written["counters"]] == [RAW.name, other.name]
    assert written["counters"][0]["kernels"][1]["metrics"]["load_sectors"] == 32


def test_kernels_of_two_variants_are_two(tmp_path):
    file = tmp_path / "run.csv"
    head, units, *rows = RAW.read_text().splitlines()
    kernels = [row for row in rows if "strided" in row]
    cells = [f'"0 ""<default domain>:gpulab:{name}:none:none"" ",' for name in ("a", "b", "b")]
    ranges = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
    table = [f'"{ranges}",{head}', f'"",{units}', *(cell + kernels[0] for cell in cells)]
    file.write_text("\n".join(table))
    found = [(kernel.range, kernel.launches) for kernel in read(file).kernels]
    assert found == [("b", 2), ("a", 1)]
    assert "strided, of b, 2 launches" in why(file).stdout


def test_launches_of_one_kernel_are_one_row(tmp_path):
    file = tmp_path / "twice.csv"
    rows = RAW.read_text().splitlines()
    file.write_text("\n".join([*rows, *rows[2:]]))
    once, twice = read(RAW).kernels[1], read(file).kernels[1]
    assert twice.launches == 2
    assert twice.metrics["dram_bytes"] == 2 * once.metrics["dram_bytes"]
    assert twice.metrics["sm_percent"] == pytest.approx(once.metrics["sm_percent"])


def test_means_are_weighted_by_time_and_a_sum_needs_every_part():
    short = CountedKernel(name="a", metrics={"duration_s": 1.0, "sm_percent": 10.0, "flops": 1.0})
    long = CountedKernel(
        name="b", metrics={"duration_s": 3.0, "sm_percent": 50.0, "load_sectors": 8.0}
    )
    both = together([short, long]).metrics
    assert both == {"duration_s": 4.0, "sm_percent": 40.0, "load_sectors": 8.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RAW.read_text().splitlines()[0], "no kernel of ncu"),
        ('"ID","Kernel Name","Metric Name"\n"0","k","Duration"', "--page raw --csv"),
        ('"ID","Kernel Name","Metric Name"\n"0","k","' + "x" * 200_000 + '"', "no CSV"),
    ],
)
def test_a_cut_or_broken_table_is_named(tmp_path, text, words):
    file = tmp_path / "cut.csv"
    file.write_text(text)
    done = why(file)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_readable_is_shown_beside_what_is_not(tmp_path):
    (tmp_path / "a.csv").write_text(RAW.read_text().splitlines()[0])
    (tmp_path / "b.csv").write_text(RAW.read_text())
    done = why(tmp_path)
    assert done.returncode == 0
    assert "a.csv: no kernel of ncu is in it" in done.stdout + done.stderr
    assert "strided" in done.stdout


@pytest.mark.parametrize("path", [RAW, DIRECT], ids=lambda path: path.name)
def test_damaged_tables_are_read_in_part_or_refused(tmp_path, path):
    draw = random.Random(7)
    whole = path.read_bytes()
    file = tmp_path / "damaged.csv"
    read_in_part = 0
    for _ in range(150):
        data = bytearray(whole[: draw.randrange(1, len(whole))])
        for _ in range(draw.choice((0, 1, 40))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        file.write_bytes(data)
        with suppress(ValueError):
            read_in_part += bool(read(file).kernels)
    assert 0 < read_in_part < 150


def test_other_files_are_left_to_others(tmp_path):
    for name, text in (
        ("trace.json", '{"traceEvents": [{"name": "Kernel Name"}]}'),
        ("stats.csv", '"Time (%)","Total Time (ns)","Instances","Name"\n"1","2","3","k"\n'),
        ("rocprof.csv", '"Kernel_Name","Counter_Name","Counter_Value"\n"k","SQ_WAVES","1"\n'),
    ):
        (tmp_path / name).write_text(text)
        assert not is_counters(tmp_path / name)


HAS_PACKAGE = find_spec("ncu_report") is not None


@pytest.fixture
def report(tmp_path):
    file = tmp_path / "lessons.ncu-rep"
    file.write_bytes(lzma.decompress((EXPORTS / "lessons.ncu-rep.xz").read_bytes()))
    return file


@pytest.mark.skipif(not HAS_PACKAGE, reason="ncu-report reads it")
def test_a_report_says_the_same_as_its_export(report):
    for ours, exported in zip(read(report).kernels, read(RAW).kernels, strict=True):
        assert ours.name == exported.name
        assert ours.metrics == pytest.approx(exported.metrics, rel=1e-4)
        assert ours.stalls == exported.stalls


@pytest.mark.skipif(not HAS_PACKAGE, reason="ncu-report reads it")
def test_a_report_that_is_cut_ends_in_a_message(report):
    whole = report.read_bytes()
    for size in (4, 12, 300):
        report.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="ncu-report finds no kernel in it"):
            read(report)


@pytest.mark.skipif(HAS_PACKAGE, reason="its package is installed")
def test_a_report_names_the_package_that_reads_it(report):
    done = why(report)
    assert done.returncode == 2
    assert "pip install ncu-report" in done.stderr
