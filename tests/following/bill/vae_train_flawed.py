"""Variational autoencoder on synthetic 24x24 glyphs."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from vae_monitor_flawed import Monitor

SIDE = 24


def glyphs(count, generator):
    """Random rectangles and bars, lightly blurred."""
    images = torch.zeros(count, 1, SIDE, SIDE)
    corners = torch.randint(1, 12, (count, 4), generator=generator).tolist()
    for image, (top, left, height, width) in zip(images, corners):
        image[0, top : top + height, left : left + width] = 1.0
        image[0, top + height // 2, :] = 1.0
    return F.avg_pool2d(images, 3, stride=1, padding=1)


class VAE(nn.Module):
    def __init__(self, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.stats = nn.Linear(32 * 36, 2 * latent)
        self.expand = nn.Linear(latent, 32 * 36)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1)
        )

    def forward(self, x):
        mean, logvar = self.stats(self.encoder(x)).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(self.expand(z).relu().view(-1, 32, 6, 6)), mean, logvar


def elbo(logits, x, mean, logvar, beta):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum() / len(x)
    return reconstruction + beta * kl


def train(model, data, monitor, steps, batch_size=8):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        x = data[torch.randint(len(data), (batch_size,))]
        logits, mean, logvar = model(x)
        loss = elbo(logits, x, mean, logvar, beta=min(1.0, step / 200))
        opt.zero_grad()
        loss.backward()
        opt.step()
        monitor.record(step, loss.item())
        if step % 100 == 0:
            print(f"step {step:4d}  loss {monitor.smooth:.3f}  rss {monitor.peak:.0f} MB")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = glyphs(2000, torch.Generator().manual_seed(9))
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(os.path.join(folder, "curve.csv"))
        model = VAE()
        train(model, data, monitor, steps=500)
        monitor.close()
        torch.save(model.state_dict(), os.path.join(folder, "vae.pt"))


if __name__ == "__main__":
    main()
