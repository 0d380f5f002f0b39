"""Output of many kinds: bytes, no newline, carriage returns, logging, a replaced stdout."""

import io
import logging
import sys
from contextlib import redirect_stdout

from tiny import model, train

logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s %(message)s")
net = model()
with redirect_stdout(io.StringIO()) as taken:
    print(train(net))
logging.info("taken %s", taken.getvalue())
sys.stdout.buffer.write(bytes(range(256)))
for number in range(20):
    train(net, steps=30)
    sys.stderr.write(f"\r{number}")
sys.stdout.write("no newline")
sys.stderr.write("none here")
