"""Modules of its own that have the names of ours."""

import agent
import files
import gpulab
import program as itself

from tiny import train

if __name__ == "__main__":
    print(gpulab.what, files.what, agent.what, itself.__name__, train(), gpulab.step())
# --- gpulab.py
what = "a module of the program"


def step():
    return "a step of the program"


# --- files.py
what = "files of the program"
# --- agent.py
what = "an agent of the program"
