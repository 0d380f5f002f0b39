"""Programs that are followed. None of them knows of it."""

import sys
import venv
from pathlib import Path

TRAIN = """
    import sys, time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, index):
            return torch.full((8,), float(index))

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step(batch):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    for batch in DataLoader(Rows(), batch_size=16, num_workers=2):
        step(batch)
    steps = 4
    # by the CPU, so that it has its steps beside other work too
    last = time.process_time() + float(sys.argv[1])
    while time.process_time() < last:
        step(torch.randn(256, 8))
        steps += 1
    print("steps", steps, "agent" in " ".join(sys.path))
    raise RuntimeError("the end of it")
"""
INFER = """
    import os, time
    import torch

    torch.set_num_threads(1)
    model, loss = torch.nn.Linear(64, 64), torch.nn.MSELoss()
    last = time.monotonic() + 1.5
    while time.monotonic() < last:
        with torch.no_grad():
            loss(model(torch.randn(64, 64)), torch.zeros(64, 64))
    os.kill(os.getpid(), 9)
"""
STEPS = """
    import sys, time
    import gpulab

    for line in sys.stdin:
        time.sleep(0.01)
        gpulab.step()
    sys.stdout.write(line)
    sys.exit(3)
"""
SCRIPT = """\
    #!/bin/sh
    head -c 5000000 /dev/zero | tr '\\0' x
    echo of the script >&2
    setsid sleep 2 >/dev/null 2>&1 &
    exit 7
"""
GAN = """
    import time
    import torch

    first, second = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    critic = torch.optim.Adam([first])
    generator = torch.optim.SGD([second])
    first.grad = second.grad = torch.ones(2)
    for i in range(700):
        time.sleep(0.0005)
        critic.step()
        if i >= 650:
            time.sleep(0.1)
            generator.step()
"""
HANG = """
    import subprocess, sys, time
    print("hangs", flush=True)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])
"""


def bare_interpreter(folder):
    """A Python without torch and without gpulab, that has a sitecustomize of its own."""
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = Path(folder) / "lib" / version / "site-packages"
    (site / "sitecustomize.py").write_text("import sys\nprint('its own', file=sys.stderr)\n")
    return Path(folder) / "bin" / "python"
