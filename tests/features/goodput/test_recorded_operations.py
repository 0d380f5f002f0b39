"""The table of operations of real recordings: totals against torch's own table, FLOPs against its
counter, lines and modules of the program.
"""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.flop_counter import FlopCounterMode

from gpulab.features.goodput.marks import MarkedCalls
from gpulab.features.goodput.recorded_operations import operations
from gpulab.features.goodput.work import WorkOfCalls
from gpulab.traces.trace import WINDOW, read

HERE = Path(__file__).name


def recording(step, path, *, memory=False, marked=False):
    """(trace, torch's own table) of one step."""
    step()
    with (
        profile(
            activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=memory
        ) as prof,
        record_function(WINDOW),
    ):
        if marked:
            with MarkedCalls():
                step()
        else:
            step()
    prof.export_chrome_trace(str(path / "trace.json"))
    return read(json.loads((path / "trace.json").read_text())), prof.key_averages()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        for block in self.blocks:
            x = functional.relu(block(x))
        return self.norm(x)


@pytest.fixture(scope="module")
def training():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(8, 16)

    def step():
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def table_of(trace, sample=None):
    return operations(trace, sample, WorkOfCalls(), most=1000)


def by_name(table, field):
    sums = {}
    for row in table:
        sums[row.name] = sums.get(row.name, 0) + (getattr(row, field) or 0)
    return sums


def test_calls_self_and_total_times_are_those_of_torchs_own_table(training, tmp_path):
    trace, averages = recording(training, tmp_path)
    table = table_of(trace)
    theirs = {row.key: row for row in averages if not row.key.startswith((WINDOW, "Optimizer."))}
    assert by_name(table, "calls") == {name: row.count for name, row in theirs.items()}
    for field, attribute in (("self_s", "self_cpu_time_total"), ("total_s", "cpu_time_total")):
        ours = by_name(table, field)
        for name, row in theirs.items():
            assert ours[name] == pytest.approx(1e-6 * getattr(row, attribute), abs=2e-7), name


def test_memory_is_that_of_torchs_own_table(training, tmp_path):
    trace, averages = recording(training, tmp_path, memory=True)
    ours = by_name(table_of(trace), "memory_bytes")
    theirs = {row.key: row.self_cpu_memory_usage for row in averages if row.key in ours}
    assert ours == theirs
    assert any(ours.values())


def test_an_operation_that_calls_another_of_its_name_counts_that_once(tmp_path):
    def step():
        with record_function("outer"), record_function("outer"):
            torch.ones(3)
        with record_function("several"):
            with record_function("several"):
                torch.ones(3)
            torch.ones(3)

    recording(step, tmp_path)
    document = json.loads((tmp_path / "trace.json").read_text())
    for event in document["traceEvents"]:
        if event.get("name") in ("outer", "several"):
            event["cat"] = "cpu_op"
    longest = {}
    for event in document["traceEvents"]:
        if event.get("name") in ("outer", "several") and event.get("ph") == "X":
            longest[event["name"]] = max(longest.get(event["name"], 0.0), event["dur"])
    table = {row.name: row for row in operations(read(document))}
    assert (table["outer"].calls, table["several"].calls) == (1, 2)
    for name, duration in longest.items():
        assert table[name].total_s == pytest.approx(1e-6 * duration, abs=2e-9)


def test_lines_and_modules_come_from_a_sample_and_times_do_not(training, tmp_path):
    trace, _ = recording(training, tmp_path)
    sample, _ = recording(training, tmp_path, memory=True, marked=True)
    plain = table_of(trace)
    table = table_of(trace, sample)
    for field in ("calls", "self_s", "total_s", "flops", "bytes"):
        assert by_name(table, field) == pytest.approx(by_name(plain, field))
    assert all(row.line is None and row.memory_bytes is None for row in plain)
    products = {(row.name, row.module): row for row in table if row.name in ("aten::addmm",)}
    assert set(products) == {("aten::addmm", f"Net.blocks.{i}") for i in range(2)}
    lines = {row.line for row in products.values()}
    source = Path(__file__).read_text().splitlines()
    assert lines == {f"{HERE}:{1 + source.index('            x = functional.relu(block(x))')}"}
    norms = [row for row in table if "layer_norm_backward" in row.name]
    assert [row.module for row in norms] == ["Net.norm"]  # autograd's belong to their module
    assert all(row.memory_bytes is not None for row in table)


def test_where_rows_are_many_the_modules_of_a_list_are_one(training, tmp_path):
    trace, _ = recording(training, tmp_path)
    sample, _ = recording(training, tmp_path, marked=True)
    table = operations(trace, sample, most=30)
    assert {row.module for row in table if row.name == "aten::addmm"} == {"Net.blocks.*"}
    assert sum(row.calls for row in table if row.name == "aten::addmm") == 2


def attend(backend):
    q = torch.randn(2, 3, 16, 8, requires_grad=True)
    k = torch.randn(2, 3, 24, 8, requires_grad=True)
    v = torch.randn(2, 3, 24, 8, requires_grad=True)

    def step():
        with sdpa_kernel(backend):
            functional.scaled_dot_product_attention(q, k, v).sum().backward()

    return step


