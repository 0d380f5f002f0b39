"""sparse, quantized and recurrent modules, foreach and fused optimizers, averaged models."""

import torch
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(0)
embedding = torch.nn.EmbeddingBag(50, 4, sparse=True, mode="sum")
lstm = torch.nn.LSTM(4, 8, batch_first=True)
averaged = AveragedModel(lstm)
sparse = torch.optim.SparseAdam(embedding.parameters(), lr=1e-2)
fused = torch.optim.AdamW(lstm.parameters(), lr=1e-3, fused=True)
for number in range(400):
    rows = embedding(torch.randint(0, 50, (6, 3)))
    loss = lstm(rows[None])[0].square().mean()
    loss.backward()
    for optimizer in (sparse, fused):
        optimizer.step()
        optimizer.zero_grad()
    averaged.update_parameters(lstm)
print(loss.item(), averaged.n_averaged.item())
print(sum(p.double().sum().item() for p in averaged.parameters()))
print(fused.state_dict()["state"][0]["step"], list(sparse.state_dict()["state"][0]))
