"""Copies and pickles of models and optimizers in training, and what they hold."""

import copy
import pickle

import torch
from tiny import model, train

net = model()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
print(train(net, optimizer))
both = copy.deepcopy((net, optimizer))
print(train(*both), train(net, optimizer))
data = pickle.dumps(optimizer)
print(len(data), b"gpulab" in data)
again = pickle.loads(data)
print(sorted(vars(again)), train(net, again, 5))
print(len(pickle.dumps(torch.nn.Linear(2, 2))), repr(copy.copy(optimizer)))
