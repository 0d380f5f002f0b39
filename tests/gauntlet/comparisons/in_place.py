"""A step of a simulation that moves its state on."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 1 << 16


def operands():
    return torch.randn(N), torch.randn(N), torch.randn(N)


@scenario.variant
def fresh_memory(lab):
    position, speed, force = operands()

    def step():
        speed.copy_(speed + 0.01 * force)
        position.copy_(position + 0.01 * speed)
        return position, speed

    return Work(step, inputs=force, state=(position, speed))


@scenario.variant
def in_place(lab):
    position, speed, force = operands()

    def step():
        speed.add_(force, alpha=0.01)
        position.add_(speed, alpha=0.01)
        return position, speed

    return Work(step, inputs=force, state=(position, speed))


@scenario.variant
def returning_nothing(lab):
    position, speed, force = operands()

    def step():
        torch.add(speed, force, alpha=0.01, out=speed)
        torch.add(position, speed, alpha=0.01, out=position)

    return Work(
        step,
        inputs=force,
        state={"position": position, "speed": speed},
        output=lambda: (position, speed),
    )
