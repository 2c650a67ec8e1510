"""What chapter 5 computes beside scores: the weights of pairs, biases and starts, examples, words told by length.

Any loss that sees embeddings through their similarities alone moves text i along Σⱼ wᵢⱼ aⱼ/τ: the gradient of the
similarities, in units of 1/τ. A weight below zero is a pull and one above zero a push; what losses differ in is how the
weights of one text hang together.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.data.mixture import SEVERAL, Mixed
from pullpush.data.speech.spoken import by_length
from pullpush.errors import UnknownNameError
from pullpush.lab.experiments import System
from pullpush.lab.scores import Scores
from pullpush.losses import info_nce, siglip
from pullpush.metrics.cards import Values
from pullpush.metrics.inference import Array, difference
from pullpush.metrics.prompt_templates import GLAP
from pullpush.studies import measured
from pullpush.studies.glap.comparisons import KEYWORDS, levels, spotted
from pullpush.studies.glap.data import COMMANDS, DOMAINS, ISO, Grounds
from pullpush.studies.glap.experiments import balancing_bias as balancing_bias
from pullpush.training.evaluate import embed, zero_shot
from pullpush.training.loop import Result
from pullpush.training.objective import Objective
from pullpush.training.runs import drawn

Loss = Callable[[Tensor, Tensor], Tensor]  # of (audio, text), the mean over a batch
SOFTMAX, SIGMOID = "InfoNCE", "SigLIP"
BALANCED, PRINTED = "SigLIP, balanced start", "SigLIP, printed start"


class Space(NamedTuple):
    """The pairs of one model, `(N, d)` each, and the loss and temperature that they were trained with, as learnt."""

    audio: Tensor
    text: Tensor
    loss: Loss
    tau: float


def systems(batch_size: int) -> dict[str, System]:
    """One softmax, and three starts of one sigmoid: SigLIP's, that which balances the batch, and GLAP's as printed."""
    return {
        SOFTMAX: ("infonce-learnable", {}),
        SIGMOID: ("siglip", {}),
        BALANCED: ("siglip", {"bias": balancing_bias(batch_size)}),
        PRINTED: ("siglip", {"form": "glap", "tau": 0.07, "bias": -10.0}),
    }


# ---------------------------------------------------------------- weights


def pair_weights(loss: Loss, similarity: Tensor, tau: float) -> Tensor:
    """The weight of every pair in the gradient: τ N ∂L/∂sᵢⱼ, `(N, N)`, texts in rows.

    Args:
        loss: a function of (audio, text) through their similarities alone, such as `siglip`.
        similarity: `(N, N)`.
        tau: the temperature of the loss.

    Example:
        >>> from pullpush.losses import siglip
        >>> pair_weights(lambda audio, text: siglip(audio, text, tau=1.0, bias=0.0), torch.zeros(2, 2), tau=1.0)
        tensor([[-0.5000,  0.5000],
                [ 0.5000, -0.5000]])
    """
    leaf = similarity.detach().clone().requires_grad_()
    basis = torch.eye(len(leaf), dtype=leaf.dtype)  # texts whose products with these clips are the similarities
    (gradient,) = torch.autograd.grad(loss(basis, leaf), leaf)
    return tau * len(leaf) * gradient


def pull_and_push(weights: Tensor) -> tuple[Tensor, Tensor]:
    """The pull of each text's own clip and the push of all others together, `(N,)` each.

    >>> pull_and_push(torch.tensor([[-0.5, 0.2], [0.1, -0.4]]))
    (tensor([0.5000, 0.4000]), tensor([0.2000, 0.1000]))
    """
    pull = -weights.diagonal()
    return pull, weights.sum(dim=1) + pull


def over_batch_sizes(
    spaces: Mapping[str, Space], sizes: Sequence[int], *, draws: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Pull and push, means over texts, in `draws` random batches of each size that the pairs suffice for, with
    everything that was learnt as it is: columns system, clips, draw, pull, push. spaces: of the same clips.
    """
    rows, count = [], len(next(iter(spaces.values())).audio)
    for size in (size for size in sizes if size <= count):
        generator = torch.Generator().manual_seed(seed)
        for draw in range(draws):
            chosen = torch.randperm(count, generator=generator)[:size]
            for system, space in spaces.items():
                similarity = space.text[chosen] @ space.audio[chosen].T
                pull, push = pull_and_push(pair_weights(space.loss, similarity, space.tau))
                rows.append((system, size, draw, float(pull.mean()), float(push.mean())))
    return pd.DataFrame(rows, columns=["system", "clips", "draw", "pull", "push"])


