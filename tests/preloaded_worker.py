"""Workers forked from one process that has imported torch (`workers.py` starts it). Their warm-ups,
recordings and calibrations are short.

`preloaded_worker.py SOCKET` serves, one worker at a time, until its stdin ends.
`preloaded_worker.py SOCKET FD` is the worker's command: it hands its streams over, and ends with the
worker.
"""

import gc
import json
import os
import select
import socket
import sys
from pathlib import Path


def main(path, fd=None):
    if fd is None:
        serve(path)
        return
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        message = json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd())})
        socket.send_fds(connection, [message.encode()], [0, 1, 2, int(fd)])
        sys.exit(int(connection.recv(8) or 1))


def serve(path):
    import numpy.random  # noqa: F401  # which the lab imports with torch
    import torch._dynamo  # noqa: F401  # the first optimizer of a process imports it: for seconds
    from switches import SWITCHED_OFF, switch_off

    import gpulab.engine.processes.fork_server  # noqa: F401
    from gpulab.engine.__main__ import main as work
    from gpulab.engine.measure import candidate
    from gpulab.features.goodput import worker as profiler
    from gpulab.features.roofline import calibration, probes

    candidate._WARM_UP_S, candidate._LATER_WARM_UP_S, candidate._MOST_WARM_UP_S = 0.03, 0.02, 0.2
    profiler._WARM_S, profiler._GROUP_S, profiler._WINDOW_S = 0.03, 0.01, 0.05
    profiler._LONG_WINDOW_S, profiler._LONGEST_WINDOW_S = 0.15, 0.25
    calibration._LONG_S, calibration._BRIEF_S, calibration._TRIES = 0.02, 0.02, 1
    probes._PRODUCT_S, probes._MOST_BYTES_CPU = 0.01, 64 << 20

    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            readable, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in readable:  # its end: whoever started this is gone
                return
            connection, _ = listener.accept()
            with connection:
                message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 4)
                pid = os.fork()
                if pid == 0:
                    listener.close()
                    become_worker(json.loads(message), fds)
                    switch_off(*filter(None, os.environ.get(SWITCHED_OFF, "").split(",")))
                    work()
                for fd in fds:
                    os.close(fd)
                connection.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become_worker(message, fds):
    for target, fd in enumerate(fds[:3]):
        os.dup2(fd, target)
        os.close(fd)
    os.setsid()
    os.environ.clear()
    os.environ.update(message["env"])
    os.chdir(message["cwd"])
    sys.argv[1:] = [str(fds[3])]


if __name__ == "__main__":
    main(*sys.argv[1:])
