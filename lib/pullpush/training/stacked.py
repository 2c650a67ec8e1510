"""Many small runs on frozen features at once: their weights are stacked, and each step is one for all of them.

    train_stacked([Plan(fast, one, seed) for seed in range(16)])    # each in its folder, as `Plan.train` would leave it

A run on features is so small that a GPU spends its time on starting kernels. Runs of one shape (same losses, sizes,
optimiser and number of steps; seeds, data, languages and sampling may differ) share each kernel by `torch.vmap`. Every
run has the batches, the initial weights, the clipping and the best epoch that it has alone, and ends at the same
numbers up to rounding. A killed stack begins anew.
"""

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.func import functional_call
from tqdm.auto import tqdm

from pullpush.cache import content_key, locked
from pullpush.encoders import DualEncoder
from pullpush.encoders.dual import Projection, normalise
from pullpush.encoders.frozen import FrozenText
from pullpush.errors import TrainingError
from pullpush.losses import TERMS, Offer
from pullpush.parallel import one_thread
from pullpush.progress import hidden
from pullpush.training import checkpoints, distributed, loop, runs
from pullpush.training.checkpoints import BEST, CHECKPOINT, Progress
from pullpush.training.evaluate import first_captions, recall_of
from pullpush.training.objective import Objective, Outcome
from pullpush.training.optimiser import make_optimiser, rate, update
from pullpush.training.runs import Plan

NEEDS = {"audio", "text", "other", "texts", "present"}  # what losses may need or use here
State = dict[str, Tensor]  # parameters and buffers by name, all runs' in one tensor, `(S, …)`


def train_stacked(plans: Sequence[Plan], *, progress: bool | None = None) -> list[loop.Result]:
    """Several runs of one shape, those that are missing trained together; the others are read.

    Args:
        plans: of one `shape_of`; weights, moments and embeddings of all are in memory at once.
        progress: show a bar.

    Raises:
        TrainingError: runs of several shapes, or one that goes alone; a loss or gradient that is not finite (run, step,
            epoch and clips are named).
        CacheError: the cache cannot be written.
    """
    plans_by_key = {plan.key: plan for plan in plans}
    shapes = {shape_of(plan) for plan in plans}
    if len(shapes) > 1 or None in shapes:
        raise TrainingError(
            f"runs that are trained together have one shape, got {len(shapes)} of {len(plans)} runs"
            f"{', some of which go alone' if None in shapes else ''}: group them by stacked.shape_of"
        )
    with ExitStack() as stack, one_thread():
        again = (*loop.TABLES, runs.SECONDS)  # locks in one order, so that no two processes wait for each other
        out = {key: stack.enter_context(locked(runs.KIND, key, again=again)) for key in sorted(plans_by_key)}
        missing = [plan for key, plan in plans_by_key.items() if not loop.is_finished(out[key])]
        if missing:
            began = time.monotonic()
            for plan, trained in zip(missing, _train(missing, progress), strict=True):
                _write(plan, out[plan.key], *trained)
            for plan in missing:
                runs.write_seconds(out[plan.key], (time.monotonic() - began) / len(missing))
    return [plan.train() for plan in plans]


def shape_of(plan: Plan) -> str | None:
    """What runs have in common that can be trained together; None for one that goes alone.

    Alone go runs that are not on features with a frozen text encoder, that lack captions, are watched by diagnostics,
    whose temperature anneals, or whose losses need more than embeddings; and all where several processes train.
    """
    one, data = plan.recipe, plan.world.train
    needs = {need for term in one.terms for need in (*TERMS[term.name].make.needs, *TERMS[term.name].make.uses)}
    stands_alone = one.audio != "features" or one.captions == "all" or one.optimiser == "adam8bit"
    stands_alone = stands_alone or one.audio_chunk or one.tau_end
    if stands_alone or plan.diagnostics or hasattr(data, "pairs") or needs - NEEDS or distributed.world()[1] > 1:
        return None
    if one.sampling == "all" and not all(all(data.captions(language)) for language in one.languages):
        return None
    texts = {"all": len(one.languages), "pair": 2}.get(one.sampling, 1)
    same = {"name": "", "languages": ("eng",), "sampling": "fixed", "captions": "first", "balance": {}}
    return content_key([replace(one, **same), len(data), texts])


def groups(plans: Iterable[Plan], most: int) -> Iterator[list[Plan]]:
    """Runs that can be trained together, at most so many at once and two at least."""
    of_shape: dict[str, list[Plan]] = {}
    for plan in plans:
        if shape := shape_of(plan):
            of_shape.setdefault(shape, []).append(plan)
    for same in of_shape.values():
        parts = (same[start : start + most] for start in range(0, len(same), most))
        yield from (part for part in parts if len(part) > 1)


