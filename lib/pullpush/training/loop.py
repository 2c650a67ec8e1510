"""The training loop, top to bottom: one process or several, and exact to the last bit when it is resumed.

Batches depend on (seed, epoch) and all other randomness on (seed, step), so a run killed at any moment goes on from
its last checkpoint to the numbers of an uninterrupted one (on a CPU; GPU kernels may round differently each time).

Steps wait for nothing: a thread prepares the next batches, and what steps report stays on the device until `LOOK` of
them are done, an epoch ends or a checkpoint is due. A loss or gradient that is not finite holds this and all further
updates back, and is then reported with its step and clips.
"""

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from pullpush.cache import atomic_path, content_key, digest, tidy
from pullpush.data.batches import Batch, PairDataset, TrainingData
from pullpush.data.clips import Clips, said_of
from pullpush.encoders.dual import DualEncoder
from pullpush.encoders.interface import Model
from pullpush.encoders.windows import check_lengths, check_seconds
from pullpush.errors import AudioError, TrainingError
from pullpush.parallel import ahead, drawing
from pullpush.progress import hidden
from pullpush.training import checkpoints, distributed
from pullpush.training.checkpoints import BEST, CHECKPOINT, Progress
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.distributed import world
from pullpush.training.evaluate import first_captions, recall_at_1
from pullpush.training.objective import Objective, Outcome, bring_columns
from pullpush.training.optimiser import clip_gradients, make_optimiser, rate, update
from pullpush.training.recipes import Recipe

RECIPE = "recipe.json"
TABLES = ("history.csv", "steps.csv", RECIPE)  # written from the checkpoint, anew where one is missing
LOOK = 50  # steps between two looks at what they report
NORMS = {"loss": "loss", "gradient": "norm of the gradient", "loss_gradient": "norm of the loss's own gradient"}


@dataclass(frozen=True)
class Result:
    """A finished run.

    Attributes:
        model: in eval mode with the weights of the best epoch, or of the last (`Recipe.checkpoint`).
        history: a row an epoch: epoch (from 1), step, loss (mean over clips), T2A R@1, A2T R@1 and their mean R@1.
        steps: a row a step: step (from 1), epoch, clips, loss, lr, gradient (norm of the encoders' before clipping),
            tau and loss_gradient (that of the loss's own parameters) where there are any, what the terms report
            (radius of SVR), missing texts (NaN in steps without), and the columns of the diagnostics (NaN in steps that
            were not watched).
        best: that epoch's row of `history`.
        recipe: what was trained.
        path: the run's folder, or None.
    """

    model: nn.Module
    history: pd.DataFrame
    steps: pd.DataFrame
    best: dict[str, float]
    recipe: Recipe
    path: Path | None

    def __fspath__(self) -> str:
        """The run's folder: a result stands for it where a path does.

        Raises:
            TrainingError: the run was kept in memory only.
        """
        if self.path is None:
            raise TrainingError("the run was kept in memory only: train it with a folder (out=…), or by a Plan")
        return str(self.path)


