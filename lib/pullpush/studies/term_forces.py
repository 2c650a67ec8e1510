"""The terms seen as forces: where each moves captions and clips, and whether the terms pull the weights one way.

Two views. `term_forces` is of embeddings, as in chapter 1: a term moves an embedding only if it is among the term's
arguments, so that NLI on foreign sentences moves no caption. `gradient_cosines` is of the weights that all texts share,
through which it moves them after all.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import permutations, zip_longest

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.batches import Batch
from pullpush.forces import drift, tangent
from pullpush.lab.scores import numbers
from pullpush.losses import InfoNCE, Offer, apply
from pullpush.show.layout import dodge, finish, mark_zero, name_places, panels, signed
from pullpush.show.marks import dots
from pullpush.show.palette import GREEN, PURPLE, SKY
from pullpush.studies.means import by_clip
from pullpush.training.objective import Objective, share_temperature
from pullpush.training.recipes import Recipe, title
from pullpush.training.runs import drawn as drawn

# Side → the embeddings of an offer that belong to it; a second pass of a text counts as that text.
SIDES = {"text": ("text", "second_text"), "clip": ("audio",)}
PARTS = ("along", "across", "norm", "from_mean")
# Part of a force → its name and colour.
DRAWN: Mapping[str, tuple[str, str]] = {
    "along": ("along the pull, towards the partner", GREEN),
    "across": ("across it", PURPLE),
    "from_mean": ("away from the mean of the side", SKY),
}
TITLES = {"text": "on a text", "clip": "on a clip"}


def term_forces(model: nn.Module, one: Recipe, given: Iterable[Batch], *, seed: int = 0) -> pd.DataFrame:
    """`forces_of` of batches as training meets them, with a column batch; seed: of dropout.

    A learnable temperature is taken where it starts: give the recipe the learnt one, `recipe(…, tau=…)`.
    """
    with torch.random.fork_rng(), torch.no_grad():
        objective = _in_training(model, one, seed)
        offers = [objective(batch).offer for batch in given]
    tables = [forces_of(offer, one).assign(batch=number) for number, offer in enumerate(offers)]
    return pd.concat(tables, ignore_index=True)


def forces_of(offer: Offer, one: Recipe) -> pd.DataFrame:
    """The force of each weighted term of a recipe on the embeddings of a batch.

    A force is −N ∂(weight · term)/∂(embedding): where descent goes, of the loss a clip, in the tangent plane of the
    sphere, on which embeddings move. What the second pass of a text feels counts as the text's own. InfoNCE's force is
    given as a whole and as chapter 1's pull of the partner and push of the others. offer: N clips, each with its text.

    Returns:
        A row a term, part ("whole", "pull", "push"), side ("text", "clip") and sample, its number in the batch. along:
        towards the partner on the great circle, negative away from it; across: norm of the rest; norm: of the force;
        from_mean: straight away from the mean of the batch's texts (or clips), negative towards it.

    Example:
        >>> from pullpush.training.recipes import recipe
        >>> text = F.normalize(torch.tensor([[2.0, 1.0], [1.0, 3.0]]), dim=1)
        >>> table = forces_of(Offer(torch.eye(2), text), recipe("infonce", tau=1.0))
        >>> table[table["side"] == "text"].groupby("part")["along"].mean().round(2).to_dict()
        {'pull': 0.28, 'push': 0.68, 'whole': 0.96}
    """
    if offer.present is not None:
        raise ValueError("texts are missing: leave such clips out")
    names = [name for names in SIDES.values() for name in names if getattr(offer, name) is not None]
    leaves = {name: getattr(offer, name).detach().requires_grad_() for name in names}
    offer = offer._replace(**leaves)
    losses = [term.create(len(offer.text)) for term in one.terms]
    share_temperature(losses, one)
    rows = []
    for term, loss in zip(one.terms, losses, strict=True):
        value = len(offer.text) * term.weight * apply(loss, offer).value
        gradients = dict(zip(leaves, _gradients(value, list(leaves.values())), strict=True))
        for side, names in SIDES.items():
            forces = {"whole": -torch.stack([gradients[name] for name in names if name in leaves]).sum(0)}
            if isinstance(loss, InfoNCE):
                forces |= {part: term.weight * force for part, force in _pull_and_push(offer, side, loss).items()}
            rows += [_parts(force, offer, side).assign(term=term.name, part=part) for part, force in forces.items()]
    columns = ["term", "part", "side", "sample", *PARTS]
    return pd.concat(rows, ignore_index=True)[columns]


def gradient_cosines(model: nn.Module, one: Recipe, given: Iterable[Batch]) -> pd.DataFrame:
    """Whether the terms of a recipe pull the trained weights of each encoder one way; see `term_forces`.

    Parts of the model named "text…" are the encoder of texts, the others that of clips.

    Returns:
        A row a batch, encoder ("text", "clip") and ordered pair of terms: term, other, the cosine of their gradients,
        and norm, that of the weighted term's. The cosine is NaN where one of them does not reach the encoder.
    """
    weights: dict[str, list[Tensor]] = {side: [] for side in SIDES}
    rows = []
    with torch.random.fork_rng():
        objective = _in_training(model, one, 0)
        for name, parameter in objective.model.named_parameters():
            if parameter.requires_grad:
                weights["text" if name.startswith("text") else "clip"].append(parameter)
        for number, batch in enumerate(given):
            values = objective(batch).terms
            for encoder, own in ((encoder, own) for encoder, own in weights.items() if own):
                gradients = {}
                for term, value in zip(one.terms, values, strict=True):
                    flat = torch.cat([part.flatten() for part in _gradients(term.weight * value, own)])
                    gradients[term.name] = flat.double()
                for term, other in permutations(gradients, 2):
                    cosine = float(drift(gradients[term], gradients[other]))
                    rows.append((number, encoder, term, other, cosine, float(gradients[term].norm())))
    return pd.DataFrame(rows, columns=["batch", "encoder", "term", "other", "cosine", "norm"])


def forces_by_term(table: pd.DataFrame) -> Figure:
    """What each weighted term does to a text and to a clip: along the pull, across it, away from the mean.

    table: of `term_forces`; marks are means over samples with 95 % intervals.
    """
    forces = list(table.groupby(["term", "part"], sort=False).groups)
    fig, axes = panels(len(TITLES), height=max(2.6, 0.5 + 0.5 * len(forces)), sharex=True, sharey=True)
    for ax, (side, name) in zip(axes, TITLES.items(), strict=True):
        for number, (column, (label, colour)) in enumerate(DRAWN.items()):
            found = table[table["side"] == side].groupby(["term", "part"], sort=False)[column]
            rows = pd.DataFrame([mean_of(found.get_group(force)) for force in forces])
            dots(ax, rows, np.arange(len(forces)) + dodge(number, len(DRAWN)), label=label, colour=colour)
        mark_zero(ax)
        ax.set(title=name, xlabel="force, logarithmic beyond ±1")
    most = max(10.0, table[list(DRAWN)].abs().max(axis=None))
    ticks = [sign * 10.0**power for sign in (-1, 1) for power in range(int(np.log10(most)) + 1)]
    axes[0].set_xscale("symlog", linthresh=1, linscale=1)  # terms differ by orders of magnitude
    axes[0].set_xticks([*ticks, 0], [signed(tick) for tick in (*ticks, 0)])
    axes[0].set_xlim(-1.5 * most, 1.5 * most)
    axes[0].minorticks_off()
    name_places(axes[0], [title(term) if part == "whole" else f"{title(term)}, {part}" for term, part in forces])
    return finish(fig)


def mean_of(values: pd.Series) -> dict[str, float | int | None]:
    """The mean of independent numbers with its 95 % interval."""
    return numbers(by_clip(values), ("value", "low", "high", "half width"))


def _pull_and_push(offer: Offer, side: str, loss: InfoNCE) -> dict[str, Tensor]:
    """InfoNCE's force on each anchor as that of its partner and that of all others, `(N, d)` each (SupCLAP Eq. 4)."""
    text, audio = offer.text.detach(), offer.audio.detach()
    tau = torch.as_tensor(loss.tau).detach()
    logits = text @ audio.T / tau
    own = torch.eye(len(text), dtype=torch.bool, device=text.device)
    missing, push = torch.zeros_like(logits[0]), torch.zeros_like(logits)
    for axis, direction in ((1, "t2a"), (0, "a2t")):  # with both an anchor is a candidate, too, and feels both
        if loss.direction in (direction, "both"):
            negative = logits.softmax(dim=axis).masked_fill(own, 0)
            missing += negative.sum(dim=axis)  # 1 − P⁺, exact where P⁺ rounds to 1
            push += negative
    partners, weights = (audio, push) if side == "text" else (text, push.T)
    return {"pull": missing[:, None] * partners / tau, "push": -weights @ partners / tau}


