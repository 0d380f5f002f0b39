"""What a step returns is waited for inside the clock; what is there costs nothing, whatever it is
made of.
"""

import threading
import time
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
import torch

from gpulab.engine.build.build import Build
from gpulab.engine.build.tensors import leaves
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.step_clock import is_asynchronous, paced, wait_for
from gpulab.scenario import Work


class Array:
    """As an array of JAX: it is there once it has been waited for."""

    waited = 0

    def block_until_ready(self):
        self.waited += 1
        return self


class Promise:
    """Computes when its values are asked for."""

    asked = 0

    def __dlpack__(self, **options):
        Promise.asked += 1


def future(result=None):
    done = Future()
    done.set_result(result)
    return done


THERE = (
    None,
    1,
    2.0,
    True,
    "x",
    torch.ones(2),
    torch.nn.Parameter(torch.ones(2)),
    [torch.ones(1), None],
    np.ones(2),
)


@pytest.mark.parametrize("result", THERE, ids=lambda result: type(result).__name__)
def test_what_is_there_is_not_waited_for(result):
    assert not is_asynchronous(result)
    wait_for(result)
    step = object()
    assert paced(step, result) is step


@pytest.mark.parametrize(
    "wrap", [lambda it: it, lambda it: [1, it], lambda it: {"loss": (it,)}, future]
)
def test_an_array_is_waited_for_wherever_it_is(wrap):
    array = Array()
    assert is_asynchronous(wrap(array))
    wait_for(wrap(array))
    assert array.waited == 1


def test_an_object_that_nobody_knows_is_asked_for_its_values():
    asked = Promise.asked
    wait_for(Promise())
    assert Promise.asked == asked + 1


def test_futures_of_torch_and_of_pools_of_processes_are_waited_for():
    result = torch.futures.Future()
    threading.Timer(0.01, result.set_result, [3]).start()
    assert is_asynchronous(result)
    wait_for(result)
    assert result.done()


def test_the_value_of_a_future_is_what_is_compared():
    of_torch = torch.futures.Future()
    of_torch.set_result(torch.ones(2))
    with ThreadPool(1) as pool:
        pending = [of_torch, future(torch.ones(1)), pool.apply_async(float, ("2",))]
        assert [leaf.tolist() for leaf in leaves(pending)] == [[1, 1], [1], 2]


def test_a_future_that_failed_raises_what_it_failed_with():
    failed = Future()
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        wait_for(failed)


def test_a_block_ends_when_all_of_its_results_are_there():
    with ThreadPoolExecutor(1) as pool:
        running = []

        def step():
            running.append(pool.submit(time.sleep, 2e-3))
            return running[-1]

        block = WallClock(None).block(Build(Work(step), 0.0, None), 20)
        assert all(future.done() for future in running)
    assert block.time_s >= 2e-3


def test_no_more_than_some_results_of_a_block_run_at_a_time():
    running, most = [], []

    class Counted(Array):
        def __init__(self):
            running.append(self)
            most.append(len(running))

        def block_until_ready(self):
            if self in running:
                running.remove(self)
            return self

    WallClock(None).block(Build(Work(Counted), 0.0, None), 50)
    assert running == []
    assert 1 < max(most) < 16


def test_an_output_is_not_kept_beyond_its_step():
    """Else the next one would go to other memory, and the outputs of a block need twice as much of
    the cache.
    """
    outputs, alive = weakref.WeakSet(), []

    class Output:
        pass

    def step():
        alive.append(len(outputs))
        output = Output()
        outputs.add(output)
        return output

    WallClock(None).block(Build(Work(step), 0.0, None), 50)
    assert max(alive) == 0