def convolve(function, x, w, **options):
    x = torch.randn(x, requires_grad=True)
    w = torch.randn(w, requires_grad=True)
    return lambda: function(x, w, **options).sum().backward()


def of(function, *shapes):
    tensors = [torch.randn(shape) for shape in shapes]
    return lambda: function(*tensors)


CASES = {
    "mm": of(torch.mm, (5, 7), (7, 9)),
    "bmm": of(torch.bmm, (3, 5, 7), (3, 7, 9)),
    "linear": of(functional.linear, (2, 5, 7), (9, 7), (9,)),
    "einsum": of(lambda a, b: torch.einsum("bij,bjk->bik", a, b), (2, 5, 7), (2, 7, 9)),
    "conv2d": convolve(functional.conv2d, (2, 4, 9, 11), (6, 4, 3, 2), dilation=2, padding=(1, 2)),
    "conv_transpose2d": convolve(
        functional.conv_transpose2d, (2, 4, 5, 6), (4, 3, 3, 3), stride=2, output_padding=1
    ),
    "groups": convolve(functional.conv2d, (2, 4, 9, 9), (6, 2, 3, 3), groups=2),
    "attention by products": attend(SDPBackend.MATH),
}


PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}


@pytest.mark.parametrize("name", CASES)
def test_flops_are_those_of_torchs_counter(name, tmp_path):
    trace, _ = recording(CASES[name], tmp_path)
    with FlopCounterMode(display=False) as counter:
        CASES[name]()
    flops = sum(
        row.flops
        for row in table_of(trace)
        if row.flops and (row.name in PRODUCTS or "conv" in row.name)
    )
    assert flops == counter.get_total_flops() > 0


def test_flash_attention_counts_the_products_of_the_plain_one(tmp_path):
    """torch's counter has no formula of that for a CPU."""
    trace, _ = recording(attend(SDPBackend.FLASH_ATTENTION), tmp_path)
    flops = by_name(table_of(trace), "flops")
    forward = 2 * 2 * 2 * 3 * 16 * 24 * 8
    assert flops["aten::_scaled_dot_product_flash_attention_for_cpu"] == forward
    backward = flops["aten::_scaled_dot_product_flash_attention_for_cpu_backward"]
    assert backward == forward * 5 / 2  # it multiplies the scores again


def bytes_of(name, step, path):
    trace, _ = recording(step, path)
    (row,) = [row for row in table_of(trace) if row.name == name]
    return row.bytes


@pytest.mark.parametrize(
    ("name", "step", "expected"),
    [
        ("aten::mm", of(torch.mm, (5, 7), (7, 9)), 4 * (35 + 63 + 45)),
        ("aten::add", of(torch.add, (5, 7), (7,)), 4 * (35 + 7 + 35)),
        ("aten::gt", of(lambda x: x > 0, (5, 7)), 4 * 35 + 35),
        ("aten::sum", of(lambda x: x.sum(1), (5, 7)), 4 * (35 + 5)),
        ("aten::amax", of(lambda x: x.amax((0, -1)), (5, 7, 3)), 4 * (105 + 7)),
        ("aten::_softmax", of(lambda x: x.softmax(1), (5, 7)), 2 * 4 * 35),
        ("aten::copy_", of(lambda x: x.t().contiguous(), (5, 7)), 2 * 4 * 35),
        ("aten::mul", of(lambda x: x.expand(5, 7) * 2, (1, 7)), 4 * (7 + 35)),
        (
            "aten::native_layer_norm",
            lambda: functional.layer_norm(torch.ones(5, 7), (7,)),
            8 * 35 + 8 * 5,
        ),
        (
            "aten::index_select",
            lambda: functional.embedding(torch.tensor([1, 1]), torch.ones(100, 7)),
            4 * 2 * 7 * 2 + 8 * 2,
        ),
    ],
)
def test_bytes_are_every_input_and_every_output_once(name, step, expected, tmp_path):
    assert bytes_of(name, step, tmp_path) == expected


def test_what_has_no_formula_has_no_work(tmp_path):
    trace, _ = recording(of(lambda x: torch.cat([x, x]).sort(), (5,)), tmp_path)
    table = {row.name: (row.flops, row.bytes) for row in operations(trace)}
    assert table["aten::cat"] == table["aten::sort"] == (None, None)


def test_what_a_package_calls_stands_at_the_line_of_the_program_that_called_the_package(tmp_path):
    package = tmp_path / "site-packages" / "layers.py"
    package.parent.mkdir()
    source = "import torch\ndef double(x):\n    return torch.mul(x, 2)\n"
    package.write_text(source)
    layers: dict = {}
    exec(compile(source, str(package), "exec"), layers)  # as if it was installed
    x = torch.ones(8)
    trace, _ = recording(lambda: layers["double"](x), tmp_path, marked=True)
    lines = {row.line for row in operations(trace) if row.name == "aten::mul"}
    assert {line.partition(":")[0] for line in lines} == {HERE}
