"""Learn from replayed experience to hold a point in the middle."""

import random

import torch
from torch import nn


class Field:
    """A point that drifts; seen as a picture of 64 by 64."""

    def __init__(self):
        self.place = 0.0
        self.axis = torch.linspace(-1, 1, 64)

    def reset(self):
        self.place = random.uniform(-0.5, 0.5)
        return self.picture()

    def picture(self):
        row = torch.exp(-50 * (self.axis - self.place).square())
        return row.expand(64, 64).clone()

    def step(self, action):
        self.place += 0.1 * (2 * action - 1) + random.gauss(0, 0.05)
        lost = abs(self.place) > 1
        return self.picture(), -1.0 if lost else 0.1, lost


class Replay:
    def __init__(self, capacity=2000):
        self.items = []
        self.capacity = capacity

    def add(self, *item):
        self.items.append(item)

    def sample(self, count):
        recent = range(max(0, len(self.items) - self.capacity), len(self.items))
        chosen = [self.items[place] for place in random.sample(recent, count)]
        before, action, reward, after, lost = zip(*chosen, strict=True)
        return (
            torch.stack(before).flatten(1),
            torch.tensor(action),
            torch.tensor(reward),
            torch.stack(after).flatten(1),
            torch.tensor(lost),
        )


class Agent:
    def __init__(self):
        self.net = nn.Sequential(
            nn.Unflatten(1, (1, 64, 64)),
            nn.Conv2d(1, 8, 5, stride=4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(8 * 15 * 15, 2),
        )
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    @torch.no_grad()
    def act(self, picture):
        if random.random() < 0.1:
            return random.randrange(2)
        return int(self.net(picture.flatten()[None]).argmax())

    def learn(self, before, action, reward, after, lost):
        with torch.no_grad():
            target = reward + 0.95 * self.net(after).amax(dim=1) * ~lost
        value = self.net(before).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def main():
    random.seed(2)
    torch.manual_seed(2)
    torch.set_num_threads(1)
    field, replay, agent = Field(), Replay(), Agent()
    picture = field.reset()
    episodes = 1
    for step in range(1, 10001):
        action = agent.act(picture)
        after, reward, lost = field.step(action)
        replay.add(picture, action, reward, after, lost)
        picture = field.reset() if lost else after
        episodes += lost
        if step > 500 and step % 10 == 0:
            agent.learn(*replay.sample(16))
        if step % 2500 == 0:
            print(f"{step} steps, {episodes} episodes")


if __name__ == "__main__":
    main()
