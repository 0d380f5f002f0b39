"""Run files of a fleet as they would be, with planted faults: a recorded run of an H200, whose
times, ceilings, clocks and neighbours are those of each GPU.
"""

import lzma
from dataclasses import dataclass, field
from math import exp
from random import Random

from msgspec.structs import replace
from recorded import recorded_path

from gpulab.core import events as e
from gpulab.core.run_file import FORMAT, VERSION, Header
from gpulab.core.wire import decode, encode
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.telemetry.events import Telemetry, TelemetryStarted

_RECORDED = recorded_path("older/roofline_tour")
MEMORY_BOUND = {"vector_add", "axpy", "softmax", "layernorm"}
COMPUTE_BOUND = {"large_matmul", "large_matmul_bf16", "attention"}
_LINKS = ("host to device", "device to host")
_THERMAL, _POWER_CAP = 0x20, 0x4


@dataclass
class Gpu:
    """What one GPU is like: speeds over those of the recorded one."""

    host: str
    uuid: str
    fault: str | None = None
    """The code of the cause that is planted."""
    memory: float = 1.0
    clock: float = 1.0
    link: float = 1.0
    launch: float = 1.0
    noise: float = 0.003
    slowed: float = 0.0
    """The share of the blocks that a neighbour makes slower."""
    shared: bool = False
    """Whether telemetry sees the neighbour."""
    reasons: int = 0
    health: dict = field(default_factory=dict)
    bad_process: int | None = None
    """One that was slower, for no reason of the GPU."""

    def speed(self, variant):
        if variant in MEMORY_BOUND:
            return self.memory * self.clock**0.1
        if variant in COMPUTE_BOUND:
            return self.clock
        return self.launch * self.clock**0.5


def healthy(random, number):
    """GPUs differ: in silicon, hosts, and what happened while they were measured."""
    uuid = f"GPU-{random.getrandbits(32):08x}-{number:04x}"
    gpu = Gpu(f"node-{number:04}", uuid)
    gpu.memory = random.gauss(1, 0.003)
    gpu.clock = random.gauss(1, 0.006)
    gpu.link = random.gauss(1, 0.004)
    gpu.launch = exp(random.gauss(0, 0.05))
    gpu.noise = 0.003 * exp(random.gauss(0, 0.3))
    if random.random() < 0.03:
        gpu.bad_process = random.randrange(8)
    if random.random() < 0.1:
        gpu.reasons = _POWER_CAP
    return gpu


def plant(random, gpu, fault):
    gpu.fault = fault
    if fault == "slow_hbm":
        gpu.memory *= random.uniform(0.75, 0.94)
    elif fault == "low_clock":
        gpu.clock *= random.uniform(0.65, 0.93)
        gpu.reasons = random.choice([_THERMAL, _POWER_CAP, 0])
    elif fault == "bad_link":
        width = random.choice([4, 8, 16])
        gpu.link *= random.uniform(0.25, 0.8) if width == 16 else width / 16
        gpu.health = {"pcie_width": width}
    elif fault == "noisy_neighbour":
        gpu.slowed = random.uniform(0.2, 0.6)
        gpu.shared = random.random() < 0.5


FAULTS = ["slow_hbm"] * 4 + ["low_clock"] * 4 + ["bad_link"] + ["noisy_neighbour"] * 3


def fleet(count, seed, faults=FAULTS):
    """So many GPUs, each on a host of its own, with the faults at random places."""
    random = Random(seed)
    gpus = [healthy(random, number) for number in range(count)]
    for gpu, fault in zip(random.sample(gpus, len(faults)), faults, strict=True):
        plant(random, gpu, fault)
    return gpus


def recorded():
    """The events of the recorded run."""
    lines = lzma.decompress(_RECORDED.read_bytes()).splitlines()[1:]
    return [event for event in map(decode, lines) if event is not None]


