"""The program's own file stands behind every descriptor from 3 to 200."""

import os

from tiny import model, train

net = model()
train(net, steps=100)
own = os.open("own.txt", os.O_CREAT | os.O_RDWR)
os.dup2(own, 200)
for number in range(3, 200):
    if number != own:
        os.dup2(200, number)
for number in range(8):
    train(net, steps=200)
    os.write(100, f"{number}\n".encode())
print(os.fstat(own).st_size)
