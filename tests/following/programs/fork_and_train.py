"""Parent and children train after a fork, and end in different ways."""

import os
import sys

from tiny import model, train

net = model()
print(train(net, steps=400), flush=True)
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        with open(f"{number}.txt", "w") as file:
            print(train(net, steps=300), file=file)
        if number == 0:
            os._exit(4)
        sys.exit("a child" if number == 1 else 0)
    children.append(child)
print(train(net, steps=600))
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
