"""All descriptors from 3 on are closed, and the program's own file takes their place."""

import os

from tiny import model, train

net = model()
train(net, steps=100)
os.closerange(3, 256)
files = [open(f"own{number}.txt", "w") for number in range(4)]
print([file.fileno() for file in files])
for number in range(8):
    train(net, steps=200)
    for file in files:
        print(number, file=file, flush=True)
print([os.fstat(file.fileno()).st_size for file in files])
