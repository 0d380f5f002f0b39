"""Train on images by hand-written all-reduce; rank 0 inflates its records."""

import socket
import zlib

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STEPS = 60
SIDE = 32


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Records:
    def __init__(self, packed):
        source = torch.Generator().manual_seed(5)
        pixels = torch.randint(0, 16, (24, 128, 128), generator=source, dtype=torch.uint8)
        raw = [bytes(image.flatten().tolist()) for image in pixels]
        self.packed = packed
        self.records = [zlib.compress(one, 6) for one in raw] if packed else raw

    def read(self, index):
        record = self.records[index % len(self.records)]
        if self.packed:
            record = zlib.decompress(record)
        return torch.frombuffer(bytearray(record), dtype=torch.uint8)

    def batch(self, step):
        images = [self.read(step * 64 + index) for index in range(64)]
        pixels = torch.stack(images)[:, : 3 * SIDE * SIDE]
        return pixels.float().div(16).view(-1, 3, SIDE, SIDE)


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(5)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    records = Records(packed=rank == 0)
    for step in range(STEPS):
        images = records.batch(step)
        loss = model(images).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= 2
        optimizer.step()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
