"""The measurements of the chapter on forces: equations against autograd, parts of the push, batches against the whole
set, drift over training; and what each says of the chapter's claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.forces import LocalGlobal, decompose, distance_change, local_global, sideways
from pullpush.lab.ledger import Ledger
from pullpush.losses import info_nce
from pullpush.metrics import Difference, difference
from pullpush.show.palette import method_name

PARTS = ("pull", "push", "parallel", "perpendicular", "sideways")
SHARES = {"perpendicular": "perpendicular_share", "sideways": "sideways_share"}
AS_PRINTED = "gradient_drift_pull"  # Figure 1 read literally: the gradient against F_pull

# ---------------------------------------------------------------- equations


def equation_errors(text: Tensor, audio: Tensor, tau: float) -> pd.DataFrame:
    """SupCLAP Eq. 1–4 and 12 on given embeddings, `(N, d)` each, against autograd: largest absolute errors in float64.

    Columns: equation, statement, error, scale (the largest absolute value of what is compared).
    """
    anchor, audio, gradient = _by_autograd(text, audio, tau)
    forces = decompose(anchor, audio, tau)
    step = -0.01 * gradient
    change = distance_change(anchor, audio, -step).total
    moved = (anchor + step - audio).square().sum(1) - (anchor - audio).square().sum(1)
    along = (forces.perpendicular * forces.unit).sum(1)
    rows = [
        ("Eq. 1–4", "∇L = F_pull + F_push", forces.gradient, gradient),
        ("§2", "F_push = F_∥ + F_⊥", forces.parallel + forces.perpendicular, forces.push),
        ("§2", "F_⊥ · û = 0", along, torch.zeros_like(along)),
        ("Eq. 12", "Δ‖t⁺ − a⁺‖² = ideal + noise penalty", change, moved),
    ]
    columns = ["equation", "statement", "error", "scale"]
    return pd.DataFrame(
        [(e, s, (ours - truth).abs().max().item(), ours.abs().max().item()) for e, s, ours, truth in rows],
        columns=columns,
    )


def gradient_errors(text: Tensor, audio: Tensor, tau: float) -> Difference:
    """‖F_pull + F_push − ∇L‖ / ‖∇L‖ of each caption of one batch, `(N, d)` each, ∇L by autograd in float64."""
    anchor, audio, gradient = _by_autograd(text, audio, tau)
    missed = (decompose(anchor, audio, tau).gradient - gradient).norm(dim=1)
    return by_clip(missed / gradient.norm(dim=1))


def _by_autograd(text: Tensor, audio: Tensor, tau: float) -> tuple[Tensor, Tensor, Tensor]:
    """Text and audio in float64, and the gradient of each caption's own loss."""
    anchor, audio = text.double().detach().requires_grad_(), audio.double().detach()
    # Autograd on the batch mean, so times N: the forces are those of one sample's loss.
    (gradient,) = torch.autograd.grad(info_nce(audio, anchor, tau, direction="t2a") * len(anchor), anchor)
    return anchor.detach(), audio, gradient


# ---------------------------------------------------------------- parts of the push


def forces_by_clip(text: Tensor, audio: Tensor, tau: float) -> pd.DataFrame:
    """Norms of the forces on each text of one batch, `(N, d)` each: a row a text.

    Columns: PARTS (of the push: parallel, perpendicular, and sideways, which is outside the plane of t⁺ and a⁺); as
    shares of ‖F_push‖² perpendicular_share and sideways_share.
    """
    forces = decompose(text, audio, tau)
    split = [forces.pull, forces.push, forces.parallel, forces.perpendicular, sideways(forces.push, text, audio)]
    table = pd.DataFrame({name: part.norm(dim=1).double() for name, part in zip(PARTS, split, strict=True)})
    return table.assign(**{share: (table[part] / table["push"]) ** 2 for part, share in SHARES.items()})


def forces_in_batches(
    text: Tensor, audio: Tensor, tau: float, batch_size: int, *, passes: int = 4, seed: int = 0
) -> pd.DataFrame:
    """Each text's mean of `forces_by_clip` over random batches, drawn as in training: every text once a pass, but for
    those that fill no batch. A batch larger than the set is the set.
    """
    generator = torch.Generator().manual_seed(seed)
    size, tables = min(batch_size, len(text)), []
    for _ in range(passes):
        order = torch.randperm(len(text), generator=generator)
        for rows in order[: len(text) - len(text) % size].view(-1, size):
            tables.append(forces_by_clip(text[rows], audio[rows], tau).assign(clip=rows.numpy()))
    return pd.concat(tables).groupby("clip").mean()


