"""gpulab: a terminal lab for GPU performance.

What the author of a scenario imports lives here; it needs the standard library only.
"""

from gpulab.model.scenario import GiB, KiB, Lab, MiB, Scenario, Work

__all__ = ["GiB", "KiB", "Lab", "MiB", "Scenario", "Work"]
__version__ = "0.1.0"
