"""What takes long to import is imported once, by the process that forks all that measure."""

import importlib
import sys

import pytest

from gpulab.core.jobs import FunctionFile, TimeFunctions
from gpulab.engine.build import load as imports
from gpulab.engine.processes import fork_server

OWN = "import colorsys\nimport threading\n"
LIBRARY_WITH_A_THREAD = (
    "import threading, time\nthreading.Thread(target=time.sleep, args=(0.5,), "
    "daemon=True).start()\n"
)


@pytest.fixture
def long_imports(monkeypatch):
    """Of a run on a device, where every import counts as a long one."""
    monkeypatch.setattr(imports, "_LONG_S", 0.0)
    made = []

    def record(device):
        made.append(imports.LongImports(device))
        return made[-1]

    yield record
    for recorded in made:
        recorded.end()


def test_a_library_that_a_file_imports_is_named_and_the_file_is_not(
    long_imports, tmp_path, monkeypatch
):
    (tmp_path / "own_module.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    recorded = long_imports("cpu")
    importlib.import_module("own_module")
    assert recorded.modules == ["colorsys"]


def test_a_library_that_starts_a_thread_is_left_to_each_process(
    long_imports, tmp_path, monkeypatch
):
    (tmp_path / "threaded.py").write_text(LIBRARY_WITH_A_THREAD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "_LIBRARIES", (str(tmp_path),))
    recorded = long_imports("cpu")
    importlib.import_module("threaded")
    assert recorded.modules == []


def test_on_a_gpu_only_what_asks_for_no_device_is_imported_before_a_fork(
    long_imports, tmp_path, monkeypatch
):
    (tmp_path / "opens_a_device.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(imports, "_LIBRARIES", (str(tmp_path),))
    recorded = long_imports("cuda:0")
    importlib.import_module("opens_a_device")
    assert recorded.modules == []


@pytest.mark.parametrize(
    ("source", "imported"),
    [
        ("torch.compile(f)", ["torch._dynamo", "torch._inductor.compile_fx"]),
        ("\ufeffo = torch.optim.SGD(p)", ["torch._dynamo"]),
        ('"""as torch.compile does"""\nmodel.compile()', []),
        ("os.environ['TORCHINDUCTOR_X'] = '1'\ntorch.compile(f)", []),
        ("def f(:", []),
    ],
)
def test_what_the_code_of_a_file_will_import_is_imported_early(monkeypatch, source, imported):
    made = []
    monkeypatch.setattr(fork_server, "_import_all", made.extend)
    file = FunctionFile(scenario="s", path="s.py", source_sha256="", source=source, variants=())
    fork_server.import_early(TimeFunctions(subject=file))
    assert made == imported
    fork_server.import_early(TimeFunctions(subject=file, smoke=True))
    assert made == imported
