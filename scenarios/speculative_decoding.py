"""Speculative decoding: a small model guesses ahead, the large one checks all guesses at once.

Generating a token reads all weights of a model for one row of activations, and the next token
cannot begin before it is known. The time is that of reading the weights, `tokens` times over; the
arithmetic units have next to nothing to do. For a few rows more the same reading does. So a `draft`
model, much smaller, guesses `ahead` tokens one after the other; the target takes all of them in one
pass, and says for each place which token it would have chosen. Guesses are accepted up to the first
that differs; there the target's own token stands, which the same pass has given. Every pass yields
one token at least, and `ahead` + 1 at most.

With greedy choice the output is that of the target alone, token for token: gpulab compares them,
and one that the target would not have chosen makes a variant *wrong*. That takes fp32, or care:
a pass of several rows adds up in another order than a pass of one, and in bf16 two tokens are
often near enough for that to exchange them.

What it gains follows from three numbers. Where a guess is right with the probability a, a pass
yields (1 - a^(k+1)) / (1 - a) tokens of k ahead; it takes 1 + k c passes of the target's time, c
being the draft's share of it. At a = 0.8, k = 4 and c = 0.1 that is 3.4 tokens in the time of 1.4,
so 2.4 times as fast. A draft that is seldom right makes it slower: `--set correction=1`. The draft
here is the first `draft_layers` layers of the target itself with its output layer, and
`correction` is how strongly each later layer changes their result. All weights are random, and
acceptance is what it comes out as: the share of all guesses that was accepted is reported, and the
tokens that a pass yields.

`draft_beside` runs both models on rank 0. `draft_remote` has the draft on rank 1 and the target on
rank 0, and guesses and verdicts are sent: 8 (ahead + 2) bytes a pass, which no bandwidth limits,
only latency, twice a pass. It is worth that where the draft's memory is needed for something else,
or one draft serves several targets: here the ranks wait for each other, so nothing overlaps.
Expect both to be faster than `greedy`, and the remote one by less. On a CPU the passes of several
rows cost more than those of one, and the gain is smaller.
"""

import torch
import torch.distributed as dist

from gpulab import Scenario, Work

scenario = Scenario(
    topic="distributed",
    params={
        "width": 8192,
        "layers": 16,
        "draft_layers": 2,
        "correction": 0.06,
        "vocabulary": 512,
        "window": 8,
        "tokens": 64,
        "ahead": 4,
    },
    cpu={"width": 384, "layers": 12, "tokens": 24},
    smoke={"width": 64, "layers": 4, "correction": 0.5, "vocabulary": 64, "tokens": 12},
    sweep={"ahead": (1, 2, 4, 8)},
    ranks=2,
    item="token",
    claim="arXiv 2211.17192: 2x to 3x faster than plain decoding, with identical outputs",
    terms=("draft model", "llm"),
)


@scenario.variant
def greedy(lab, width, layers, draft_layers, correction, vocabulary, window, tokens):
    """The target alone, a pass for each token."""
    target = _Model(lab, width, layers, draft_layers, correction, vocabulary, window)
    prompt, text = _texts(lab, vocabulary, window, window + tokens)

    def step():
        text[:window] = prompt
        if lab.rank == 0:
            for at in range(window, window + tokens):
                text[at] = target.choose(text[at - window : at][None], layers)[0]
        dist.broadcast(text, 0, group=lab.group)
        lab.report("tokens per pass", 1)

    read = tokens * target.bytes_of(layers)
    return Work(step, bytes=read, items=tokens, inputs=prompt, output=text[window:])


@scenario.variant
def draft_beside(lab, width, layers, draft_layers, correction, vocabulary, window, tokens, ahead):
    """Guesses by the draft, on the rank of the target."""
    model = _Model(lab, width, layers, draft_layers, correction, vocabulary, window)
    return _speculate(
        lab, model, layers, draft_layers, vocabulary, window, tokens, ahead, drafter=0
    )


