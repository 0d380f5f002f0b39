"""Started by nohup, setsid, timeout, nice, env and a shell in the background."""
# run: sh -c 'nohup nice -n 3 setsid -w timeout 90 env -u HOME python program.py & wait $!; echo $?'

import os
import signal
import sys

from tiny import train

print(train(), os.nice(0), "HOME" in os.environ, signal.getsignal(signal.SIGHUP).name)
sys.exit(17)
