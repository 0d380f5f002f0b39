"""An epoch over a small data set: by hand, by a generator, by a loader, ahead in a thread."""

import itertools
import queue
import threading

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
SAMPLES, BATCH, N = 512, 128, 64


def operands():
    return torch.randn(SAMPLES, N), torch.randn(N, N)


@scenario.variant
def slices(lab):
    data, weight = operands()
    return Work(
        lambda: sum((batch @ weight).relu().sum(0) for batch in data.split(BATCH)),
        inputs=(data, weight),
    )


@scenario.variant
def generator(lab):
    data, weight = operands()

    def batches():
        for at in range(0, SAMPLES, BATCH):
            yield {"x": data[at : at + BATCH]}

    return Work(
        lambda: sum((batch["x"] @ weight).relu().sum(0) for batch in batches()),
        inputs=(data, weight),
    )


@scenario.variant
def loader(lab):
    data, weight = operands()
    batches = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data), BATCH, num_workers=0
    )
    return Work(lambda: sum((x @ weight).relu().sum(0) for (x,) in batches), inputs=(data, weight))


@scenario.variant
def endless_iterator(lab):
    """An iterator that begins anew where it ends."""
    data, weight = operands()
    batches = itertools.cycle(data.split(BATCH))

    def step():
        chosen = itertools.islice(batches, SAMPLES // BATCH)
        return sum((batch @ weight).relu().sum(0) for batch in chosen)

    return Work(step, inputs=(data, weight))


@scenario.variant
def ahead_in_a_thread(lab):
    data, weight = operands()

    def step():
        waiting = queue.SimpleQueue()
        thread = threading.Thread(
            target=lambda: [waiting.put(batch.clone()) for batch in data.split(BATCH)]
        )
        thread.start()
        total = sum((waiting.get() @ weight).relu().sum(0) for _ in range(SAMPLES // BATCH))
        thread.join()
        return total

    return Work(step, inputs=(data, weight))


@scenario.variant
def no_loop(lab):
    data, weight = operands()
    return Work(
        lambda: (data @ weight).relu().sum(0), inputs={"data": data, "model": {"weight": weight}}
    )
