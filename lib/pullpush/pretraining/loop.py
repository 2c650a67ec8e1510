"""One loop for every objective: the same clips in the same order, the same optimiser, the same initial weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer
from tqdm.auto import tqdm

from pullpush.cache import content_key
from pullpush.data.draws import number
from pullpush.encoders import create_audio
from pullpush.golden import versions
from pullpush.pretraining.corpus import Batch, Corpus
from pullpush.pretraining.objective import OBJECTIVES, Objective
from pullpush.progress import hidden
from pullpush.training import checkpoints
from pullpush.training.checkpoints import CHECKPOINT, Progress

ENCODER = "audio_transformer"


@dataclass(frozen=True)
class Budget:
    """How long is pretrained and how: all objectives alike.

    steps: how many; clips: in a step; lr: the highest learning rate; period: steps of its rise, over a tenth of them,
    and of its half cosine down, which need not be run to their end: it falls to zero in a straight line over the last
    tenth of `steps`; decay: of weights, by AdamW; clip: longest gradient; kept_every: steps between checkpoints; half:
    matrix products in bfloat16, faster on recent processors where batches are large; width, layers, heads: of the
    encoder.
    """

    steps: int = 1450
    clips: int = 32
    lr: float = 1e-3
    period: int = 2192
    decay: float = 0.05
    clip: float = 1.0
    kept_every: int = 100
    half: bool = True
    width: int = 128
    layers: int = 4
    heads: int = 4

    def __post_init__(self) -> None:
        if min(self.steps, self.clips, self.period, self.kept_every) < 1 or self.lr <= 0:
            raise ValueError(f"steps, clips, period, kept_every and lr must be positive, got {self}")

    def rate(self, step: int) -> float:
        """The learning rate at a step counted from 0.

        >>> [round(Budget(20, period=20, lr=1.0).rate(step), 2) for step in (0, 1, 2, 11, 19)]
        [0.5, 1.0, 1.0, 0.5, 0.0]
        """
        warm = max(1, round(0.1 * self.period))
        end = min(1.0, (self.steps - step) / max(1, self.steps // 10))
        if step < warm:
            return self.lr * (step + 1) / warm * end
        return self.lr * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(self.period - warm, 1))) * end


def pretrain(
    name: str,
    train: Corpus,
    held_out: Corpus,
    *,
    out: Path,
    seed: int = 0,
    budget: Budget | None = None,
    progress: bool | None = None,
) -> tuple[Objective, Progress]:
    """Pretrain one encoder; a run that was stopped goes on where its last checkpoint was, to the same weights.

    Args:
        name: of an objective.
        train: clips to learn from.
        held_out: clips on which a loss is taken after every epoch and in the end; nothing is chosen by it.
        out: folder of the run.
        seed: of the initial weights, the order of the clips and all other draws.
        budget: default: that of the weights that travel with the library.
        progress: show a bar; default: in a terminal.

    Returns:
        The objective with its trained network; and its history, a row an epoch: loss, held_out and the scores.

    Raises:
        UnknownNameError: no such objective.
        TrainingError: `out` holds another run, or a damaged one.
        CacheError: the disk is full or cannot be written.

    >>> from pullpush.pretraining import load_corpus
    >>> small = Budget(2, clips=8, width=8, layers=1, heads=2)
    >>> objective, progress = pretrain("tagging", *load_corpus("synthetic"), out=Path("run"), budget=small)
    >>> len(progress.history), objective.network.width
    (1, 8)
    """
    budget = budget or Budget()
    objective = initial(name, train, held_out, seed, budget)
    optimiser = make_optimiser(objective, budget)
    parts = versions(f"studies/pretraining-{name}")
    identity = content_key([name, seed, {**asdict(budget), "kept_every": 0}, train.key, held_out.key, parts])
    path, state = out / CHECKPOINT, Progress()
    if path.is_file():
        state = checkpoints.restore(path, objective, optimiser, identity)
    with tqdm(total=budget.steps, initial=state.step, desc=name, unit="step", disable=hidden(progress)) as bar:
        for row in learn(objective, optimiser, state, seed, budget):
            bar.update()
            if row:
                bar.set_postfix({key: f"{row[key]:.3f}" for key in ("loss", "held_out")})
            if state.step % budget.kept_every == 0 or state.step == budget.steps:
                checkpoints.save(path, objective, optimiser, state, identity)
    return objective.eval(), state


def learn(
    objective: Objective, optimiser: Optimizer, state: Progress, seed: int, budget: Budget
) -> Iterator[dict[str, float] | None]:
    """Go on from a state, step by step, to the end of the budget; gives the history's row where an epoch ends."""
    train = objective.train_on
    epoch = -(-len(train) // budget.clips)  # in steps
    while state.step < budget.steps:
        turn, place = divmod(state.step, epoch)
        for rows in order(len(train), budget.clips, seed, turn)[place : place + budget.steps - state.step]:
            lr, draws = budget.rate(state.step), generator_of(seed, "step", state.step)
            loss = _step(objective, optimiser, rows, lr, draws, budget)
            state.steps.append({"step": state.step, "loss": loss})
            state.step += 1
            ended = state.step % epoch == 0 or state.step == budget.steps
            if ended:
                state.history.append(_row(objective, state, epoch, seed, budget))
            yield state.history[-1] if ended else None


def initial(name: str, train: Corpus, held_out: Corpus, seed: int, budget: Budget) -> Objective:
    """An objective before its first step, around the network of `create_audio("audio_transformer", seed=seed)`.

    The network's weights are the same for every objective: those of the encoder with `weights=None`.
    """
    size = {"width": budget.width, "layers": budget.layers, "heads": budget.heads}
    encoder = create_audio(ENCODER, seed=seed, **size)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return OBJECTIVES[name].make(encoder.network.model, train, held_out)


def make_optimiser(objective: Objective, budget: Budget) -> Optimizer:
    """AdamW; biases, norms and single vectors do not decay."""
    parameters = list(objective.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": budget.decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=budget.lr)


def order(clips: int, size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The clips of an epoch in steps of `size`, every clip once; the same for all objectives."""
    drawn = np.random.default_rng(number(("pretraining", seed, epoch))).permutation(clips)
    return [drawn[start : start + size] for start in range(0, clips, size)]


def generator_of(*what: int | str) -> torch.Generator:
    """Draws that depend on what they are for alone, so that a run that goes on draws the same."""
    return torch.Generator().manual_seed(number(what) % 2**63)


def held_out_batches(corpus: Corpus, seed: int) -> Iterator[tuple[Batch, torch.Generator]]:
    """All clips of a corpus in batches, each with draws that are the same after every epoch."""
    for place, batch in enumerate(corpus.batches(np.arange(len(corpus)))):
        yield batch, generator_of(seed, "held out", place)


def precision(budget: Budget) -> AbstractContextManager:
    """Matrix products in bfloat16, where the budget says so."""
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=budget.half)


def _step(
    objective: Objective, optimiser: Optimizer, rows: np.ndarray, lr: float, draws: torch.Generator, budget: Budget
) -> float:
    """One update by some clips, in batches of similar length; returns the loss, every clip counting alike."""
    objective.train()
    loss = 0.0
    for batch in objective.train_on.batches(rows):
        with precision(budget):
            part = objective.loss(batch, objective.train_on, draws) * (len(batch.rows) / len(rows))
        part.backward()
        loss += float(part.detach())
    torch.nn.utils.clip_grad_norm_(objective.parameters(), budget.clip)
    for group in optimiser.param_groups:
        group["lr"] = lr
    optimiser.step()
    optimiser.zero_grad()
    return loss


@torch.no_grad()
def _row(objective: Objective, state: Progress, epoch: int, seed: int, budget: Budget) -> dict[str, float]:
    """The last steps, at most `epoch`, in figures: the mean of their losses, the held-out loss and the scores."""
    objective.eval()
    held_out, losses = objective.held_out, []
    with precision(budget):
        for batch, draws in held_out_batches(held_out, seed):
            losses.append(float(objective.loss(batch, held_out, draws)) * len(batch.rows) / len(held_out))
        scores = objective.scores(held_out_batches(held_out, seed))
    recent = [row["loss"] for row in state.steps[-epoch:]]
    return {"epoch": state.step / epoch, "loss": sum(recent) / len(recent), "held_out": sum(losses), **scores}


def tensors_of(objective: Objective) -> dict[str, Tensor]:
    """The network's weights as they are kept: float16."""
    return {name: value.detach().half().contiguous() for name, value in objective.network.state_dict().items()}
