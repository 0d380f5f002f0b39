"""Iterate a shared matrix in spawned ranks; both do the same heavy products."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

STEPS = 50


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def train(rank, port):
    torch.set_num_threads(1)
    torch.manual_seed(30 + rank)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    own = torch.randn(640, 640) / 640
    shared = torch.eye(640)
    for _step in range(STEPS):
        product = own @ shared @ own.t()
        dist.all_reduce(product)
        shared = product / product.norm()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(free_port(),), nprocs=2)
