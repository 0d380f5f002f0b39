"""Do the gains of `--try` agree with the same fixes made by hand? A training step with planted flaws;
for each fix that the table has, the program is edited by hand and measured in pairs with the step as
it is.

python benchmarks/tries.py [--device cuda:0] [--time S]      # a CPU has four of them, a GPU more

With --tried FILE the tries are kept there, and read from it in the next call.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from commands import GPULAB, with_ends

TRAIN = '''"""A training step as one often sees it."""
import torch
from torch.utils.data import DataLoader, Dataset

DEVICE = "{device}"
IMAGES, BATCH, SIDE, WIDTH = {sizes}

class Images(Dataset):
    def __init__(self):
        self.images = torch.randn(IMAGES, 3, SIDE, SIDE)
        self.labels = torch.randint(0, 10, (IMAGES,))
    def __len__(self):
        return IMAGES
    def __getitem__(self, index):
        image = self.images[index]
        for _ in range({decode}):
            image = image * 0.5 + image.roll(1, -1) * 0.5
        return image, self.labels[index]

loader = DataLoader(Images(), batch_size=BATCH)
layers, channels = [], 3
for _ in range(4):
    layers += [torch.nn.Conv2d(channels, WIDTH, 3, padding=1), torch.nn.GELU()]
    channels = WIDTH
head = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(24)]
model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), *head,
                            torch.nn.Linear(WIDTH, 10)).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)

def step():
    total = 0.0
    for images, labels in loader:
        images, labels = images.to(DEVICE), labels.to(DEVICE)
        optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
'''
_FUSED = "optimizer = torch.optim.AdamW(model.parameters(), fused=True)"
_LOADER = "loader = DataLoader(Images(), batch_size=BATCH"
_WORKERS = (
    "import os\n"
    f"{_LOADER}, num_workers=max(1, min(4, len(os.sched_getaffinity(0)) - 1)), "
    "persistent_workers=True, multiprocessing_context='fork')"
)
_FORWARD = "loss = torch.nn.functional.cross_entropy(model(images), labels)"
_AUTOCAST = f'with torch.autocast("{{kind}}", torch.bfloat16):\n            {_FORWARD}'
EDITS = {
    "autocast_bf16": (_FORWARD, _AUTOCAST),
    "compile_model": ("\ndef step", "model = torch.compile(model)\n\ndef step"),
    "fused_optimizer": (
        "optimizer = torch.optim.AdamW(model.parameters(), foreach=False)",
        _FUSED,
    ),
    "channels_last": (
        "\noptimizer =",
        "\nmodel = model.to(memory_format=torch.channels_last)\noptimizer =",
    ),
    "loader_workers": (f"{_LOADER})", _WORKERS),
}
"""What is edited by hand, and to what; settings that a whole process has are in the scenario."""
CONTEXTS = {
    "tf32": "products_in_tf32()",
    "cudnn_benchmark": "torch.backends.cudnn.flags(enabled=True, benchmark=True)",
}
SCENARIO = '''"""The same fixes, made by hand."""
from contextlib import contextmanager
import torch
from gpulab import Scenario
from gpulab.function_step import FunctionStep
scenario = Scenario("fixes by hand")

@contextmanager
def products_in_tf32():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)

@scenario.variant
def as_it_is(lab):
    return FunctionStep({file!r}, "step", {names}).work(lab)
'''
VARIANT = """
@scenario.variant
def {name}(lab):
    return FunctionStep({file!r}, "step", {names}).work(lab{fix})
"""
_NAMES = 'inputs=("loader.dataset.images", "loader.dataset.labels")'
_WITH = """
def with_{name}(built):
    {change}