def by_domain(weights: Mapping[str, Tensor], domains: Sequence[str]) -> pd.DataFrame:
    """Pull, and push by the same domain and by others, means over the texts of each domain: columns system, domain,
    pairs, pull, same, other. weights: system → `(N, N)`, see `pair_weights`; domains: of the N pairs.

    Example:
        >>> weights = torch.tensor([[-0.5, 0.2, 0.1], [0.2, -0.4, 0.1], [0.0, 0.0, -0.3]])
        >>> by_domain({"SigLIP": weights}, ["sound", "sound", "music"]).round(2).to_dict("records")[0]
        {'system': 'SigLIP', 'domain': 'sound', 'pairs': 2, 'pull': 0.45, 'same': 0.2, 'other': 0.1}
    """
    names, rows = np.array(domains), []
    for system, values in weights.items():
        matrix = values.double().numpy()
        pull, push = -matrix.diagonal(), matrix - np.diag(matrix.diagonal())
        for name in dict.fromkeys(domains):
            own = names == name
            same, other = (push[np.ix_(own, columns)].sum(axis=1).mean() for columns in (own, ~own))
            rows.append((system, name, int(own.sum()), pull[own].mean(), same, other))
    return pd.DataFrame(rows, columns=["system", "domain", "pairs", "pull", "same", "other"])


def gradient_left_out(run: Result, clips: Clips, processes: int, *, seed: int = 0) -> Array:
    """How far the gradient of losses within processes is from that of the gathered batch, `(1, batches)`.

    It is the norm of the difference of both gradients of all trained weights, over that of the gathered one, with the
    loss as it was learnt. Each of the first batches that training would draw is dealt out to so many processes, a
    divisor of its size, in equal parts, and their local losses are averaged.
    """
    objective, loss = Objective(run.model, run.recipe), loss_of(run)
    weights = [weight for weight in run.model.parameters() if weight.requires_grad]
    found = []
    for batch in drawn(clips, run.recipe, seed=seed):
        audio, (text, *_) = run.model.encode_audio(batch.audio, batch.lengths), objective.embed_here(batch)
        parts = zip(audio.chunk(processes), text.chunk(processes), strict=True)
        local = torch.stack([loss(*part) for part in parts]).mean()
        whole, within = (
            torch.cat([part.flatten() for part in torch.autograd.grad(value, weights, retain_graph=True)])
            for value in (loss(audio, text), local)
        )
        found.append(float((whole - within).norm() / whole.norm()))
    return np.array(found)[None]


# ---------------------------------------------------------------- what runs learnt


def learnt(run: Result) -> dict[str, float]:
    """The numbers of its loss that a run had learnt where its model was taken: tau and, of a sigmoid, bias."""
    steps = run.steps.set_index("step")
    numbers = steps[[name for name in ("tau", "bias") if name in steps]]
    return {str(name): float(value) for name, value in numbers.loc[int(run.best["step"])].items()}


def loss_of(run: Result) -> Loss:
    """The loss of a run, of (audio, text), with what it had learnt: InfoNCE from texts to clips, or the sigmoid."""
    numbers, options = learnt(run), run.recipe.terms[0].settings
    if "bias" not in numbers:
        return partial(info_nce, tau=numbers["tau"], direction="t2a")
    return partial(siglip, **numbers, form=options["form"])


def spaces(trained: Mapping[str, Result], clips: Clips) -> dict[str, Space]:
    """The pairs of some clips as each system's run places them, with its loss."""
    return {
        system: Space(*embed(run.model, clips, language=SEVERAL), loss_of(run), learnt(run)["tau"])
        for system, run in trained.items()
    }


def sigmoid_of(run: Result) -> tuple[float, float]:
    """The temperature of a run and its bias beside s/τ, whichever form it was trained in."""
    numbers, is_printed = learnt(run), run.recipe.terms[0].settings["form"] == "glap"
    return numbers["tau"], numbers["bias"] / (numbers["tau"] if is_printed else 1.0)


