"""Blocks on their way from the worker to its supervisor: nothing is lost, doubled or out of
order.
"""

import struct

import pytest

from gpulab.engine.processes.channel import SampleBuffer
from gpulab.engine.step_clock import Block

BLOCK = Block(time_s=1e-3, cpu_s=9e-4, faults=3, switches=1, ended=12.5, steps=40)


def test_blocks_come_out_once_in_the_order_of_their_measurement():
    buffer = SampleBuffer(("a", "control", "b"))
    buffer.add(0, 0, "b", BLOCK)
    buffer.add(0, 0, "a", BLOCK)
    assert len(buffer) == 2
    samples = buffer.take()
    assert (samples.names, samples.complete) == (("a", "control", "b"), 0)
    assert (samples.epoch, samples.round, samples.variant) == ([0, 0], [0, 0], [2, 0])
    assert (samples.times_s, samples.cpu_s, samples.ended, samples.steps) == (
        [1e-3] * 2,
        [9e-4] * 2,
        [12.5] * 2,
        [40] * 2,
    )
    assert (samples.faults, samples.switches, samples.sm_mhz) == ([3, 3], [1, 1], [])
    assert len(buffer) == 0
    assert buffer.take().epoch == []


def test_a_full_buffer_takes_no_more():
    buffer = SampleBuffer(("a",))
    while not buffer.full:
        buffer.add(0, len(buffer), "a", BLOCK)
    with pytest.raises(struct.error, match="buffer"):
        buffer.add(0, len(buffer), "a", BLOCK)
    samples = buffer.take()
    assert samples.round == list(range(len(samples.round)))


def test_a_forked_child_does_not_write_into_the_buffer_of_its_parent():
    buffer = SampleBuffer(("a",))
    parents = buffer._memory
    buffer.add(0, 0, "a", BLOCK)
    buffer.forked()
    assert len(buffer) == 0
    buffer.add(7, 7, "a", BLOCK)
    buffer._memory = parents
    assert buffer.take().epoch == [0]


def test_complete_epochs_stay_complete_when_the_buffer_is_emptied():
    buffer = SampleBuffer(("a",))
    buffer.add(0, 0, "a", BLOCK)
    buffer.complete(1)
    assert [buffer.take().complete, buffer.take().complete] == [1, 1]
    buffer.add(1, 0, "a", BLOCK)
    assert buffer.take().complete == 1