"""
_SHARED = '''
def shared(built):
    """The lab changes values between steps, and workers must see it."""
    for tensor in built.tensors.values():
        if not tensor.is_cuda and not tensor.requires_grad:
            tensor.share_memory_()
    built.closing.append(lambda: setattr(built.module.loader, "_iterator", None))
'''
_DTYPES = {"tf32": "tf32", "autocast_bf16": "bf16"}
_SIZES = {"cpu": ((32, 16, 12, 24), 4), "cuda": ((256, 128, 64, 192), 1)}


def run(what, *flags):
    command = [*GPULAB, "--run", str(what), "--telemetry", "off", *flags, "--json"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        sys.exit(done.returncode)
    return with_ends(json.loads(done.stdout)["runs"])


def by_hand(folder, text, names, kind):
    """The scenario with a variant for each fix, whose program was edited."""
    original = folder / "train.py"
    scenario = SCENARIO.format(file=str(original), names=_NAMES) + _SHARED
    for name in names:
        file, fix = original, ""
        changes = []
        if name in CONTEXTS:
            changes.append(f"built.contexts.append(lambda: {CONTEXTS[name]})")
        elif name in EDITS:
            old, new = EDITS[name]
            if text.count(old) != 1:
                sys.exit(f"{name}: its edit does not fit")
            file = folder / f"train_{name}.py"
            file.write_text(text.replace(old, new.replace("{kind}", kind)))
        else:
            continue
        if name in _DTYPES:
            changes.append(f"built.computes_in({_DTYPES[name]!r})")
        if changes:
            scenario += _WITH.format(name=name, change="; ".join(changes))
            fix = f", with_{name}"
        if name == "loader_workers":
            fix = ", shared"
        scenario += VARIANT.format(name=name, file=str(file), names=_NAMES, fix=fix)
    path = folder / "by_hand.py"
    path.write_text(scenario)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--time", type=float, default=20.0)
    parser.add_argument("--tried", type=Path)
    given = parser.parse_args()
    kind = given.device.partition(":")[0]
    sizes, decode = _SIZES[kind]
    text = TRAIN.format(device=given.device, sizes=sizes, decode=decode)
    flags = ("--device", given.device, "--time", str(given.time))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(text)
        if given.tried and given.tried.exists():
            first, *others = with_ends(json.loads(given.tried.read_text()))
        else:
            first, *others = run(f"{folder / 'train.py'}:step", "--try", *flags)
        if given.tried:
            given.tried.write_text(json.dumps([first, *others]))
        fixes = [fix for fix in first["fixes"] if not fix["why_not"]]
        names = [fix["name"] for fix in fixes]
        for fix in first["fixes"]:
            print(f"{fix['name']:<24} {shown(fix)} {fix['why_not'] or ''}")
        for each in others:
            print(*(fix["sentence"] for fix in each["fixes"]), sep="\n", flush=True)
        (hand,) = run(by_hand(folder, text, names, kind), "--profile", "off", *flags)
    real = {comparison["variant"]: comparison for comparison in hand["comparisons"]}
    print(f"{'fix':<24} {'tried':>22} {'by hand':>22}")
    agree = compared = 0
    for fix in fixes:
        comparison = real.get(fix["name"])
        holds = None
        if comparison and comparison["low"] and fix["low"]:
            compared += 1
            holds = fix["low"] <= comparison["high"] and comparison["low"] <= fix["high"]
            agree += holds
        elif comparison:
            compared += 1
            holds = fix["verdict"] == comparison["verdict"]
            agree += holds
        verdict = {True: "ok", False: "OFF", None: "not made by hand"}[holds]
        print(f"{fix['name']:<24} {shown(fix)} {shown(comparison)} {verdict}")
    for together in others:
        for fix in together["fixes"]:
            print(f"{fix['name']:<24} {shown(fix)}  {fix['sentence']}")
    for fix in first["fixes"]:
        if fix["why_not"]:
            print(f"{fix['name']:<24} does not apply: {fix['why_not']}")
    print(f"{agree} of {compared} agree within their intervals")
    return 0 if agree == compared else 1


def shown(measured):
    if measured is None or measured["speedup"] is None:
        return f"{(measured or {}).get('verdict') or '':>22}"
    ends = ""
    if measured["low"] is not None:
        ends = f"({measured['low']:.3f} {measured['high']:.3f})"
    return f"{measured['speedup']:6.3f}x {ends:>15}"


if __name__ == "__main__":
    sys.exit(main())