class _Step(nn.Module):
    """What one run does, which `torch.vmap` does for all: its objective on features in place of clips and texts."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, what: str, *given: Any) -> Any:
        return getattr(self, what)(*given)

    def embed(self, audio: Tensor, text: Tensor) -> tuple[Tensor, Tensor]:
        model: Any = self.objective.model
        return _projected(model.audio_projection, audio), _projected(model.text_projection, text)

    def loss(self, audio: Tensor, texts: Tensor) -> tuple[Any, ...]:
        """`(B, D)` features of clips and `(1 + K, B, D')` of their texts → loss, terms, reports."""
        clips, embedded = self.embed(audio, texts)
        text, *parallel = embedded.unbind()
        return self.objective.outcome(Offer(clips, text, tuple(parallel)))[:3]

    def numbers(self, loss: Tensor, terms: tuple[Tensor, ...], reports: tuple[State, ...]) -> State:
        """As `loop.details`, with the weights after the update."""
        outcome = Outcome(loss, terms, reports, Offer(loss, loss))
        return {"loss": loss} | loop.details(self.objective, outcome, self.objective.recipe)


def _projected(projection: Projection, x: Tensor) -> Tensor:
    """As the module, but that gradients come in the layout of the weights: no copy of all runs' weights a step."""
    rows = x.flatten(end_dim=-2)
    for layer in projection.layers:
        rows = (layer.weight @ rows.mT).mT + layer.bias if isinstance(layer, nn.Linear) else layer(rows)
    return normalise(rows).view(*x.shape[:-1], -1)


