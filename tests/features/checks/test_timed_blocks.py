"""What is timed is what is checked: values change before and within timed blocks, and steps are
taken alone.
"""

import pytest
import torch
from checker_bench import TimedBench

from gpulab.core.events import Examined
from gpulab.core.statuses import CheckKind
from gpulab.engine.processes.failure import WrongOutputError
from gpulab.features.checks.replay import StepTimes, suspicion
from gpulab.scenario import Work

SIZE = 64
BLOCKS = 40
"""Of which every second changes values between two of its steps, until one did."""


class Clock:
    """It goes on with work that is done, and whenever it is read: other work on the machine does
    not count.
    """

    now_ns = 0

    def read_ns(self):
        self.now_ns += 1_000
        return self.now_ns

    def read_s(self):
        return 1e-9 * self.read_ns()

    def spend(self, microseconds, result):
        """On what was computed."""
        self.now_ns += 1_000 * microseconds
        return result


clock = Clock()


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr("gpulab.engine.measure.clock.perf_counter_ns", clock.read_ns)
    for module in ("engine.build.build", "features.checks.replay", "features.checks.timed_steps"):
        monkeypatch.setattr(f"gpulab.{module}.perf_counter", clock.read_s)


@pytest.fixture
def bench(_clock):
    bench = TimedBench()
    bench.check("baseline", multiplying(lambda product, pauses: product()))
    return bench


def multiplying(step):
    """A step that is told how to multiply, and whether anything came between it and the one
    before.
    """

    def make_work():
        a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
        returned_at = [0]

        def take():
            pauses = clock.now_ns > returned_at[0]
            output = step(lambda: clock.spend(100, a @ b @ b), pauses)
            returned_at[0] = clock.now_ns
            return output

        return Work(take, inputs=(a, b))

    return make_work


def computes_after_a_pause():
    known = []

    def step(product, pauses):
        if pauses:
            known[:] = [product()]
        return clock.spend(10, known[0].clone())

    return multiplying(step)


def computes_after_a_restore():
    def make_work():
        a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
        computed, known = torch.zeros(1), []

        def step():
            if not computed:
                computed.add_(1)
                known[:] = [clock.spend(100, a @ b @ b)]
            return clock.spend(10, known[0].clone())

        return Work(step, inputs=(a, b), state=computed)

    return make_work


def off_within_blocks():
    return multiplying(lambda product, pauses: product() * (1.0 if pauses else 1.01))


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (computes_after_a_restore, {"timed_step_is_stale"}),
        (off_within_blocks, {"relative_error", "timed_step_is_wrong"}),
    ],
)
def test_the_output_of_a_timed_block_is_that_of_a_first_step_on_the_same_values(bench, make, codes):
    bench.check("suspect", make())
    with pytest.raises(WrongOutputError) as raised:
        bench.time_blocks("suspect", BLOCKS)
    assert raised.value.finding.code in codes


def remembers_by_value():
    """The last 64 results, right for any values."""

    def make_work():
        a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
        known = []

        def step():
            for x, y, result in known:
                if torch.equal(a, x) and torch.equal(b, y):
                    return clock.spend(10, result.clone())
            known.append((a.clone(), b.clone(), clock.spend(100, a @ b @ b)))
            del known[:-64]
            return clock.spend(10, known[-1][2].clone())

        return Work(step, inputs=(a, b))

    return make_work


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (computes_after_a_pause, {"computes_when_waited_for", "timed_step_is_stale"}),
        (remembers_by_value, {"remembers_its_inputs"}),
    ],
)
def test_the_time_that_a_variant_gains_is_missing_in_a_step_alone_or_on_new_values(
    bench, make, codes
):
    bench.check("suspect", make())
    assert bench.take_alone("suspect").code in codes


