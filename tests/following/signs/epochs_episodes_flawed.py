"""Learn to classify from few examples: prototypes over many episodes."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

WAYS, SHOTS, QUERIES = 5, 3, 5
SIDE = 20


class Episodes(IterableDataset):
    """Draws episodes: a few classes with some examples of each."""

    def __init__(self, count, seed):
        self.count = count
        self.seed = seed

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        generator = torch.Generator().manual_seed(self.seed + worker.id)
        for _ in range(self.count // worker.num_workers):
            yield self.draw(generator)

    def draw(self, generator):
        patterns = torch.rand(WAYS, 1, 1, SIDE, SIDE, generator=generator).round()
        noise = torch.randn(WAYS, SHOTS + QUERIES, 1, SIDE, SIDE, generator=generator)
        examples = patterns + 0.8 * noise
        return examples[:, :SHOTS], examples[:, SHOTS:]


class PrototypeNet(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        blocks = []
        inputs = 1
        for _ in range(3):
            blocks += [nn.Conv2d(inputs, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            inputs = channels
        self.encode = nn.Sequential(*blocks, nn.Flatten())

    def forward(self, support, query):
        prototypes = self.encode(support.flatten(0, 1)).unflatten(0, (WAYS, -1)).mean(dim=1)
        return -torch.cdist(self.encode(query.flatten(0, 1)), prototypes)


class Learner:
    def __init__(self):
        self.net = PrototypeNet()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.targets = torch.arange(WAYS).repeat_interleave(QUERIES)

    def learn(self, support, query):
        scores = self.net(support, query)
        loss = nn.functional.cross_entropy(scores, self.targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return (scores.argmax(dim=1) == self.targets).float().mean().item()

    def round(self, number, episodes):
        """Learn from so many new episodes; return the mean accuracy."""
        loader = DataLoader(
            Episodes(episodes, seed=100 * number),
            batch_size=None,
            num_workers=2,
        )
        right = [self.learn(support, query) for support, query in loader]
        return sum(right) / len(right)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    learner = Learner()
    rounds, episodes = 36, 8
    for number in range(rounds):
        accuracy = learner.round(number, episodes)
        if number % 5 == 0:
            print(f"round {number}: {accuracy:.3f}")
    print("done")


if __name__ == "__main__":
    main()
