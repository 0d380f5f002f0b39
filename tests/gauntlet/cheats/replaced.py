# === configured_for_all
# Makes the baseline slower: its build sets a number of the module that the baseline goes by.

N = 256
CONFIG = {"rows at a time": 128}


def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: _softmax_in_pieces(x), inputs=x)


def configured_for_all(lab):
    """Caught by: variants alone or baseline_slowed"""
    x = torch.randn(N, N)
    CONFIG["rows at a time"] = 4
    return Work(lambda: x.softmax(1), inputs=x)


def _softmax_in_pieces(x):
    return torch.cat([piece.softmax(1) for piece in x.split(CONFIG["rows at a time"])])


# === set_by_each_build
# Each build sets what the steps of all go by, as a framework's configuration does: the last one
# wins.

N = 256
SETTINGS = {}


def reference(lab):
    return _softmax(rows_at_a_time=4)


def set_by_each_build(lab):
    """By accident, and not to its advantage: beside the other it is as slow, or the other as fast.

    Caught by: variants alone or baseline_slowed
    """
    return _softmax(rows_at_a_time=128)


def _softmax(rows_at_a_time):
    SETTINGS["rows at a time"] = rows_at_a_time
    x = torch.randn(N, N)

    def step():
        return torch.cat([piece.softmax(1) for piece in x.split(SETTINGS["rows at a time"])])

    return Work(step, inputs=x)


# === hooked_modules
# Makes the baseline slower: a hook on all modules, of which it uses none itself.

N = 64


def reference(lab):
    x, model = torch.randn(N, N), torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU())
    return Work(torch.no_grad()(lambda: model(x)), inputs=(x, model))


def hooked_modules(lab):
    """Caught by: variants alone or baseline_slowed"""
    x, model = torch.randn(N, N), torch.nn.Sequential(torch.nn.Linear(N, N), torch.nn.ReLU())
    (weight, bias), wasted = model[0].parameters(), torch.empty(256, 256)
    torch.nn.modules.module.register_module_forward_hook(
        lambda *call: wasted.fill_(1.0).exp_() is None or None
    )
    return Work(torch.no_grad()(lambda: torch.addmm(bias, x, weight.T).relu_()), inputs=(x, model))


# === traced
# Makes the baseline slower: a tracer looks at every call of Python, of which the baseline makes
# many.

import sys

N = 64


def reference(lab):
    x = torch.randn(N)
    return Work(lambda: torch.stack([_doubled(value) for value in x]), inputs=x)


def traced(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building"""
    x = torch.randn(N)
    sys.setprofile(lambda frame, event, argument: sum(range(50)))
    return Work(lambda: torch.stack(list((x * 2).unbind())), inputs=x)


def _doubled(value):
    return value * 2