@scenario.variant
def draft_remote(lab, width, layers, draft_layers, correction, vocabulary, window, tokens, ahead):
    """Guesses by the draft on another rank, which sends them."""
    depth = layers if lab.rank == 0 else draft_layers
    model = _Model(lab, width, depth, draft_layers, correction, vocabulary, window)
    return _speculate(
        lab, model, layers, draft_layers, vocabulary, window, tokens, ahead, drafter=1
    )


class _Model:
    """Chooses the next token by the last `window` ones: the same on all ranks, but for its depth."""

    def __init__(self, lab, width, depth, strong, correction, vocabulary, window):
        generator = torch.Generator(lab.device).manual_seed(0)

        def weights(rows, columns, deviation):
            values = torch.randn(rows, columns, generator=generator, device=lab.device)
            return values.mul_(deviation)

        self.width = width
        self.embedding = weights(vocabulary, width // window, 1)
        self.output = weights(width, vocabulary, width**-0.5)
        self.layers = []
        for layer in range(depth):
            strength = 1 if layer < strong else correction
            up = weights(width, width, width**-0.5)
            self.layers.append((up, weights(width, width, strength * (2 / width) ** 0.5)))

    def choose(self, windows, depth):
        """The next token after each window, by so many layers."""
        rows = self.embedding[windows].flatten(1)
        for up, down in self.layers[:depth]:
            rows = rows + torch.relu(self._normal(rows) @ up) @ down
        return (self._normal(rows) @ self.output).argmax(-1)

    def bytes_of(self, depth):
        """What a pass reads."""
        return self.output.nbytes + sum(up.nbytes + down.nbytes for up, down in self.layers[:depth])

    def _normal(self, rows):
        return torch.nn.functional.layer_norm(rows, (self.width,))


def _texts(lab, vocabulary, window, length):
    """(a prompt of `window` tokens, room for a text)."""
    prompt = torch.randint(vocabulary, (window,), device=lab.device)
    return prompt, torch.zeros(length, dtype=torch.int64, device=lab.device)


def _speculate(lab, model, layers, draft_layers, vocabulary, window, tokens, ahead, drafter):
    """`drafter`: the rank of the draft; rank 0 has the target."""
    end = window + tokens
    prompt, text = _texts(lab, vocabulary, window, end + ahead)  # the last guesses may go beyond
    verdict = torch.empty(2, dtype=torch.int64, device=lab.device)
    takes_part = lab.rank in (0, drafter)

    def guess(at):
        for place in range(at, at + ahead):
            text[place] = model.choose(text[place - window : place][None], draft_layers)[0]

    def verify(at):
        windows = text[at - window : at + ahead].unfold(0, window, 1)
        chosen = model.choose(windows, layers)
        agreed = (chosen[:ahead] == text[at : at + ahead]).cumprod(0).sum()
        verdict[0] = agreed
        verdict[1:] = chosen.index_select(0, agreed[None])

    def one_pass(at):
        """Where the text goes on."""
        if lab.rank == drafter:
            guess(at)
        if drafter != 0:
            _send(lab, text[at : at + ahead], drafter, 0)
        if lab.rank == 0:
            verify(at)
        if drafter != 0:
            _send(lab, verdict, 0, drafter)
        agreed, token = verdict.tolist()
        text[at + agreed] = token
        return at + agreed + 1

    def step():
        text[:window] = prompt
        dist.broadcast(text[:window], 0, group=lab.group)
        at = window
        passes = 0
        while at < end and takes_part:
            at = one_pass(at)
            passes += 1
        if drafter == 0:
            dist.broadcast(text, 0, group=lab.group)
        if passes:
            lab.report("tokens per pass", (at - window) / passes)
            lab.report("acceptance", ((at - window) / passes - 1) / ahead)

    return Work(step, items=tokens, inputs=prompt, output=text[window:end])


def _send(lab, tensor, source, destination):
    if lab.rank == source:
        dist.send(tensor, destination, group=lab.group)
    elif lab.rank == destination:
        dist.recv(tensor, source, group=lab.group)