class _Stack:
    """The weights of several runs, their optimiser, and tables of what they learn from."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        accelerator = distributed.accelerator()
        self.device, self.autocast = accelerator.device, accelerator.autocast
        made = [runs.ready(plan.world, plan.recipe, seed=plan.seed) for plan in plans]
        self.datasets: list[Any] = [dataset for _, dataset in made]
        self.objectives = [_objective(model, plan) for (model, _), plan in zip(made, plans, strict=True)]
        first = self.objectives[0]
        self.step, self.encode = _Step(first), first.model.text
        own = dict(first.named_parameters()) | {f"terms.{name}": b for name, b in first.terms.named_buffers()}
        every = [objective.state_dict() for objective in self.objectives]
        self.state = {name: torch.stack([state[name] for state in every]).to(self.device) for name in own}
        self.optimiser = make_optimiser(first, first.recipe, on_gpu=self.device.type == "cuda")
        names = {value: name for name, value in own.items()}
        for group in self.optimiser.param_groups:
            group["params"] = [self.state[names[value]].requires_grad_() for value in group["params"]]
        splits = list({id(plan.world.train): plan.world.train for plan in plans}.values())
        starts = dict(zip(map(id, splits), itertools.accumulate(map(len, splits), initial=0), strict=False))
        self.starts = torch.tensor([[starts[id(plan.world.train)]] for plan in plans])  # each run's first clip
        self.audio = torch.cat([split.audio(slice(None))[0] for split in splits]).to(self.device)
        self.rows: dict[str, int] = {}  # of the texts that have come, in the table of their features
        self.texts = torch.empty(0, self.encode.dim, device=self.device)

    def call(self, what: str, *given: Any, shared: bool = False) -> Any:
        """What `_Step` does, for all runs; shared: with the same arguments."""

        def one(state: State, *of_run: Any) -> Any:
            weights = {f"objective.{name}": state[name] for name in state}
            # Terms share a temperature as a module, which would be swapped, and restored, twice.
            return functional_call(self.step, weights, (what, *of_run), tie_weights=False)

        dims = (0, *(None if shared else 0 for _ in given))
        with self.autocast():
            return torch.vmap(one, in_dims=dims, randomness="error")(self.state, *given)

    def look_up(self, texts: Sequence[str]) -> Tensor:
        """Rows of texts in the table of features, where new ones are added."""
        if new := [text for text in dict.fromkeys(texts) if text not in self.rows]:
            self.rows |= {text: len(self.rows) + number for number, text in enumerate(new)}
            self.texts = torch.cat([self.texts, self.encode(new).to(self.device)])
        return torch.tensor([self.rows[text] for text in texts])

    def batches(self, seeds: Sequence[int], epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """For each step of an epoch the clips, `(S, B)`, and their texts in the table, `(S, 1 + K, B)`."""
        size, drawn = self.objectives[0].recipe.batch_size, []
        for dataset, seed in zip(self.datasets, seeds, strict=True):
            dataset.epoch, order = epoch, dataset.order(size, seed=seed, epoch=epoch)
            found = {clip: dataset.texts(clip) for clip in dict.fromkeys(itertools.chain(*order))}
            rows = self.look_up([text for of_clip in found.values() for text in (of_clip.text, *of_clip.parallel)])
            table = dict(zip(found, rows.view(len(found), -1), strict=True))
            drawn.append([(torch.tensor(clips), torch.stack([table[clip] for clip in clips]).T) for clips in order])
        for of_runs in zip(*drawn, strict=True):
            clips, texts = map(torch.stack, zip(*of_runs, strict=True))
            yield clips, texts

    def clip_gradients(self, longest: float) -> State:
        """As `optimiser.clip_gradients`, each run on its own: norms, `(S,)`."""
        norms = {}
        for title, part in (("gradient", "model."), ("loss_gradient", "terms.")):
            if learnt := [x for name, x in self.state.items() if name.startswith(part) and x.requires_grad]:
                found = [value.grad for value in learnt if value.grad is not None]
                of_each = [torch.linalg.vector_norm(gradient.view(len(gradient), -1), dim=1) for gradient in found]
                norms[title] = torch.linalg.vector_norm(torch.stack(of_each), dim=0)
                share = (longest / (norms[title] + 1e-6)).clamp(max=1)
                for gradient in found:
                    gradient.mul_(share.view(-1, *[1] * (gradient.ndim - 1)))
        return norms

    @torch.no_grad()
    def scores(self, plans: Sequence[Plan]) -> list[dict[str, float]]:
        """R@1 of each run on its validation clips, as `recall_at_1`; runs on the same ones together."""
        found: dict[int, dict[str, float]] = {}
        each = [(plan.world.valid, plan.recipe.languages[0]) for plan in plans]
        for split, language in set(each):
            rows, texts = first_captions(split, language)
            numbers = self.look_up(texts).to(self.device)
            embedded = self.call("embed", split.audio(slice(None))[0].to(self.device), self.texts[numbers], shared=True)
            audio, text = (of_all.float().cpu() for of_all in embedded)
            chosen = [run for run, of_run in enumerate(each) if of_run == (split, language)]
            found |= {run: recall_of(audio[run], text[run], rows) for run in chosen}
        return [found[run] for run in range(len(plans))]


def _objective(model: DualEncoder, plan: Plan) -> Objective:
    """As `train` makes it."""
    if not isinstance(model.text, FrozenText):
        raise TrainingError(f"{plan.recipe.text!r} does not look its features up: train this run alone")
    runs.check_texts_of(plan.base, plan.recipe)
    return loop.objective_of(model, plan.recipe, seed=plan.seed, base=plan.base)


def _train(plans: Sequence[Plan], progress: bool | None) -> list[tuple[Objective, Progress]]:
    """All runs from their first step to their last: the best weights of each, and what it reported."""
    one, stack = plans[0].recipe, _Stack(plans)
    total = stack.datasets[0].steps(one.batch_size) * one.epochs
    done, step = [Progress() for _ in plans], 0
    best = {name: value.detach().clone() for name, value in stack.state.items()}
    unread: list[tuple[dict[str, Any], Tensor]] = []
    healthy = torch.ones((), dtype=torch.bool, device=stack.device)

    def look() -> None:
        for number, rows in enumerate(loop.numbers([row for row, _ in unread], len(plans))):
            for row, (_, clips) in zip(rows, unread, strict=True):
                try:
                    loop.check_finite(row, clips[number])
                except TrainingError as error:
                    raise TrainingError(f"of {plans[number].recipe.name}, seed {plans[number].seed}: {error}") from None
            done[number].steps += rows
            done[number].step = step
        unread.clear()

    with tqdm(total=total, desc=f"{len(plans)} × {one.name}", unit="step", disable=hidden(progress)) as bar:
        for epoch in range(1, one.epochs + 1):
            for clips, texts in stack.batches([plan.seed for plan in plans], epoch - 1):
                lr = one.lr * rate(step, total, one)
                for group in stack.optimiser.param_groups:
                    group["lr"] = lr * group["factor"]
                rows = (clips + stack.starts).to(stack.device)
                loss, *more = stack.call("loss", stack.audio[rows], stack.texts[texts.to(stack.device)])
                loss.sum().backward()
                norms = stack.clip_gradients(one.clip or math.inf)
                healthy = healthy & torch.isfinite(loss.detach() + sum(norms.values())).all()
                update(stack.optimiser, healthy)
                stack.optimiser.zero_grad()
                step += 1
                row = {"step": step, "epoch": epoch, "clips": clips.shape[1], "loss": loss.detach(), "lr": lr}
                with torch.no_grad():
                    unread.append((row | norms | stack.call("numbers", loss, *more), clips))
                bar.update()
                if len(unread) == loop.LOOK:
                    look()
            look()
            better = [
                loop.close_epoch(of_run, epoch, scores, one)
                for of_run, scores in zip(done, stack.scores(plans), strict=True)
            ]
            for name, value in stack.state.items():
                best[name][better] = value.detach()[better]
    for number, objective in enumerate(stack.objectives):
        kept = {name: value[number].cpu() for name, value in best.items()}
        checkpoints.load_weights(objective, checkpoints.weights(objective) | kept)
    return list(zip(stack.objectives, done, strict=True))


def _write(plan: Plan, out: Path, objective: Objective, done: Progress) -> None:
    """What `train` leaves in a folder."""
    data = content_key(plan.world.identity)
    identity = loop.identity_of(plan.recipe, plan.seed, data, plan.world.train, plan.base, None)
    checkpoints.write(out / BEST, checkpoints.weights(objective), done.best)
    checkpoints.save(out / CHECKPOINT, objective, None, done, identity)
    tables = pd.DataFrame(done.history), pd.DataFrame(done.steps)
    loop.write_tables(loop.Result(objective.model, *tables, done.best, plan.recipe, out))
