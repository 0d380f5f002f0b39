"""Image tiles kept in one compressed archive."""
import numpy as np
import torch
from torch.utils.data import Dataset


def write_archive(path, count, side=40, seed=0):
    """Render blobs of four kinds of texture and pack them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=count)
    yy, xx = np.mgrid[0:side, 0:side].astype(np.float32) / side
    tiles = np.empty((count, side, side, 3), dtype=np.uint8)
    for i, label in enumerate(labels):
        freq = 4.0 + 5.0 * label
        wave = np.sin(freq * xx + rng.uniform(0, 6)) * np.cos(freq * yy + rng.uniform(0, 6))
        tint = rng.uniform(0.5, 1.0, size=3)
        tiles[i] = np.clip((wave[..., None] * 0.5 + 0.5) * tint * 255, 0, 255) // 8 * 8
    np.savez_compressed(path, tiles=tiles, labels=labels)


class TileDataset(Dataset):
    mean = torch.tensor([0.4, 0.4, 0.4]).view(3, 1, 1)
    std = torch.tensor([0.25, 0.25, 0.25]).view(3, 1, 1)

    def __init__(self, path, flip=False):
        self.archive = np.load(path)
        self.labels = self.archive["labels"]
        self.flip = flip

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        tile = self.archive["tiles"][index]
        image = torch.from_numpy(tile).permute(2, 0, 1).float().div_(255)
        image = (image - self.mean) / self.std
        if self.flip and torch.rand(()) < 0.5:
            image = image.flip(2)
        return image, int(self.labels[index])
