"""What a Python of a followed program runs as it starts. One from 3.9 on loads the agent; an older
one says which it is, and is left alone: so this file keeps to what Python 2 reads too.

Its folder is first on PYTHONPATH; it leaves sys.path, and a `sitecustomize` of the program's own
runs as it would have.
"""

import os
import sys

if sys.version_info >= (3, 9):
    import gpulab_agent  # type: ignore[import-not-found]
else:
    _line = '{"type":"process","pid":%d,"parent":%d,"python":"%d.%d.%d"}\n'
    _line %= (os.getpid(), os.getppid()) + tuple(sys.version_info[:3])
    try:
        with open(
            os.path.join(os.environ["GPULAB_FOLLOW"], "%d-.start" % os.getpid()), "w"
        ) as _file:
            _file.write(_line)
    except Exception:  # as in the agent: the program goes on as if nobody followed it
        pass
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _here]
    _this = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize
    except ImportError:
        sys.modules["sitecustomize"] = _this