def write(folder, gpus, seed):
    """A run file of each GPU; their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    template = [(event, encode(event)) for event in recorded()]
    header = encode(Header(format=FORMAT, version=VERSION, gpulab="0.1.0"))
    total = 0
    for gpu in gpus:
        random = Random(f"{seed} {gpu.uuid}")
        lines = [header]
        for event, line in template:
            changed = _of_gpu(event, gpu, random)
            lines.append(line if changed is event else encode(changed))
        data = b"".join(lines)
        (folder / f"{gpu.host}-0.jsonl").write_bytes(data)
        total += len(data)
    return total


def _of_gpu(event, gpu, random):
    match event:
        case e.RunStarted():
            return replace(event, host=gpu.host)
        case e.WorkerReady():
            return replace(event, device=replace(event.device, uuid=gpu.uuid))
        case TelemetryStarted():
            return replace(event, uuid=gpu.uuid, health=event.health | gpu.health)
        case Telemetry():
            values = dict(event.values)
            if "sm_clock" in values:
                values["sm_clock"] *= gpu.clock
            others = event.others
            if others is not None and gpu.shared and random.random() < 0.8:
                others = ["python 4711"]
            reasons = event.reasons
            if reasons is not None:
                reasons |= gpu.reasons
            return replace(event, values=values, others=others, reasons=reasons)
        case e.Samples():
            times_s = []
            for epoch, index, time_s in zip(event.epoch, event.variant, event.times_s, strict=True):
                name = event.names[index]
                times_s.append(time_s / gpu.speed(name) * _noise(gpu, epoch, random))
            sm_mhz = [mhz * gpu.clock for mhz in event.sm_mhz]
            return replace(event, times_s=times_s, sm_mhz=sm_mhz)
        case CeilingsMeasured():
            ceilings = tuple(_ceiling(ceiling, gpu, random) for ceiling in event.ceilings)
            return replace(event, ceilings=ceilings, cached=False)
        case e.SoloRun():
            return replace(event, time_s=event.time_s / gpu.speed(event.variant))
    return event


def _noise(gpu, epoch, random):
    factor = exp(random.gauss(0, gpu.noise))
    if epoch == gpu.bad_process:
        factor *= 1.1
    if random.random() < gpu.slowed:
        factor *= random.uniform(1.1, 1.8)
    return factor


def _ceiling(ceiling, gpu, random):
    factor = gpu.clock
    if ceiling.roof == "device memory":
        factor = gpu.memory * gpu.clock**0.1
    elif ceiling.roof in _LINKS:
        factor = gpu.link
    elif ceiling.roof in ("launch", "page fault"):
        factor = 1 / gpu.launch
    factor *= exp(random.gauss(0, 0.002))
    if random.random() < gpu.slowed:
        factor *= random.uniform(0.6, 0.95)
    return replace(
        ceiling,
        best=ceiling.best * factor,
        median=ceiling.median * factor,
        sm_mhz=ceiling.sm_mhz and ceiling.sm_mhz * gpu.clock,
    )


def spoil(folder):
    """Files that belong to no fleet: their names."""
    names = {
        "garbled.jsonl": b'{"format":"gpulab.run","version":2,"gpulab":"0"}\n{"type":"Samples",\x00}\n',
        "newer.jsonl": b'{"format":"gpulab.run","version":9,"gpulab":"9"}\n',
        "foreign.jsonl": b'{"loss": 0.3}\n',
        "empty.jsonl": b"",
        "slurm-17.out": b"srun: job 17 queued\n",
    }
    for name, data in names.items():
        (folder / name).write_bytes(data)
    return sorted(names)


def judge(report, gpus):
    """(planted faults that were found with their cause, outliers that were not planted)."""
    planted = {gpu.uuid: gpu.fault for gpu in gpus if gpu.fault}
    causes = {gpu.uuid: gpu.cause.code for gpu in report.outliers}
    found = [uuid for uuid, fault in planted.items() if causes.get(uuid) == fault]
    false = [uuid for uuid in causes if uuid not in planted]
    missed = [(fault, causes.get(uuid)) for uuid, fault in planted.items() if uuid not in found]
    return len(found), false, missed
