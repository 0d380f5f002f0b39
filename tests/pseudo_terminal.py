"""A program at the end of a pseudo-terminal, typed at, with every byte that it wrote."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time


class Pty:
    """Starts `command`, a list, on a terminal of `size`; `env` is its whole environment; `output`
    is all it wrote.

    `settings` are those of the terminal, once it has ended.
    """

    def __init__(self, command, *, size=(80, 24), env=None, cwd=None):
        self.output = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd or ".")
            os.execve(
                command[0],
                command,
                {**(os.environ if env is None else env), "TERM": "xterm-256color"},
            )
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def read(self, seconds, until=None):
        """What came within so many seconds; AssertionError where it does not come to hold
        `until`.
        """
        data, end = b"", time.monotonic() + seconds
        while time.monotonic() < end and (until is None or until not in data):
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    data += os.read(self.fd, 65536)
                except OSError:
                    break
        self.output += data
        assert until is None or until in data, data[-2000:]
        return data

    def press(self, keys):
        os.write(self.fd, keys)

    def hang_up(self):
        """Take the terminal away, as a closed window does."""
        os.close(self.fd)
        self.fd = None

    def end(self, within=10.0):
        """The exit code, once it has ended."""
        limit = time.monotonic() + within
        while time.monotonic() < limit:
            if self.fd is not None:
                self.read(0.1)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                if self.fd is not None:
                    self.read(0.2)
                    self.settings = termios.tcgetattr(self.fd)
                    os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"it did not end within {within} s")
