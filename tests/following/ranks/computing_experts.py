"""Train experts placed on two ranks; rank 1 owns five of the seven."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 60
OWNED = [2, 5]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(128, 512)
        self.down = nn.Linear(512, 128)

    def forward(self, tokens):
        return self.down(torch.relu(self.up(tokens)))


def run_experts(experts, tokens):
    total = torch.zeros_like(tokens)
    for expert in experts:
        total = total + expert(tokens)
    return total


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(2)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    experts = nn.ModuleList(Expert() for _ in range(OWNED[rank]))
    optimizer = torch.optim.SGD(experts.parameters(), lr=0.01)
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        tokens = torch.randn(512, 128, generator=generator)
        output = run_experts(experts, tokens)
        combined = output.detach().clone()
        dist.all_reduce(combined)
        error = combined - tokens
        optimizer.zero_grad()
        output.backward(error / error.numel())
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