def ends(run: Result) -> Values:
    """Of a sigmoid, `(1,)` each: start (the bias beside s/τ before training), bias and tau (where the model was taken),
    and moved, how far that bias is from its start.
    """
    (tau, bias), term = sigmoid_of(run), run.recipe.terms[0]
    start = float(term.create().learnt["bias"].detach())
    start /= term.settings["tau"] if term.settings["form"] == "glap" else 1.0
    found = {"start": start, "bias": bias, "tau": tau, "moved": abs(bias - start)}
    return {name: np.array([value]) for name, value in found.items()}


# ---------------------------------------------------------------- clips


def one_of_each(ground: Grounds, thing: str) -> Mixed:
    """Three clips: the sound of a thing, music played on it, and a person who says in French what it is.

    thing: a sound event, an instrument, and a stamp that speaks, such as "violin". Without recordings the first clip
    of each test stands in, and the first sound of a bank of one's own that has no such event.

    Raises:
        UnknownNameError: one of the three is missing.
    """
    if not ground.has_recordings:
        return Mixed.of("examples", [ground.test(domain).test.head(1) for domain in DOMAINS])
    clips: dict[str, Clips] = {domain: ground.test(domain).singles for domain in ("sound", "music")}
    found = {}
    for domain, singles in clips.items():
        names = singles.prompts("eng", "{label}")
        found[domain] = [row for row, label in enumerate(singles.labels.tolist()) if names[label] == thing]
    found["sound"] = found["sound"] or [0] * ground.is_own
    clips["speech"] = ground.load("stamps").train
    said = zip(clips["speech"].captions("eng"), clips["speech"].columns["spoken"], strict=True)
    found["speech"] = [row for row, each in enumerate(said) if each == ([f"A {thing}."], "fra")]
    if missing := [domain for domain, rows in found.items() if not rows]:
        raise UnknownNameError(f"no {thing!r} as {', '.join(missing)}: take a violin or a bassoon")
    return Mixed.of("examples", [each.select(found[name][:1]) for name, each in clips.items()])


def named_by_prompts(model: nn.Module, singles: Mapping[str, Clips]) -> pd.DataFrame:
    """Zero-shot accuracy with each prompt of GLAP's Table 3, in English: columns clips (the domain), prompt, accuracy
    and chance.

    singles: domain → clips of a single event.

    Raises:
        PullPushError: the clips of a domain are all of one class.
    """
    rows = []
    for domain, clips in singles.items():
        for templates in GLAP.values():
            table = zero_shot(model, clips, clips.prompts("eng", templates["eng"])).set_index("metric")
            rows.append((domain, templates["eng"], *table.loc["accuracy", ["value", "chance"]]))
    return pd.DataFrame(rows, columns=["clips", "prompt", "accuracy", "chance"])


def keywords(scores: Scores, ground: Grounds, learnt_from: Mixed) -> pd.DataFrame:
    """Accuracy of spoken words by language, of the experiment that asks by the bare label, beside chance and what
    length alone tells: columns language, words, clips (of training in it), heard, value, low, high, chance, length,
    seeds; fractions.
    """
    spoken: list[str] = []
    for source in learnt_from.sources:
        column = next((name for name in ("spoken", "language") if name in source.columns), "")
        spoken += [ISO.get(each, each) for each in source.columns[column]] if column else []
    rows = []
    for language, accuracy in spotted(scores).items():
        one, clips, words = difference(accuracy), spoken.count(language), accuracy.shape[1]
        alone = by_length(ground.test(f"{KEYWORDS}{language}").singles).mean()
        span = (one.value, max(one.low, 0.0), min(one.high, 1.0))
        rows.append((language, words, clips, clips > 0, *span, 1 / words, alone, one.seeds))
    names = ["language", "words", "clips", "heard", "value", "low", "high", "chance", "length", "seeds"]
    return pd.DataFrame(rows, columns=names)


def commands(scores: Scores) -> pd.DataFrame:
    """Accuracy of English words that others recorded, by system and by length alone: system, words, value,
    low, high, seeds, chance; fractions.
    """
    table = levels(scores, "accuracy eng").rename(columns={"clips": "words"})
    alone = measured.read("recordings", group=COMMANDS, metric="class R@1").assign(words=table["words"].max())
    columns = ["system", "words", "value", "low", "high", "seeds"]
    table = pd.concat([table[columns], alone[columns]], ignore_index=True)
    return table.assign(low=table["low"].clip(lower=0), chance=1 / table["words"])
