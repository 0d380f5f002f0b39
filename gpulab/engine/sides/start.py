"""Started by its path, in the Python of a side, which may have no gpulab or one that is compared.

The files of ours that serve a side are imported from here, and then forgotten as `gpulab`.
"""

import os
import sys
from pathlib import Path
from types import ModuleType

if __name__ == "__main__":
    ours = ModuleType("gpulab")
    ours.__path__ = [str(Path(__file__).parents[2])]
    sys.modules["gpulab"] = ours
    from gpulab.engine.sides import server
    from gpulab.proc.fork import die_with_parent

    die_with_parent(os.getppid())
    for name in [name for name in sys.modules if name.partition(".")[0] == "gpulab"]:
        del sys.modules[name]
    server.main(int(sys.argv[1]))