def parts_by_setting(
    spaces: Mapping[str, tuple[Tensor, Tensor]],
    *,
    tau: float,
    batch_size: int,
    taus: Sequence[float] = (0.02, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0),
    batch_sizes: Sequence[int] = (4, 8, 24, 64, 128, 256, 512),
) -> pd.DataFrame:
    """Means of `forces_in_batches` over temperatures (at `batch_size`) and over batch sizes (at `tau`).

    Args:
        spaces: name of the model → text and audio embeddings, `(N, d)` each.

    Returns:
        Columns model, setting ("temperature" or "batch size"), value, those of `forces_by_clip`, and the ratios of mean
        norms perpendicular_over_pull and sideways_over_pull.
    """
    rows = []
    for name, (text, audio) in spaces.items():
        points = [("temperature", value, value, batch_size) for value in taus]
        points += [("batch size", size, tau, size) for size in batch_sizes if size <= len(text)]
        for setting, value, temperature, size in points:
            mean = forces_in_batches(text, audio, temperature, size, passes=2).mean()
            over = {f"{part}_over_pull": mean[part] / mean["pull"] for part in SHARES}
            rows.append({"model": name, "setting": setting, "value": value, **mean, **over})
    return pd.DataFrame(rows)


def parts_table(found: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Means over clips ± half-widths of 95 % intervals, a column a model; found: model → `forces_in_batches`."""
    rows = [
        {"force": part.replace("_", " "), **{model: plain(by_clip(table[part])) for model, table in found.items()}}
        for part in (*PARTS, *SHARES.values())
    ]
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- batches against the whole set


def batches_against_whole(
    text: Tensor, audio: Tensor, tau: float, *, batch_sizes: Sequence[int] = (8, 24, 64, 128, 256, 512, 1024)
) -> dict[int, LocalGlobal]:
    """The perpendicular force of mini-batches against that of all N pairs, by batch size; see `forces.local_global`."""
    found = {}
    for size in (size for size in batch_sizes if size <= len(text) // 2):
        epochs = 32 if 8 * size > len(text) else 8  # large batches are few, and leave many anchors out
        found[size] = local_global(text, audio, tau, batch_size=size, epochs=epochs)
    return found


def local_global_table(found: Mapping[int, LocalGlobal]) -> pd.DataFrame:
    """Columns: batch_size, and the means over anchors of whole, batch, variance, cosine."""
    rows = [
        {"batch_size": size, **{name: value.mean().item() for name, value in parts._asdict().items()}}
        for size, parts in found.items()
    ]
    return pd.DataFrame(rows)


def local_share(found: LocalGlobal, less: LocalGlobal | None = None) -> Difference:
    """How much of E‖F⊥‖² of mini-batches fluctuates from batch to batch; `less` that share of other batches."""
    ours, theirs = (None if one is None else _share(one.variance, one.batch) for one in (found, less))
    return by_clip(ours if theirs is None else ours - theirs)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    """mean(part) / mean(whole) as a mean over clips, `(N,)`: linear in both means, as in `Scores.contrast`."""
    ratio = part.mean() / whole.mean()
    return (part - ratio * whole) / whole.mean() + ratio


# ---------------------------------------------------------------- over training


def late(steps: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Means of columns over the second half of training: recipe, seed, columns."""
    rows = steps[steps["step"] > steps["step"].max() / 2]
    return rows.groupby(["recipe", "seed"], sort=False)[list(columns)].mean().reset_index()


def penalty_ratios(steps: pd.DataFrame) -> pd.Series:
    """Eq. 12's noise penalty over the size of its ideal term, all of training together, by (recipe, seed)."""
    by_run = steps.assign(ideal=steps["ideal"].abs()).groupby(["recipe", "seed"], sort=False)
    return by_run["noise_penalty"].mean() / by_run["ideal"].mean()


def drift_differences(drift: pd.DataFrame, panels: Mapping[str, str]) -> pd.DataFrame:
    """Cosines of `late` against one another, over seeds: every recipe with the first, and where the embeddings have
    gone with where their gradients point.

    panels: column → name of the reading; the last two are those of the gradient and of the step. Columns: cosine of,
    difference, seeds.
    """
    found = {name: rows.set_index("seed") for name, rows in drift.groupby("recipe", sort=False)}
    first, *others = found
    plans = [
        (f"{title}: {method_name(name)} − {method_name(first)}", found[name][column] - found[first][column])
        for column, title in panels.items()
        for name in others
    ]
    (gradient, _), (step, _) = list(panels.items())[-2:]
    plans += [
        (f"{method_name(name)}: realised update − gradient", rows[step] - rows[gradient])
        for name, rows in found.items()
    ]
    rows = []
    for title, gain in plans:
        shown = f"{by_seed(gain):.3f}" if len(gain) > 1 else f"{gain.mean():+.3f}"  # one seed has no interval
        rows.append({"cosine of": title, "difference": shown, "seeds": len(gain)})
    return pd.DataFrame(rows)


STEP_MEASURES: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "perpendicular-share": lambda steps: late(steps, ["perpendicular_share"])["perpendicular_share"],
    "noise-penalty-ratio": penalty_ratios,
    "drift-infonce": lambda steps: late(steps, [AS_PRINTED])[AS_PRINTED] - 1,
}


