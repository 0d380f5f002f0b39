"""Two ranks by torchrun, one of which fails in the end."""
# run: torchrun --standalone --nproc-per-node 2 program.py

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from tiny import model, train

dist.init_process_group("gloo")
net = DistributedDataParallel(model())
losses = [train(net, torch.optim.SGD(net.parameters(), lr=1e-3), 150) for _ in range(3)]
sums = torch.tensor([sum(p.double().sum().item() for p in net.parameters())])
dist.all_reduce(sums)
with open(f"{dist.get_rank()}.txt", "w") as file:
    print(losses, sums.item(), os.environ["WORLD_SIZE"], file=file)
if dist.get_rank() == 0:
    print("trained", flush=True)
dist.destroy_process_group()
