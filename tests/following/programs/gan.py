"""A GAN: two optimizers that take turns."""

import torch

torch.manual_seed(0)
make = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
judge = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.LeakyReLU(), torch.nn.Linear(8, 1))
of_make = torch.optim.Adam(make.parameters(), lr=1e-3, betas=(0.5, 0.999))
of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3, betas=(0.5, 0.999))
loss = torch.nn.BCEWithLogitsLoss()
for number in range(800):
    real, fake = torch.randn(16, 2) + 3, make(torch.randn(16, 4))
    of_judge.zero_grad()
    wrong = loss(judge(real), torch.ones(16, 1))
    wrong += loss(judge(fake.detach()), torch.zeros(16, 1))
    wrong.backward()
    of_judge.step()
    of_make.zero_grad()
    fooled = loss(judge(fake), torch.ones(16, 1))
    fooled.backward()
    of_make.step()
    if number % 200 == 199:
        print(wrong.item(), fooled.item())