def judge_steps(ledger: Ledger, steps: pd.DataFrame) -> None:
    """Judge the claims about InfoNCE's training, seed by seed, or leave them where it was not trained with several."""
    own = steps[steps["recipe"] == "infonce"]
    for measure, of in STEP_MEASURES.items():
        if own["seed"].nunique() > 1:
            ledger.judge(measure, by_seed(of(own)))
        else:
            ledger.leave(measure, "InfoNCE was not trained with several seeds for these parameters.")


# ---------------------------------------------------------------- intervals


def by_clip(values: Tensor | pd.Series) -> Difference:
    """The mean over the clips of one model, `(N,)`, with its interval."""
    return difference(np.asarray(values, float)[None])


def by_seed(values: pd.Series) -> Difference:
    """The mean of one number a seed, with its interval."""
    return difference(values.to_numpy(float)[:, None])


def plain(found: Difference, *, percent: bool = False) -> str:
    """A mean and its half-width, without a sign: "0.972 ± 0.004", "97.2 ± 0.4 %"."""
    scale, digits, unit = (100, 1, " %") if percent else (1, 3, "")
    return f"{scale * found.value:.{digits}f} ± {scale * found.half_width:.{digits}f}{unit}"


# ---------------------------------------------------------------- one caption


class Plane(NamedTuple):
    """One anchor's forces as `figures.force_plane` draws them; see there."""

    negatives: list[np.ndarray]
    partner: np.ndarray
    pushes: list[np.ndarray]


def plane(text: Tensor, audio: Tensor, anchor: int, groups: Sequence[Sequence[int]], tau: float) -> Plane:
    """Figure 2 from real embeddings: the plane of û and of the direction in which the groups' pushes lie most.

    Args:
        text, audio: `(N, d)` each.
        anchor: row of the text that is looked at.
        groups: rows of audio that are its negatives: all others, or those of several mini-batches.
        tau: temperature.
    """
    here, partner = text[anchor], audio[anchor]
    unit = F.normalize(partner - here, dim=0)
    forces = [
        decompose(here[None], torch.cat([partner[None], audio[list(rows)]]), tau, positive=torch.tensor([0]))
        for rows in groups
    ]
    sideways = torch.cat([force.perpendicular for force in forces])
    centred = sideways - sideways.mean(0) if len(groups) > 1 else sideways
    across = F.normalize(torch.linalg.svd(centred, full_matrices=False).Vh[0], dim=0)
    axes = torch.stack([unit, across])
    points, pushes = [], []
    for rows, force in zip(groups, forces, strict=True):
        negative = audio[list(rows)]
        weight = torch.cat([partner[None], negative]) @ here / tau
        place = (negative - here) @ axes.T
        points.append(torch.cat([place, weight.softmax(0)[1:, None]], dim=1).numpy())
        pushes.append((axes @ -force.push[0]).numpy())
    return Plane(points, (axes @ (partner - here)).numpy(), pushes)
