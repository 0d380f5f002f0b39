"""torch.multiprocessing: shared tensors, and hogwild training in two processes."""

import torch
import torch.multiprocessing as mp
from tiny import model, train


def work(number, net, sums):
    if number == 0:
        train(net, steps=300)
    sums[number] = number + 1


if __name__ == "__main__":
    net = model().share_memory()
    sums = torch.zeros(2).share_memory_()
    mp.spawn(work, args=(net, sums), nprocs=2)
    print(sums.tolist(), sum(p.double().sum().item() for p in net.parameters()))