def train(
    model: Model,
    recipe: Recipe,
    train_dataset: TrainingData,
    valid_split: Clips,
    *,
    out: Path | str | None = None,
    seed: int = 0,
    resume: bool = True,
    diagnostics: Diagnostics | None = None,
    progress: bool | None = None,
    base: Path | str | None = None,
    data: str = "",
    save_after: float = 60.0,
    after_epoch: Callable[[Mapping[str, float]], None] | None = None,
) -> Result:
    """Train a model by a recipe and give it the weights of its best epoch, or of its last (`Recipe.checkpoint`).

    Best is the highest mean of R@1 in both directions on the validation clips with their first captions.

    Args:
        model: trained in place. Parameters that do not require gradients stay as they are.
        recipe: terms, optimiser, epochs, batch size; its encoders and languages are those of `model`, `train_dataset`.
        train_dataset: the pairs, such as a `PairDataset`; it gives audio at the model's rate from now on.
        valid_split: the clips to choose the best epoch by, in the dataset's first language.
        out: folder for checkpoints and tables; None keeps nothing.
        seed: of the losses' own weights, batch order and dropout.
        resume: go on from the checkpoint in `out`, if there is one; False starts anew.
        diagnostics: what to measure at every few steps.
        progress: show a bar; default: in a terminal, unless $PULLPUSH_PROGRESS is 0.
        base: run whose best weights the model starts from.
        data: what tells the clips from others; a checkpoint of a run on other clips is refused. Default: the keys of
            the clips, their languages, and how texts are drawn.
        save_after: seconds between two checkpoints, which a killed run loses at most; 0: one after each step.
        after_epoch: called in the first process with each new row of the history: epoch, step, loss, R@1 …

    Raises:
        TrainingError: loss or gradient is not finite (step, epoch and clips are named); `out` holds another run; the
            pairs are balanced otherwise than the recipe says; of several processes each would train alone.
        CacheError: a checkpoint cannot be written.
    """
    if dict(recipe.balance) != dict(train_dataset.weights):
        raise TrainingError(
            f"the recipe balances {dict(recipe.balance)}, its training pairs {dict(train_dataset.weights)}: make them "
            "with weights=recipe.balance"
        )
    for name in ("languages", "sampling", "captions"):
        if getattr(getattr(train_dataset, "pairing", recipe), name) != getattr(recipe, name):
            warnings.warn(f"{name} of the recipe and of its training pairs differ: texts are the pairs'", stacklevel=2)
    accelerator = distributed.accelerator()
    bring_columns(train_dataset, recipe)
    train_dataset.sample_rate = model.sample_rate
    out, base = (Path(place) if place is not None else None for place in (out, base))
    objective = objective_of(model, recipe, seed=seed, base=base)
    device, on_gpu = accelerator.device, accelerator.device.type == "cuda"
    towers, optimiser = accelerator.prepare(objective, make_optimiser(objective, recipe, on_gpu=on_gpu))
    rank, processes = world()
    share = {"rank": rank, "processes": processes}
    if on_gpu and isinstance(train_dataset, PairDataset):
        share["as_stored"] = True
    steps_per_epoch = train_dataset.steps(recipe.batch_size, processes=processes)
    total = steps_per_epoch * recipe.epochs
    known = data or names_of_clips(train_dataset, valid_split)
    identity = identity_of(recipe, seed, known, train_dataset, base, diagnostics)

    first_captions(valid_split, train_dataset.languages[0])  # refused before an epoch is paid for
    if out and accelerator.is_main_process:
        tidy(out)
        for name in () if resume else (*TABLES, CHECKPOINT, BEST):  # else they would stand beside another run's
            (out / name).unlink(missing_ok=True)
    done, best_weights = Progress(), checkpoints.weights(objective)
    accelerator.wait_for_everyone()
    if out and resume and (out / CHECKPOINT).is_file():
        done = checkpoints.restore(out / CHECKPOINT, objective, optimiser, identity)
        if done.best:
            best_weights = checkpoints.read(out / BEST)[0]
    watch = diagnostics.on(objective, train_dataset, valid_split) if diagnostics and done.step < total else None
    on_disk, since, began = done.best, time.monotonic(), done.step
    unread: list[tuple[dict[str, Any], Tensor]] = []  # of steps since the last look: what they report, and their clips
    healthy = torch.ones((), dtype=torch.bool, device=device)

    def look() -> None:
        """Ask the device what the steps since the last look have reported."""
        done.steps += (rows := numbers([row for row, _ in unread])[0])
        for row, (_, clips) in zip(rows, unread, strict=True):
            check_finite(row, clips)
        unread.clear()

    def keep(*, ends: bool = False) -> None:
        """Write a checkpoint where one is due; a complete run needs neither the optimiser nor the last weights."""
        nonlocal on_disk, since
        if not out or not accelerator.is_main_process or (not ends and time.monotonic() - since < save_after):
            return
        if not healthy:  # the next look says so, in all processes at once
            return
        look()
        if done.best != on_disk:  # before the checkpoint that counts on it
            checkpoints.write(out / BEST, best_weights, done.best)
        checkpoints.save(out / CHECKPOINT, objective, None if ends else optimiser, done, identity)
        on_disk, since = done.best, time.monotonic()

    quiet = hidden(progress) if accelerator.is_main_process else True
    bar = tqdm(total=total, initial=done.step, desc=recipe.name, unit="step", disable=quiet)
    devices = [torch.cuda.current_device()] if on_gpu else []
    with bar, torch.random.fork_rng(devices, enabled=done.step < total):  # the caller's are as before
        for epoch in range(done.step // steps_per_epoch, recipe.epochs):
            towers.train()
            skip = done.step - epoch * steps_per_epoch
            batches = train_dataset.batches(recipe.batch_size, seed=seed, epoch=epoch, skip=skip, **share)
            for batch in prepared(batches, model, step=done.step + 1, epoch=epoch + 1, on_gpu=on_gpu):
                step, clips = done.step + 1, batch.index
                batch = batch.to(device, non_blocking=on_gpu)
                watched = watch is not None and done.step % watch.every == 0
                lr = recipe.lr * rate(done.step, total, recipe)
                for group in optimiser.param_groups:
                    group["lr"] = lr * group["factor"]
                objective.anneal(done.step / total)

                if watched:
                    reseed(seed, step)  # dropout falls on the texts before, in and after the step alike
                    start = watch.before(objective, batch)  # pyrefly: ignore[missing-attribute]
                reseed(seed, step)
                with located(clips, step, epoch + 1):
                    outcome = towers(batch)
                if watched and outcome.offer.text.requires_grad:
                    outcome.offer.text.retain_grad()
                accelerator.backward(outcome.loss)
                gradient = clip_gradients(objective, recipe)
                healthy = healthy & torch.isfinite(outcome.loss.detach() + sum(gradient.values()))
                update(optimiser, healthy)
                for parameter in itertools.chain(*objective.learning):  # accelerate asks for a signature first
                    parameter.grad = None

                row = {"step": step, "epoch": epoch + 1, "clips": len(outcome.offer.text)}
                row |= {"loss": outcome.loss.detach(), "lr": lr, **gradient}
                row |= details(objective, outcome, recipe)
                if watched:
                    reseed(seed, step)
                    # pyrefly: ignore[missing-attribute]
                    row |= watch.after(objective, batch, outcome.offer, start)
                unread.append((row, clips))
                done.step = step
                bar.update()
                if len(unread) == LOOK:
                    look()
                if step % steps_per_epoch:
                    keep()

            look()
            scores = recall_at_1(model, valid_split, language=train_dataset.languages[0])
            if close_epoch(done, epoch + 1, scores, recipe):
                best_weights = checkpoints.weights(objective)
            bar.set_postfix(loss=f"{done.history[-1]['loss']:.3f}", recall=f"{scores['R@1']:.1%}")
            if after_epoch and accelerator.is_main_process:
                after_epoch(done.history[-1])
            keep(ends=epoch + 1 == recipe.epochs)

    checkpoints.load_weights(objective, best_weights)
    result = Result(model.eval(), pd.DataFrame(done.history), pd.DataFrame(done.steps), done.best, recipe, out)
    if out and accelerator.is_main_process and (began < total or not all((out / name).is_file() for name in TABLES)):
        write_tables(result)
    accelerator.wait_for_everyone()
    return result


def objective_of(model: Model, recipe: Recipe, *, seed: int, base: Path | None) -> Objective:
    """What a run of this seed trains: the model, with the best weights of its base, and losses, which may draw some."""
    if base:
        checkpoints.load_model(model, base)
    with drawing(seed):
        reseed(seed, 0)
        return Objective(model, recipe)


def identity_of(recipe: Recipe, seed: int, data: Any, dataset: Sized, base: Path | None, watch: Any) -> str:
    """What a checkpoint calls its run. data: names the clips; base: whose weights, by their bytes, it starts from."""
    source = digest(checkpoints.best_file(base)) if base else None
    return content_key([recipe, seed, data, len(dataset), source, watch])


def reseed(seed: int, step: int) -> None:
    """Make torch's random numbers depend on (seed, step, rank) alone: no random state needs to be saved."""
    state = np.random.SeedSequence([seed, step, world()[0]]).generate_state(1, np.uint64)[0]
    # torch.manual_seed spends a third of a millisecond on devices that are not there.
    seed_all = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
    seed_all(int(state) >> 1)  # torch wants 63 bits


def prepared(batches: Iterable[Batch], model: Model, *, step: int, epoch: int, on_gpu: bool) -> Iterator[Batch]:
    """Batches in their order, those for a GPU looked at and pinned, made by a thread while the steps before go on.

    Features on a CPU are there in no time: a thread would take the interpreter from the steps.
    """

    def pinned() -> Iterator[Batch]:
        for number, batch in enumerate(batches, step):
            if isinstance(model, DualEncoder):
                with located(batch.index, number, epoch):
                    if batch.audio.is_floating_point():
                        model.checked(batch.audio, batch.lengths)
                    else:  # stored samples are finite and not too loud
                        check_lengths(batch.lengths, batch.audio)
                        check_seconds(batch.lengths, model.audio)
            yield batch.each(Tensor.pin_memory)

    made = pinned() if on_gpu else iter(batches)
    return ahead(made) if on_gpu or model.sample_rate else made


def where(clips: Tensor, step: int, epoch: int) -> str:
    """What an error says of the batch."""
    return f"step {step} of epoch {epoch}, with clips {clips.tolist()}"


def names_of_clips(train_dataset: TrainingData, valid_split: Clips) -> list[Any]:
    """What tells the clips of a run from others where its caller does not."""
    clips, languages = getattr(train_dataset, "split", train_dataset), list(train_dataset.languages)
    said = [*said_of(clips, languages), *said_of(valid_split, languages[:1])]
    pairing = getattr(train_dataset, "pairing", None)
    return [getattr(clips, "key", ""), getattr(valid_split, "key", ""), pairing, languages, *said]


@contextmanager
def located(clips: Tensor, step: int, epoch: int) -> Iterator[None]:
    """Say which clips were there when an encoder refuses a recording."""
    try:
        yield
    except AudioError as error:
        raise TrainingError(f"{error} (in {where(clips, step, epoch)})") from error
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise TrainingError(
            f"{error} (in {where(clips, step, epoch)}, a batch of {len(clips)}): batch normalisation cannot "
            "learn from one clip; take another batch size, so that none is left over"
        ) from error


def numbers(rows: Sequence[Mapping[str, Any]], runs: int = 1) -> list[list[dict[str, float]]]:
    """Of each run its rows, with numbers in place of tensors, 0-d or `(runs,)`: the device is asked once."""
    tensors = [value for row in rows for value in row.values() if torch.is_tensor(value)]
    wide = torch.float64 if any(value.dtype == torch.float64 for value in tensors) else torch.float32
    columns = [value.to(tensors[0].device, wide).expand(runs) for value in tensors]
    found = map(iter, torch.stack(columns, dim=1).tolist() if columns else [()] * runs)
    return [
        [{name: next(one) if torch.is_tensor(value) else value for name, value in row.items()} for row in rows]
        for one in found
    ]


def check_finite(row: Mapping[str, float], clips: Tensor) -> None:
    """Refuse a step whose loss or gradient was not finite; it has not reached the weights."""
    for name, title in NORMS.items():
        if not math.isfinite(row.get(name, 0.0)):
            raise TrainingError(
                f"the {title} is {row[name]} at {where(clips, int(row['step']), int(row['epoch']))}: look at these "
                "clips, or lower the learning rate; the last checkpoint is from before this step"
            )


def details(objective: Objective, outcome: Outcome, recipe: Recipe) -> dict[str, Any]:
    """Temperature after the step if there is one, reports, and each term's unweighted value if there are several."""
    tau = objective.tau
    row: dict[str, Any] = {} if tau is None else {"tau": tau}
    reported = objective.numbers(outcome)
    if taken := {"step", "epoch", "clips", "lr", *NORMS, *row} & reported.keys():
        raise TrainingError(f"a loss reports {min(taken)!r}, a column that a run has anyway: give it another name")
    row |= reported
    if outcome.offer.present is not None:
        row["missing texts"] = (~outcome.offer.present).sum()
    if len(recipe.terms) > 1:
        for number, (term, value) in enumerate(zip(recipe.terms, outcome.terms, strict=True)):
            row[f"loss {number} {term.name}"] = value.detach()
    return row


def close_epoch(done: Progress, epoch: int, scores: Mapping[str, float], recipe: Recipe) -> bool:
    """Add an epoch to the history; whether its weights are the run's so far (`Recipe.checkpoint`)."""
    mean = clip_mean([row for row in done.steps if row["epoch"] == epoch])
    done.history.append({"epoch": epoch, "step": done.step, "loss": mean, **scores})
    counts = not done.best or recipe.checkpoint == "last" or scores["R@1"] > done.best["R@1"]
    if counts:
        done.best = done.history[-1]
    return counts


def clip_mean(rows: list[dict[str, float]]) -> float:
    """Mean loss over clips: a short batch counts for less."""
    return sum(row["loss"] * row["clips"] for row in rows) / sum(row["clips"] for row in rows)


def is_finished(out: Path) -> bool:
    """Whether a run went through to its end."""
    return (out / RECIPE).is_file()


def write_tables(result: Result) -> None:
    """Recipe and tables as text, for readers; `train` itself reads the checkpoint."""
    for name, table in (("history", result.history), ("steps", result.steps)):
        with atomic_path(result.path / f"{name}.csv") as path:  # pyrefly: ignore[unsupported-operation]
            table.to_csv(path, index=False, lineterminator="\n")
    # pyrefly: ignore[unsupported-operation]
    with atomic_path(result.path / RECIPE) as path:  # last: it says that the run is complete
        path.write_text(result.recipe.to_json() + "\n", encoding="utf-8")
