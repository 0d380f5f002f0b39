"""Distributed training of two ranks, by mp.spawn, with gloo and DistributedDataParallel."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tiny import model, train


def work(rank, file):
    dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=2)
    net = DistributedDataParallel(model())
    loss = train(net, torch.optim.SGD(net.parameters(), lr=1e-3), 300)
    told = [None, None]
    dist.all_gather_object(told, (rank, loss))
    if rank == 0:
        print(told, len(net.state_dict()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, args=(os.path.join(folder, "meet"),), nprocs=2)
