"""torch is imported late, in a thread, by a name, and is removed and asked for again."""

import importlib
import sys
import threading

print("torch" in sys.modules)
thread = threading.Thread(target=lambda: importlib.import_module("torch"))
thread.start()
thread.join()
torch = sys.modules["torch"]
import tiny

print(torch is tiny.torch, tiny.train(), torch.__spec__.loader.__class__.__name__)
print(type(torch).__name__, importlib.util.find_spec("torch").origin == torch.__file__)
importlib.reload(tiny)
importlib.reload(sys.modules["torch.optim.sgd"])
print(tiny.train(), torch.__name__)