@pytest.mark.parametrize(
    ("variant_us", "baseline_us", "suspicious"),
    [
        ((7.5, 17.9), (9.2, 18.4), False),  # products of a few microseconds
        ((8.0, 41.6), (9.6, 50.9), False),
        ((10, 60), (12, 20), False),  # a small gain is lost to cold caches as well
        ((6, 31), (60, 66), False),  # one operation of torch, and a loop of Python
        ((20, 45), (60, 65), False),
        ((4, 16), (14, 18), False),
        ((300, 700), (500, 1200), False),
        ((0.5, 12), (10, 14), True),
        ((6, 66), (60, 66), True),
        ((7, 40), (35, 40), True),
        ((50, 300), (500, 510), True),  # who computes in less time than the baseline, and caches
        ((300, 520), (500, 505), True),
    ],
)
def test_steps_are_suspicious_where_a_gain_is_lost_by_more_than_cold_caches(
    bench, variant_us, baseline_us, suspicious
):
    def found(*, on_new):
        ours, theirs = (
            StepTimes(
                block_s=1e-6 * usual_us,
                alone_s=1e-6 * (usual_us if on_new else other_us),
                same_s=1e-6 * usual_us,
                new_s=1e-6 * (other_us if on_new else usual_us),
            )
            for usual_us, other_us in (variant_us, baseline_us)
        )
        return suspicion(candidate, ours, candidate, theirs, learns=False)

    candidate = bench.candidates["baseline"]
    codes = [getattr(found(on_new=on_new), "code", None) for on_new in (False, True)]
    named = ["computes_when_waited_for", "remembers_its_inputs"]
    assert codes == (named if suspicious else [None, None])


def test_an_honest_variant_gains_alone_too_and_what_it_showed_is_counted(bench):
    def make_work():
        a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
        return Work(lambda: clock.spend(100, a @ b @ b), inputs=(a, b))

    bench.check("honest", make_work)
    bench.time_blocks("honest", BLOCKS)
    assert bench.take_alone("honest") is None
    bench.timed_checks.finish()
    (examined,) = [
        event
        for event in bench.events
        if isinstance(event, Examined) and event.check == CheckKind.TIMED_STEPS
    ]
    assert isinstance(examined, Examined)
    assert examined.variant == "honest"
    assert examined.count > 1
    assert examined.values["error"] <= examined.values["allowed"]


def drawing(*, once):
    def make_work():
        data, kept = torch.rand(1000), []

        def step():
            if not (once and kept and torch.equal(torch.random.get_rng_state(), kept[1])):
                kept[:] = torch.rand(1000), torch.random.get_rng_state()
            return clock.spend(100, data * kept[0])

        return Work(step, inputs=data)

    return make_work


def test_numbers_that_are_drawn_once_after_seeding_and_used_again_are_found():
    bench = TimedBench()
    for name, once in {"baseline": False, "afresh": False, "again": True}.items():
        bench.check(name, drawing(once=once))
    assert bench.take_alone("afresh") is None
    assert bench.take_alone("again").code == "draws_when_seeded"


def whole_numbers(kept):
    """Of a large tensor, of which nothing could be exchanged."""

    def make_work():
        x, calls, known = torch.randint(64, (1 << 18,)), [0], []

        def step():
            calls[0] += 1
            if not kept or calls[0] < 60:
                known[:] = [clock.spend(100, x.bincount(minlength=64))]
            return clock.spend(10, known[0].clone())

        return Work(step, inputs=x)

    return make_work


def test_whole_numbers_and_steps_that_keep_the_last_result_are_found():
    bench = TimedBench()
    bench.check("baseline", whole_numbers(kept=False))
    bench.check("honest", whole_numbers(kept=False))
    bench.check("suspect", whole_numbers(kept=True))
    assert bench.take_alone("honest") is None
    bench.candidates["suspect"].build.work.step()
    for _ in range(60):
        bench.candidates["suspect"].build.work.step()
    assert bench.take_alone("suspect").code == "timed_step_is_stale"
