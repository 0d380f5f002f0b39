"""The engine from outside: ladders, teardown, variants alone, compiled steps, its own
environment.
"""

from itertools import groupby

import pytest
from finished_runs import events_of, measured_speedup

from gpulab.core.events import Checked, StageStarted
from gpulab.core.statuses import Verdict

HEAD = '''
"""Engine: repeated work."""
import contextlib, inspect, os
import torch
from gpulab import Scenario, Work
scenario = Scenario("engine"{keywords})
DATA = torch.rand(20_000)
EVENTS = open(__file__ + ".txt", "a", buffering=1)

def work(times, **more):
    data = DATA.clone()
    def step():
        for _ in range(times):
            out = data * 2
        return out
    return Work(step, inputs=data, **more)

def note(*words):
    print(*words, file=EVENTS)
'''


def run(lab, name, keywords, body, *arguments, time_s):
    """The finished run of a scenario of that name, with a run file that later runs leave alone."""
    finished = lab.run(
        lab.write(f"{name}.py", HEAD.format(keywords=keywords) + body),
        *arguments,
        time_s=time_s,
    )
    finished.run_file = finished.run_file.rename(lab.folder / f"{name}.jsonl")
    return finished


def notes(finished, name):
    """What the scenario wrote down, word by word."""
    return (finished.run_file.parent / f"{name}.py.txt").read_text().split()


LADDER = """
@scenario.variant
def a(lab):
    note("up")
    lab.report("threads", torch.get_num_threads())
    lab.report("mmap threshold", int(os.environ["MALLOC_MMAP_THRESHOLD_"]))
    lab.report("top pad", int(os.environ.get("MALLOC_TOP_PAD_", -1)))
    lab.report("own", int(os.environ["OWN"]))
    lab.report("folders of the run", os.path.isdir(os.path.dirname(os.environ["OF_THE_RUN"])))
    above = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[1]  # this process
    lab.report("own process group", os.getpgid(0) == int(above))
    lab.report("last to be spared", int(open("/proc/self/oom_score_adj").read()))
    lab.report("own layout", any(frame.function == "in_own_layout" for frame in inspect.stack()))
    yield work(9)
    note("down")

@scenario.variant
def b(lab):
    lab.report("tokens/s", 3)
    built = work(3)
    def step():
        with lab.phase("data"):
            return built.step()
    return Work(step, inputs=built.inputs)

@scenario.variant
def c(lab):
    return work(1)

@scenario.variant
def wrong(lab):
    note("up")
    built = work(1)
    yield Work(lambda: built.step() * 0, inputs=built.inputs)
    note("down")

@scenario.variant(against=None)
def scale(lab):
    return Work(lambda: DATA[:10] * 3, items=5)

@scenario.variant(against="c")
def low(lab):
    data = DATA.bfloat16()
    return Work(lambda: data * 2, inputs=data, dtype="bf16")
"""


@pytest.fixture(scope="module")
def ladder(module_lab):
    keywords = (
        ", ladder=True, env={'OWN': '7', 'MALLOC_TOP_PAD_': None, 'OF_THE_RUN': '{folder}/x'}"
    )
    return run(module_lab, "ladder", keywords, LADDER, time_s="0.3")


def test_a_ladder_compares_with_the_baseline_and_the_rung_below(ladder):
    comparisons = {
        (entry["variant"], entry["against"]): entry["verdict"]
        for entry in ladder.run["comparisons"]
    }
    assert comparisons.pop(("wrong", "a")) == comparisons.pop(("wrong", "c")) == Verdict.WRONG
    assert set(comparisons) == {("b", "a"), ("c", "a"), ("c", "b"), ("low", "a"), ("low", "c")}
    assert measured_speedup(ladder, "c", "a") > 1
    assert "vs b" in ladder.stderr


def test_every_build_is_torn_down_and_one_that_fails_too(ladder):
    words = notes(ladder, "ladder")
    assert ladder.variant("wrong")["status"] == "wrong"
    assert words.count("up") == words.count("down") > 10
    depth = 0
    for word in words:
        depth += 1 if word == "up" else -1
        assert 0 <= depth <= 2  # the baseline and the control


def test_the_stages_come_in_order(ladder):
    started = [(event.stage, event.variant) for event in events_of(ladder, StageStarted)]
    stages = [stage for stage, _ in groupby(started)]  # a check has several parts
    each = ["build", "check", "calibrate", "warm-up", "count"]
    assert stages == [
        ("load", None),
        *((stage, name) for name in "abc" for stage in each),
        *((stage, "wrong") for stage in each[:2]),
        *((stage, name) for name in ("scale", "low") for stage in each),
        ("measure", None),
        *(("re-check", name) for name in ("a", "b", "c", "scale", "low")),
    ]  # whatever the processes after the first repeat


def test_a_figure_of_the_author_stands_beside_the_result(ladder):
    (figure,) = [figure for figure in ladder.run["figures"] if figure["variant"] == "b"]
    assert (figure["name"], figure["value"]) == ("tokens/s", 3.0)
    assert "b: tokens/s 3" in ladder.stderr


OF_BOTH = """
@scenario.variant
def one(lab):
    lab.report("mine", 1)
    data = torch.rand(1000)
    return Work(lambda: data * 2, inputs=data)

@scenario.variant
def two(lab):
    lab.report("mine", 2)
    data = torch.rand(1000)
    return Work(lambda: data + data, inputs=data)
"""


