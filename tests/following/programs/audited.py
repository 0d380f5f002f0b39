"""An audit hook that forbids files outside of the folder, processes and sockets."""

import os
import sys

from tiny import model, train

net = model()
train(net, steps=200)
here = os.getcwd()


def audit(event, args):
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        if not os.path.abspath(args[0]).startswith(here):
            raise PermissionError("not outside")
    if event in ("subprocess.Popen", "os.fork", "socket.connect", "os.kill", "ctypes.dlopen"):
        raise PermissionError(event)


sys.addaudithook(audit)
print(train(net))
with open("inside.txt", "w") as file:
    file.write("written")
try:
    open("/tmp/outside.txt", "w")
except PermissionError as error:
    print(error)
print(train(net))
