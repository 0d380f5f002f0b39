"""stdin, stdout and stderr are closed, and files take their numbers."""

import os

from tiny import model, train

net = model()
train(net, steps=100)
print("the last word", flush=True)
for number in range(3):
    os.close(number)
for number in range(3):
    assert os.open(f"{number}.txt", os.O_CREAT | os.O_WRONLY) == number
for _ in range(4):
    train(net, steps=300)
    print("to a file", flush=True)
    os.write(2, b"error\n")
raise SystemExit(9)
