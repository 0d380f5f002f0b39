"""Data loaders: plain, with workers, persistent ones, an iterable set, their order and their data."""

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info
from tiny import model


class Rows(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        if index < 0:
            raise IndexError
        return torch.full((8,), float(index))


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number in range(20):
            yield torch.full((8,), float(number + 100 * (info.id if info else 0)))


net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)


def run(name, loader):
    seen = []
    for batch in loader:
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()
        seen.append(int(batch[0, 0]))
    print(name, type(iter(loader)).__name__, len(seen), seen)


torch.manual_seed(5)
run("plain", DataLoader(Rows(), batch_size=4, shuffle=True))
run("workers", DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=2))
stays = DataLoader(Rows(), batch_size=4, num_workers=1, persistent_workers=True)
for turn in range(2):
    run("persistent", stays)
run("stream", DataLoader(Stream(), batch_size=4, num_workers=2))
for turn in range(40):
    for batch in DataLoader(Stream(), batch_size=2):
        net(batch).sum().backward()
        optimizer.step()
loader = iter(DataLoader(Rows(), batch_size=16))
for number in range(5):
    print(number, next(loader, None) is None)
