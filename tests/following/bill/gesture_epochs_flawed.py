"""Classify gestures from accelerometer windows; many short epochs over a small recording."""
import math
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

EPOCHS = 80
CLASSES = 5


class GestureWindows(Dataset):
    """Windows cut out of a long recording, jittered and rotated on the fly."""

    def __init__(self, n, seed, augment):
        rng = np.random.default_rng(seed)
        t = np.linspace(0, 2 * math.pi, 96, dtype=np.float32)
        self.labels = rng.integers(0, CLASSES, size=n)
        phase = rng.uniform(0, 6.28, size=(n, 3, 1)).astype(np.float32)
        speed = (1 + self.labels)[:, None, None].astype(np.float32)
        self.windows = np.sin(speed * t + phase) + 0.3 * rng.standard_normal((n, 3, 96), dtype=np.float32)
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        window = self.windows[index]
        if self.augment:
            angle = np.random.uniform(-0.4, 0.4)
            c, s = math.cos(angle), math.sin(angle)
            rotation = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=np.float32)
            window = np.roll(rotation @ window, np.random.randint(-8, 9), axis=1)
        return torch.from_numpy(np.ascontiguousarray(window)), int(self.labels[index])


def build_model():
    def block(cin, cout):
        return nn.Sequential(nn.Conv1d(cin, cout, 5, padding=2), nn.BatchNorm1d(cout), nn.ReLU(), nn.MaxPool1d(2))

    return nn.Sequential(
        block(3, 32), block(32, 64), block(64, 64), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, CLASSES)
    )


def run_epoch(model, loader, optimizer, criterion):
    model.train()
    running, correct, count = 0.0, 0, 0
    for windows, labels in loader:
        logits = model(windows)
        loss = criterion(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        running += loss.item() * labels.numel()
        correct += (logits.argmax(1) == labels).sum().item()
        count += labels.numel()
    return running / count, correct / count


@torch.inference_mode()
def evaluate(model, data):
    model.eval()
    windows = torch.stack([data[i][0] for i in range(len(data))])
    labels = torch.as_tensor(data.labels)
    return (model(windows).argmax(1) == labels).float().mean().item()


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    train_set = GestureWindows(128, seed=0, augment=True)
    test_set = GestureWindows(200, seed=1, augment=False)
    loader = DataLoader(train_set, batch_size=32, shuffle=True, num_workers=2, drop_last=True)
    model = build_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

    started = time.time()
    for epoch in range(EPOCHS):
        loss, acc = run_epoch(model, loader, optimizer, criterion)
        schedule.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d} loss {loss:.3f} train {acc:.3f} test {evaluate(model, test_set):.3f}")
    print(f"done in {time.time() - started:.1f} s")


if __name__ == "__main__":
    main()