def _parts(force: Tensor, offer: Offer, side: str) -> pd.DataFrame:
    """The parts of a force `(N, d)` on each sample of one side."""
    at, partner = offer.text.detach(), offer.audio.detach()
    if side == "clip":
        at, partner = partner, at
    force = tangent(force, at)
    towards = F.normalize(tangent(partner - at, at), dim=1)
    outwards = F.normalize(tangent(-at.mean(0).expand_as(at), at), dim=1)
    along = (force * towards).sum(1)
    numbers = {
        "along": along,
        "across": (force - along[:, None] * towards).norm(dim=1),
        "norm": force.norm(dim=1),
        "from_mean": (force * outwards).sum(1),
    }
    table = pd.DataFrame({name: values.double().cpu().numpy() for name, values in numbers.items()})
    return table.assign(side=side, sample=range(len(table)))


def _gradients(value: Tensor, at: Sequence[Tensor]) -> list[Tensor]:
    """dvalue/dat, zero where it does not reach; the graph stays for other terms."""
    found = torch.autograd.grad(value, at, retain_graph=True, allow_unused=True) if value.requires_grad else ()
    return [torch.zeros_like(x) if gradient is None else gradient for x, gradient in zip_longest(at, found)]


def _in_training(model: nn.Module, one: Recipe, seed: int) -> Objective:
    """The objective of a recipe on a copy of a model, with dropout on, from a seed."""
    torch.manual_seed(seed)
    return Objective(deepcopy(model).train(), one)
