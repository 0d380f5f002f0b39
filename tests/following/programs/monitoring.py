"""sys.monitoring where it is, tracemalloc, and a limit on what is switched between."""

import sys
import tracemalloc

from tiny import train

tracemalloc.start(5)
train(steps=300)
held = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*tiny.py")])
print(bool(held.statistics("filename")), tracemalloc.get_traceback_limit())
tracemalloc.stop()
sys.setswitchinterval(0.0005)
print(train(steps=600), sys.getswitchinterval())
if hasattr(sys, "monitoring"):
    print([sys.monitoring.get_tool(number) for number in range(6)])
