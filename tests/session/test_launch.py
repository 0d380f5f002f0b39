"""What a user names becomes runs to make, or the reason why one cannot be made here."""

from dataclasses import replace

import pytest
from found import finding
from scenario_files import FUNCTIONS, SCENARIO, write

from gpulab.catalog.catalog import ScenarioNotFoundError, catalog
from gpulab.core.jobs import TimeFunctions
from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.options import Options, UsageError
from gpulab.session import launch as launches
from gpulab.session.launch import (
    launches_of,
    plan,
    single_launch,
    start_entry,
    sweep_launches,
)

ON_CPU = Options(device="cpu")
NO_GPU = finding("no_gpu", need="cuda")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def unmet(monkeypatch):
    """Every need is unmet."""
    monkeypatch.setattr(launches, "first_missing", lambda needs, device: NO_GPU if needs else None)


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "many" / "b_good.py")
    write(tmp_path / "many" / "a_broken.py", "from gpulab import Scenario\nscenario = Scenario(\n")
    write(tmp_path / "many" / "c_cuda.py", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    write(tmp_path / "many" / "train.py", FUNCTIONS)
    return tmp_path


def names_of(launches):
    return [(launch.entry.name, launch.functions, launch.named) for launch in launches]


def test_a_name_or_a_file_is_one_run_that_must_be_made(files):
    assert names_of(launches_of("batched_matmul")) == [("batched_matmul", (), True)]
    assert names_of(launches_of("many/b_good.py")) == [("b_good", (), True)]
    assert single_launch("many/b_good.py").label == "b_good"


def test_a_function_has_the_same_label_from_a_list_as_by_its_name(files, monkeypatch):
    (entry,) = [
        entry for entry in catalog([files / "many" / "train.py"]) if entry.function == "step"
    ]
    paths = []
    monkeypatch.setattr(launches, "start", lambda request, path: paths.append(path))
    monkeypatch.setattr(launches, "default_path", lambda label, _: label)
    start_entry(entry, ON_CPU)
    assert paths == [single_launch("many/train.py:step").label] == ["train-step"]
    assert single_launch("many/train.py:step, scale").label == "train-step-scale"


def test_no_label_leaves_its_folder_or_is_too_long_for_a_file(files):
    good = single_launch("many/b_good.py")
    for point in (
        ("n", "../../x"),
        ("../../x", "1"),
        ("n", "é" * 5000),
        ("n", "\0\n\x1b[2J"),
        ("n", "\udcff"),
    ):
        label = replace(good, points=(point,)).label
        assert "/" not in label
        assert len(label.encode()) < 200


def test_a_file_that_hides_a_lesson_is_said_to_be_it(files):
    mine = write(files / "scenarios" / "batched_matmul.py")
    hides = plan(single_launch("batched_matmul"), ON_CPU).job.subject.hides
    assert hides == single_launch("batched_matmul").entry.hides
    assert (hides.values["file"], hides.values["lesson"]) == (str(mine), True)
    assert plan(single_launch(str(mine)), ON_CPU).job.subject.hides is None
    write(mine, "from gpulab import Scenario\nscenario = Scenario(\n")
    assert plan(single_launch("batched_matmul"), ON_CPU).explanations == [hides]


def test_functions_of_a_file_are_one_run(files):
    assert names_of(launches_of("many/train.py:step, scale")) == [
        ("train", ("step", "scale"), True)
    ]
    request = plan(single_launch("many/train.py:step"), ON_CPU)
    assert isinstance(request.job, TimeFunctions)
    assert request.job.subject.scenario == "train:step"


def test_a_folder_is_its_scenarios_and_all_is_the_catalog(files):
    assert names_of(launches_of("many")) == [
        ("a_broken", (), False),
        ("b_good", (), False),
        ("c_cuda", (), False),
    ]
    everything = launches_of("all")
    assert not any(launch.named for launch in everything)
    assert [launch.entry.name for launch in everything] == [entry.name for entry in catalog()]


def test_a_sweep_is_a_run_a_value_with_labels_for_files(files):
    swept = sweep_launches(single_launch("many/b_good.py"), ["name=a/b,c d"], ON_CPU)
    assert [launch.points for launch in swept] == [(("name", "a/b"),), (("name", "c d"),)]
    assert [launch.label for launch in swept] == ["b_good-name-a_b", "b_good-name-c_d"]
    requests = [
        plan(launch, ON_CPU)
        for launch in sweep_launches(single_launch("many/b_good.py"), ["n"], ON_CPU)
    ]
    assert [request.job.subject.params["n"] for request in requests] == [16, 64]


def test_several_sweeps_are_a_grid(files):
    grid = sweep_launches(single_launch("many/b_good.py"), ["name=a,b", "n=1,2"], ON_CPU)
    assert [launch.label for launch in grid][1:3] == ["b_good-name-a-n-2", "b_good-name-b-n-1"]
    params = [plan(launch, ON_CPU).job.subject.params for launch in grid]
    assert [(each["name"], each["n"]) for each in params] == [
        ("a", 1),
        ("a", 2),
        ("b", 1),
        ("b", 2),
    ]


def test_a_name_may_be_a_pattern_of_several(files):
    assert {launch.entry.name for launch in launches_of("batched_.*")} == {
        "batched_matmul",
        "batched_gemm_cublas",
    }
    for name in ("batched_", "batched_(", "no.*such"):
        with pytest.raises(ScenarioNotFoundError):
            launches_of(name)


def test_what_cannot_be_swept_is_a_usage_error(files):
    with pytest.raises(UsageError, match="a plain function has no parameters"):
        sweep_launches(single_launch("many/train.py:step"), ["n=1"], ON_CPU)
    with pytest.raises(UsageError, match=r"--set n=\.\.\. and --sweep n: one or the other"):
        sweep_launches(
            single_launch("many/b_good.py"), ["n=1"], Options(device="cpu", chosen={"n": "3"})
        )
    broken = single_launch("many/a_broken.py")
    assert sweep_launches(broken, ["n=1"], ON_CPU) == [broken]  # its error is what there is to say


def test_of_several_each_takes_the_parameters_that_it_has(files):
    good, functions = single_launch("many/b_good.py"), single_launch("many/train.py:step")
    chosen = Options(device="cpu", chosen={"n": "7", "mib": "3"})
    assert plan(good, chosen, several=True).job.subject.params["n"] == 7
    assert isinstance(plan(functions, chosen, several=True).job, TimeFunctions)
    with pytest.raises(UsageError, match="has no parameter 'mib'"):
        plan(good, chosen)
    with pytest.raises(UsageError, match="a plain function has no parameters"):
        plan(functions, chosen)


def test_an_unmet_need_fails_what_was_named_and_skips_what_was_not(files, unmet):
    named = plan(single_launch("many/c_cuda.py"), ON_CPU)
    assert (named.outcome, named.exit_code, named.reason) == (
        Conclusion.FAILED,
        ExitCode.FAILED,
        NO_GPU,
    )
    skipped = plan(launches_of("many")[2], ON_CPU)
    assert (skipped.outcome, skipped.exit_code, skipped.reason) == (
        Conclusion.SKIPPED,
        ExitCode.MEASURED,
        NO_GPU,
    )
    assert skipped.scenario == "c_cuda"


def test_a_need_of_the_baseline_alone_keeps_the_scenario_from_running(tmp_path, unmet):
    needy = SCENARIO.replace(
        "@scenario.variant\ndef two", '@scenario.variant(needs=("cuda",))\ndef two'
    )
    assert plan(single_launch(str(write(tmp_path / "x.py", needy))), ON_CPU).reason == NO_GPU


def test_a_topic_and_a_stage_stand_for_their_lessons():
    named = {entry.name: entry.row.topic for entry in catalog()}
    compute = [launch.entry.name for launch in launches_of("topic:compute")]
    assert compute == [name for name, topic in named.items() if topic == "compute"]
    first, *_ = launches_of("stage:1")
    assert first.entry.name == "cold_start"
    assert not first.named
    with pytest.raises(ScenarioNotFoundError, match="no topic 'gardening': data movement"):
        launches_of("topic:gardening")
    with pytest.raises(ScenarioNotFoundError, match="no stage '0': stage:1 Profile first"):
        launches_of("stage:0")
