"""The folder is changed, and then removed under the program's feet."""

import os

from tiny import model, train

net = model()
os.makedirs("one/two")
os.chdir("one/two")
print(train(net))
os.rmdir(os.getcwd())
try:
    os.getcwd()
except FileNotFoundError as error:
    print(error.strerror)
print(train(net))
os.chdir("/")
print(train(net), sorted(os.listdir(os.path.dirname(__file__))))
