"""Scenario files that tests of requests and launches write."""

SCENARIO = '''
"""Twice: one multiplication and two."""
from gpulab import Scenario
scenario = Scenario(
    "mine",
    params={"n": 4096, "ratio": 0.5, "name": "x", "flag": False},
    cpu={"n": 64},
    smoke={"n": 1},
    sweep={"n": (16, 64), "ratio": (0.25, 0.5)},
    no_effect_reason="it is small",
    clock="device",
    per="item",
)

@scenario.variant
def two(lab, n):
    """Two multiplications."""

@scenario.variant(claim="2x", unchecked="it is random")
def one(lab, n): ...

@scenario.variant(needs=("cuda",), against="one")
def on_gpu(lab, n): ...

@scenario.variant(against=None)
def scale(lab, n): ...
'''
FUNCTIONS = "def step(): 'One step.'\ndef wants(x, y): ...\nscale = step\n"


def write(path, text=SCENARIO):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
