"""Predict churn from a table of customers, with early stopping."""

import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Customers(Dataset):
    def __init__(self, count=700, columns=24):
        generator = np.random.default_rng(8)
        self.table = generator.normal(size=(count, columns)).astype(np.float32)
        weights = generator.normal(size=columns)
        self.churned = (self.table @ weights > 0).astype(np.float32)

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        row = self.table[index]
        features = np.concatenate([row, np.log1p(np.abs(row)), row**2])
        return torch.from_numpy(features), torch.tensor(self.churned[index])


class EarlyStopping:
    def __init__(self, patience):
        self.patience = patience
        self.best = float("inf")
        self.bad = 0
        self.state = None

    def update(self, loss, model):
        if loss < self.best - 1e-3:
            self.best, self.bad = loss, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def fit(model, training, validation, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.BCEWithLogitsLoss()
    stopping = EarlyStopping(patience=epochs)
    for epoch in range(epochs):
        model.train()
        for features, churned in training:
            optimizer.zero_grad()
            criterion(model(features).squeeze(1), churned).backward()
            optimizer.step()
        model.eval()
        losses = []
        with torch.no_grad():
            for features, churned in validation:
                losses.append(criterion(model(features).squeeze(1), churned).item())
        loss = sum(losses) / len(losses)
        if epoch % 8 == 0:
            print(f"epoch {epoch}: validation {loss:.4f}")
        if stopping.update(loss, model):
            break
    return stopping


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    training, validation = random_split(Customers(), [500, 200])
    settings = {"batch_size": 50, "num_workers": 2}
    model = nn.Sequential(
        nn.Linear(72, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
    )
    stopping = fit(
        model,
        DataLoader(training, shuffle=True, **settings),
        DataLoader(validation, **settings),
        epochs=25,
    )
    print(f"best validation loss {stopping.best:.4f}")


if __name__ == "__main__":
    main()
