"""Double DQN on a small windy grid world, with a frozen actor network."""
import copy
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn

SIZE = 7
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class WindyGrid:
    def __init__(self, seed=0):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.pos = [self.rng.randrange(SIZE), 0]
        self.goal = [self.rng.randrange(SIZE), SIZE - 1]
        self.steps = 0
        return self.observe()

    def observe(self):
        planes = np.zeros((2, SIZE, SIZE), dtype=np.float32)
        planes[0, self.pos[0], self.pos[1]] = 1.0
        planes[1, self.goal[0], self.goal[1]] = 1.0
        return planes.ravel()

    def step(self, action):
        dy, dx = MOVES[action]
        wind = 1 if self.rng.random() < 0.1 else 0
        self.pos[0] = min(max(self.pos[0] + dy + wind, 0), SIZE - 1)
        self.pos[1] = min(max(self.pos[1] + dx, 0), SIZE - 1)
        self.steps += 1
        done = self.pos == self.goal
        return self.observe(), (1.0 if done else -0.02), done or self.steps >= 40


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


class QNet(nn.Module):
    def __init__(self, dim=128, depth=4):
        super().__init__()
        self.stem = nn.Linear(2 * SIZE * SIZE, dim)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.value, self.advantage = nn.Linear(dim, 1), nn.Linear(dim, len(MOVES))

    def forward(self, x):
        h = self.blocks(torch.relu(self.stem(x)))
        adv = self.advantage(h)
        return self.value(h) + adv - adv.mean(dim=-1, keepdim=True)


class Agent:
    def __init__(self, sync_every=100, target_every=200):
        self.online, self.target = QNet(), QNet()
        self.target.load_state_dict(self.online.state_dict())
        self.actor = copy.deepcopy(self.online).eval()
        self.opt = torch.optim.Adam(self.online.parameters(), lr=5e-4)
        self.memory = deque(maxlen=20000)
        self.sync_every, self.target_every = sync_every, target_every
        self.updates = self.acts = 0

    @torch.no_grad()
    def act(self, obs, epsilon):
        if self.acts % self.sync_every == 0:
            self.actor.load_state_dict(self.online.state_dict())
        self.acts += 1
        if random.random() < epsilon:
            return random.randrange(len(MOVES))
        return int(self.actor(torch.from_numpy(obs)).argmax())

    def learn(self, batch_size=64, gamma=0.97):
        obs, act, rew, nxt, done = zip(*random.sample(self.memory, batch_size))
        obs, nxt = torch.from_numpy(np.stack(obs)), torch.from_numpy(np.stack(nxt))
        act, rew, done = torch.tensor(act), torch.tensor(rew), torch.tensor(done, dtype=torch.float32)
        with torch.no_grad():
            best = self.online(nxt).argmax(dim=1, keepdim=True)
            goal = rew + gamma * (1 - done) * self.target(nxt).gather(1, best).squeeze(1)
        loss = nn.functional.smooth_l1_loss(self.online(obs).gather(1, act[:, None]).squeeze(1), goal)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.updates += 1
        if self.updates % self.target_every == 0:
            self.target.load_state_dict(self.online.state_dict())


def main(total_steps=2200):
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env, agent = WindyGrid(), Agent()
    obs, ret, returns = env.reset(), 0.0, deque(maxlen=50)
    for step in range(total_steps):
        action = agent.act(obs, epsilon=max(0.1, 1 - step / 1500))
        nxt, reward, done = env.step(action)
        agent.memory.append((obs, action, reward, nxt, float(done)))
        obs, ret = nxt, ret + reward
        if done:
            returns.append(ret)
            obs, ret = env.reset(), 0.0
        if len(agent.memory) >= 200 and step % 6 == 0:
            agent.learn()
        if (step + 1) % 500 == 0:
            print(f"step {step + 1}: mean return {np.mean(returns):.3f}, {agent.updates} updates")


if __name__ == "__main__":
    main()
