"""A pipe whose reader goes away."""
# run: sh -c 'python program.py | head -2; echo then'

from tiny import model, train

net = model()
for number in range(2000):
    print(number, "x" * 100, flush=True)
    train(net, steps=3)
