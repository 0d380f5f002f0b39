"""A fleet of written run files: planted faults are found with their cause, healthy GPUs are not
accused.
"""

import shutil

import pytest
import recorded
import written_fleet

from gpulab.core import events as e
from gpulab.core.run_file import lines_of
from gpulab.features.fleet.folder import fold_folder
from gpulab.features.fleet.report import Resource
from gpulab.report.sentences import sentence

FAULTS = ["slow_hbm", "low_clock", "bad_link", "noisy_neighbour"]


def folded(folder, gpus, seed):
    written_fleet.write(folder, gpus, seed)
    return fold_folder(folder)


@pytest.mark.parametrize("seed", [101, 202, 303])
def test_planted_faults_are_found_with_their_cause_and_no_other(tmp_path, seed):
    gpus = written_fleet.fleet(40, seed, FAULTS)
    report = folded(tmp_path, gpus, seed)
    found, false, missed = written_fleet.judge(report, gpus)
    assert (found, false, missed) == (len(FAULTS), [], [])
    assert report.exit_code == 8
    assert (report.hosts, report.files, len(report.gpus)) == (40, 40, 40)


def test_a_healthy_fleet_has_no_outlier(tmp_path):
    report = folded(tmp_path, written_fleet.fleet(40, 7, []), 7)
    assert (report.outliers, report.exit_code, report.reason) == ([], 0, None)
    for gpu in report.gpus:
        assert set(gpu.ratios) == set(Resource)
        assert 0.9 < gpu.ratios[Resource.MEMORY].limit <= 0.97


def test_the_clock_explains_what_a_slow_clock_costs(tmp_path):
    gpus = written_fleet.fleet(8, 5, [])
    gpus[3].clock, gpus[3].reasons = 0.8, 0x20
    (outlier,) = folded(tmp_path, gpus, 5).outliers
    assert outlier.uuid == gpus[3].uuid
    assert outlier.slowest == Resource.COMPUTE
    ratio = outlier.ratios[Resource.COMPUTE]
    low, high = ratio.ratio.ends
    assert low < ratio.ratio.value < high < ratio.limit < 1
    assert ratio.ratio.value == pytest.approx(0.8, rel=0.03)
    assert outlier.cause.values["share"] > 0.9
    assert "thermal slowdown" in sentence(outlier.cause)


def test_files_that_are_none_are_named_and_skipped(tmp_path):
    gpus = written_fleet.fleet(4, 3, [])
    written_fleet.write(tmp_path, gpus, 3)
    foreign = written_fleet.spoil(tmp_path)
    cut = tmp_path / "cut.jsonl"
    whole = (tmp_path / "node-0000-0.jsonl").read_bytes()
    cut.write_bytes(whole[: whole.index(b'"type":"WorkerReady"')])
    report = fold_folder(tmp_path)
    reasons = {file.file: file.reason for file in report.skipped}
    assert sorted(reasons) == sorted([*foreign, "cut.jsonl"])
    assert "garbled" in reasons["garbled.jsonl"]
    assert "version 9" in reasons["newer.jsonl"]
    assert "incomplete" in reasons["cut.jsonl"]
    assert (report.files, report.exit_code) == (4, 0)


def test_a_gpu_whose_run_failed_is_an_outlier(tmp_path):
    gpus = written_fleet.fleet(5, 3, [])
    written_fleet.write(tmp_path, gpus, 3)
    file = tmp_path / "node-0002-0.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"type":"RunStarted"' in line or b'"format"' in line]
    kept.append(written_fleet.encode(e.RunEnded(outcome="failed")))
    file.write_bytes(b"".join(kept))
    (outlier,) = fold_folder(tmp_path).outliers
    assert outlier.host == "node-0002"
    assert sentence(outlier.cause) == "no measurement: the run failed"


def test_too_few_gpus_and_none_have_codes_of_their_own(tmp_path):
    empty = fold_folder(tmp_path)
    assert (empty.exit_code, empty.reason.code) == (3, "no_run_files")
    report = folded(tmp_path / "three", written_fleet.fleet(3, 3, []), 3)
    assert (report.exit_code, report.reason.code) == (6, "too_few_gpus")
    assert len(report.gpus) == 3


def test_several_files_of_a_gpu_count_together(tmp_path):
    gpus = written_fleet.fleet(6, 11, [])
    for run in range(2):
        written_fleet.write(tmp_path / f"run-{run}", gpus, run)
    report = fold_folder(tmp_path)
    assert (report.files, len(report.gpus)) == (12, 6)
    assert [len(gpu.files) for gpu in report.gpus] == [2] * 6
    shutil.rmtree(tmp_path / "run-1")


def test_a_fleet_of_calibrations_has_ceilings_alone(tmp_path):
    whole = recorded.run_file("calibration", tmp_path).read_text()
    (tmp_path / "calibration.jsonl").unlink()
    for number in range(4):
        text = whole.replace('"host":"vm"', f'"host":"node-{number}"')
        (tmp_path / f"{number}.jsonl").write_text(text)
    report = fold_folder(tmp_path)
    assert (report.exit_code, report.hosts) == (0, 4)
    assert all(Resource.MEMORY in gpu.ratios for gpu in report.gpus)


def test_only_lines_of_the_asked_types_are_read_and_a_cut_one_is_dropped(tmp_path):
    written_fleet.write(tmp_path, written_fleet.fleet(1, 1, []), 1)
    (file,) = tmp_path.iterdir()
    types = [name for name, _ in lines_of(file, ["RunStarted", "RunEnded"])]
    assert types == ["RunStarted", "RunEnded"]
    file.write_bytes(file.read_bytes()[:-1])
    assert [name for name, _ in lines_of(file, ["RunStarted", "RunEnded"])] == ["RunStarted"]
