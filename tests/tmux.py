"""A terminal with a shell in it, as tmux draws it."""

import subprocess
import time


class Tmux:
    """A tmux server of its own, with one window of 80x24."""

    def __init__(self, lab):
        self.socket = f"gpulab-{lab.mark}"
        env = {**lab.env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "PS1": "$ "}
        command = ["new-session", "-d", "-x", "80", "-y", "24", "env", "PS1=$ ", "sh"]
        self.call("-u", "-f", "/dev/null", *command, env=env, cwd=lab.folder)

    def call(self, *arguments, **options):
        command = ["tmux", "-L", self.socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout

    def press(self, *keys):
        self.call("send-keys", *keys)

    @property
    def text(self):
        return self.call("capture-pane", "-p")

    def until(self, text, within=40.0):
        end = time.monotonic() + within
        while text not in self.text:
            assert time.monotonic() < end, self.text
            time.sleep(0.1)
        return self.text

    def flags(self):
        """Whether the cursor is shown, and whether it is the screen of a program."""
        return self.call("display", "-p", "#{cursor_flag} #{alternate_on}").split()

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False, capture_output=True)
