"""Lessons in CUDA C++ in the app: what their kernels are can be read where nothing compiles them,
and after a run.
"""

import json
from hashlib import sha256

import pytest
from journey import flat, idle, shown, until, visit

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.limits import TELEMETRY_OFF
from gpulab.core.payloads import KernelCode
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import Outcome
from gpulab.features.kernels.events import KernelsCompiled
from gpulab.session.run import FileSource

LESSON = '''"""Widths: wide loads."""
from gpulab import Scenario, Work
from gpulab.cuda import CudaSource

scenario = Scenario("CUDA C++ kernels", needs=("cuda", "cupy"), params={"block": 256})
cuda = CudaSource("""
template <typename T>
__global__ void copy(const T* in, T* out) { out[threadIdx.x] = in[threadIdx.x]; }
__global__ void copy_back(float* out) { out[threadIdx.x] = 1; }
""")


@scenario.variant
def narrow(lab, block):
    return Work(cuda.kernel("copy<float>", threads=block))


@scenario.variant
def wide(lab, block):
    return Work(cuda.kernel("copy<float4>", threads=block // 2))
'''


def compiled(name, registers, **loads):
    return {
        "name": name,
        "arch": "sm_90",
        "registers": registers,
        "instructions": {"all": 9, **loads},
    }


KERNELS = {
    "narrow": [compiled("copy<float>", 12, load_32=1)],
    "wide": [compiled("copy<float4>", 16, load_128=1)],
}
DIFFERENCE = "wide against narrow: 128-bit loads 0 → 1; 32-bit loads 1 → 0; registers 12 → 16"


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """A lesson on a machine without a GPU."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    path = tmp_path / "widths.py"
    path.write_text(LESSON)
    return path


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """What the compiler made of its kernels is kept, as of those that ship."""
    path = tmp_path / "kernels.json"
    path.write_text(json.dumps({sha256(LESSON.encode()).hexdigest(): KERNELS}))
    monkeypatch.setattr("gpulab.catalog.kernels._SHIPPED", path)


def test_of_a_lesson_of_ones_own_nothing_is_kept(lesson):
    async def journey(pilot):
        await pilot.press("2")
        await until(pilot, lambda: "copy<float4>, 128 threads a block" in flat(pilot))
        assert "registers" not in flat(pilot)

    visit(journey, lesson, size=(120, 60))


def test_kernels_are_those_kept_with_the_lesson_and_after_a_run_its_own(lesson, kept, tmp_path):
    infos = (VariantInfo(name="narrow"), VariantInfo(name="wide", against="narrow"))
    subject = ScenarioFile(scenario="widths", path=str(lesson), source_sha256="0", variants=infos)
    request = RunRequest(job=Measure(subject=subject), telemetry=TELEMETRY_OFF)
    recording = RunFile(tmp_path / "run.jsonl", "0")
    recording.append(
        [
            e.RunStarted(request=request, at="", host="h", t=0.1),
            *(
                KernelsCompiled(
                    variant=name,
                    kernels=[KernelCode(name="copy", arch="sm_100", registers=registers)],
                    t=0.2,
                )
                for name, registers in (("narrow", 20), ("wide", 24))
            ),
            e.RunEnded(outcome=Outcome.DONE, t=0.3),
        ]
    )
    recording.close()

    async def journey(pilot):
        await until(pilot, lambda: "missing here needs cuda" in flat(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "narrow · the baseline" in flat(pilot))
        lines = [line.rstrip() for line in shown(pilot).splitlines()]
        assert any("copy<float>, 256 threads a block" in line for line in lines)
        assert any("copy<float4>, 128 threads a block" in line for line in lines)
        assert any(line.lstrip(" │").startswith("7   template <typename T>") for line in lines)
        assert "copy_back" not in shown(pilot), "no variant launches it"
        assert DIFFERENCE in flat(pilot)
        assert "counted in the SASS for sm_90" in flat(pilot)
        await pilot.press("r")
        await until(pilot, lambda: idle(pilot))
        await pilot.press("2")
        await until(pilot, lambda: "wide against narrow: registers 20 → 24" in flat(pilot))
        assert "nvdisasm, which reads machine code, is not there" in flat(pilot)
        assert "12 → 16" not in flat(pilot)
        assert "time/step" not in flat(pilot), "nothing was timed"

    visit(
        journey,
        lesson,
        size=(120, 60),
        starter=lambda entry, settings: FileSource(tmp_path / "run.jsonl"),
    )