def test_a_figure_is_of_the_variant_that_reports_it(lab):
    """Checks of one variant build the baseline again."""
    path = lab.write("of_both.py", HEAD.format(keywords="") + OF_BOTH)
    figures = lab.run(path, "--smoke").run["figures"]
    assert {figure["variant"]: figure["value"] for figure in figures} == {"one": 1, "two": 2}


def test_what_is_only_for_scale_is_timed_and_neither_checked_nor_compared(ladder):
    assert ladder.variant("scale")["status"] == "ok"
    assert ladder.variant("scale")["items"] == 5
    assert ladder.variant("scale")["time_s"]["value"] > 0
    assert ladder.comparison("scale") == {}
    assert not any(event.variant == "scale" for event in events_of(ladder, Checked))


def test_lower_precision_is_noted_with_its_tolerance(ladder):
    (finding,) = ladder.findings("lower_precision")
    assert (finding["variant"], finding["values"]) == ("low", {"allowed": 2e-2, "baseline": 1e-4})


def test_phases_are_recorded_and_nothing_is_profiled_unasked(ladder):
    assert 0 < ladder.variant("b")["goodput"]["phases"]["data"] <= 1
    assert ladder.variant("b")["goodput"]["goodput"] is None
    assert ladder.variant("a")["goodput"] is None


def test_the_worker_s_environment_is_pinned_and_a_scenario_may_change_it(ladder):
    assert ladder.run["device"]["threads"] == 1
    assert ladder.variant("a")["contention"] is not None
    assert {
        figure["name"]: figure["value"]
        for figure in ladder.run["figures"]
        if figure["variant"] == "a"
    } == {
        "threads": 1,
        "mmap threshold": 32 << 20,
        "top pad": -1,
        "own": 7,
        "folders of the run": 1,
        "own process group": 1,
        "last to be spared": 1000,
        "own layout": 1,
    }


ALONE = """
live = []

@contextlib.contextmanager
def alone(name):
    live.append(name)
    note("+".join(sorted(set(live))))
    yield
    live.remove(name)

@scenario.variant
def a(lab):
    lab.report("threads", torch.get_num_threads())
    lab.report("top pad", int(os.environ["MALLOC_TOP_PAD_"]))
    with alone("a"):
        yield work(3)

@scenario.variant
def b(lab):
    with alone("b"):
        yield work(1)

@scenario.variant
def many(lab):
    with alone("many"):
        yield work(24, items=8)

@scenario.variant(unchecked="half of it")
def half(lab):
    with alone("half"):
        yield Work(lambda: DATA[:10_000] * 2, items=0.5)
"""


@pytest.fixture(scope="module")
def alone(module_lab):
    return run(
        module_lab, "alone", ", exclusive=True, per='item'", ALONE, "--threads", "2", time_s="0.5"
    )


@pytest.mark.slow
def test_variants_that_need_the_device_to_themselves_never_share_it(alone):
    assert set(notes(alone, "alone")) == {"a", "b", "many", "half"}
    assert alone.run["method"]["epochs"] >= 8
    assert measured_speedup(alone, "b", "a") > 1
    assert [event.when for event in events_of(alone, Checked) if event.variant == "b"] == [
        "before",
        "after",
    ]


@pytest.mark.slow
def test_different_amounts_are_compared_per_item(alone):
    times = {name: alone.variant(name)["time_s"]["value"] for name in ("a", "many")}
    # of 8 items, whatever each took
    assert 4 < measured_speedup(alone, "many", "a") * times["many"] / times["a"] < 16
    assert alone.variant("half")["items"] == 0.5
    assert alone.variant("half")["unchecked"]["values"] == {"reason": "half of it"}


@pytest.mark.slow
def test_more_threads_are_the_user_s_choice(alone):
    figures = {figure["name"]: figure["value"] for figure in alone.run["figures"]}
    assert figures == {"threads": 2, "top pad": 256 << 20}
    assert alone.run["device"]["threads"] == 2
    assert alone.variant("a")["contention"] is None


COMPILED = """
def chain(x):
    return (x + 1) * 2

@scenario.variant
def eager(lab):
    data = DATA.clone()
    return Work(lambda: chain(data), inputs=data)

@scenario.variant
def compiled(lab):
    data = DATA.clone()
    step = torch.compile(chain)
    return Work(lambda: step(data), inputs=data)
"""


@pytest.mark.slow
@pytest.mark.skipif("not __import__('shutil').which('g++')", reason="needs a C++ compiler")
def test_compiled_steps_are_measured_and_leave_nothing_behind(lab):
    finished = run(lab, "compiled", ", needs=('compiler',)", COMPILED, time_s="0.2")
    assert finished.variant("compiled")["status"] == "ok"
    assert (
        finished.variant("compiled")["first_step_s"]
        > 10 * finished.variant("eager")["first_step_s"]
    )
    # each build compiles anew
    assert finished.run["method"]["epochs"] >= 8 or finished.findings("expensive_builds")
    assert finished.comparison("compiled")["pairs"] > 0
    assert finished.findings("processes_left_running") == []
    assert lab.none_left(within=1)
