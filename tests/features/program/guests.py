"""Programs that following harmed, or could. Each prints the same whether it is followed or not."""

COMPILED = """
    import sys
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    torch.manual_seed(0)
    form, backend = sys.argv[1:]
    net = torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(3)))
    optimizer = torch.optim.Adam(net.parameters(), foreach=True)
    x = torch.randn(8, 16)

    def step():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        update()
        return loss

    update, train = optimizer.step, step
    if form == "optimizer":
        update = torch.compile(optimizer.step, backend=backend)
    elif form == "step":
        train = torch.compile(step, backend=backend)
    elif form == "model":
        net = torch.compile(net, backend=backend, fullgraph=True)
    for number in range(700):
        if form == "late" and number % 100 == 99:  # within each kind of window
            torch._dynamo.reset()
            net = torch.compile(getattr(net, "_orig_mod", net), backend=backend, fullgraph=True)
        loss = train()
    counters = torch._dynamo.utils.counters
    breaks = sum(counters["graph_break"].values())
    modes = torch.overrides._get_current_function_mode_stack()
    print(loss.item(), counters["stats"].get("unique_graphs"), breaks, modes)
"""
EXPORTED = """
    import torch

    torch.set_num_threads(1)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x):
            return self.second(self.first(x))

    net, x = Net(), torch.ones(4, 8)
    for _ in range(700):
        with torch.no_grad():
            net(x)
    print(torch.export.export(net, (x,)).graph)
    print(torch.fx.symbolic_trace(net).graph)
    print(torch.jit.trace(net, (x,)).graph)
    print(torch.jit.script(net).graph)
    print(vars(Net).keys())
    net(torch.ones(3))
"""
SCHEDULED = """
    import sys
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    torch.set_num_threads(1)
    net = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    cycle = schedule(wait=1, warmup=int(sys.argv[1]), active=2)
    with profile(activities=[ProfilerActivity.CPU], schedule=cycle) as profiler:
        for _ in range(1500):
            optimizer.zero_grad()
            net(torch.randn(8, 32)).sum().backward()
            optimizer.step()
            profiler.step()
    print("steps", len(profiler.events()) > 0)
"""
OWN_PROFILERS = """
    import torch

    torch.set_num_threads(1)
    net = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        net(torch.randn(8, 32)).sum().backward()
        optimizer.step()

    found = []
    for number in range(3000):
        if number % 70 == 69:  # within each kind of window
            kind = (torch.profiler.profile, torch.autograd.profiler.profile)[number % 140 == 69]
            with kind() as profiler:
                step()
            found.append(any(each.key == "aten::addmm" for each in profiler.key_averages()))
            del profiler
        step()
    print(len(found), all(found))
"""
CLOSES = """
    import os, sys, time
    import torch

    torch.set_num_threads(1)
    net = torch.nn.Linear(32, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        net(torch.randn(8, 32)).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    os.closerange(3, 256)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    first = os.open("checkpoint", flags)
    for number in range(first + 1, 64):
        os.dup2(first, number)
    os.write(first, b"begin")
    last = time.monotonic() + 1.5
    while time.monotonic() < last:
        step()
    os.write(first, b"end")
    print(open("checkpoint").read())
"""
PIPES = """
    import os

    folder = os.environ.get("GPULAB_FOLLOW", ".")
    os.mkfifo(folder + "/1-a.jsonl")
    os.symlink("/dev/zero", folder + "/2-a.jsonl")
    os.mkdir(folder + "/3-a.start")
    print("made")
"""
HANDLER = """
    import signal, sys, time

    number, seconds = int(sys.argv[1]), float(sys.argv[2])
    saved = []

    def save(*_):
        saved.append(number)
        time.sleep(0.3)

    signal.signal(number, save)
    print("ready", flush=True)
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        time.sleep(0.05)
    print(len(saved))
    sys.exit(7)
"""
