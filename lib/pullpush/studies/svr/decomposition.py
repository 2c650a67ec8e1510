"""What taking the radius apart found: effects of the 2³ design, the scaled push, what each system does to a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from pullpush.errors import PullPushError
from pullpush.forces import step_parts
from pullpush.lab import common
from pullpush.lab.experiments import ExperimentError, System
from pullpush.lab.ledger import Ledger
from pullpush.lab.scores import Scores
from pullpush.losses import TERMS
from pullpush.metrics.inference import Difference, difference, holm
from pullpush.parallel import one_thread
from pullpush.studies.svr import histories
from pullpush.studies.svr.effects import radius_effects
from pullpush.studies.svr.mechanism import LETTERS, SCALED, TWICE
from pullpush.studies.svr.protocols import TITLES
from pullpush.studies.together.design import full
from pullpush.training.recipes import recipe

NAMES = {"P": "probabilities", "J": "Jacobian", "A": "partner"}
HARD = 0.5  # the share of a batch's pairs that count as those which fit least


def cell(letters: Iterable[str]) -> str:
    """The system in which these effects are on: `cell("PA")` is "SVR:PA", `cell("")` "twice"."""
    on = [letter for letter in LETTERS.values() if letter in set(letters)]
    return f"SVR:{''.join(on)}" if on else TWICE


def protocols(scores: Scores) -> list[str]:
    """The protocols of an experiment, in their order."""
    return list(dict.fromkeys(trial.where["protocol"] for trial in scores.experiment.trials))


def systems(scores: Scores, protocol: str) -> list[str]:
    """The systems that were trained in a protocol."""
    return [trial.system for trial in scores.experiment.trials if trial.where["protocol"] == protocol]


def main_effects(scores: Scores, metric: str = "R@1") -> pd.DataFrame:
    """What each effect of the radius adds, by protocol: the mean of the four systems in which it is on less that of the
    four in which it is off. Where not all eight were trained, what it adds alone to InfoNCE twice.

    Returns:
        Columns protocol, effect, kind ("main" or "alone"), value, low, high, half width, p (Holm within all rows),
        seeds, clips; fractions.
    """
    design, found = full("".join(LETTERS.values())), {}
    for protocol in protocols(scores):
        where, there = {"protocol": protocol}, systems(scores, protocol)
        whole = all(cell(high) in there for high in design.runs)
        for letter in design.factors:
            kind = "main" if whole else "alone"
            found[protocol, NAMES[letter], kind] = (
                _contrast(scores, design.runs, letter, metric, where)
                if whole
                else scores.contrast(cell(letter), TWICE, metric, where)
            )
    return _table(found, ("protocol", "effect", "kind"))


def _contrast(scores: Scores, runs: Sequence[frozenset[str]], letter: str, metric: str, where: Mapping) -> Difference:
    halves = [[cell(high) for high in runs if (letter in high) is on] for on in (True, False)]
    ours, theirs = (np.mean([scores.values(name, metric, where) for name in half], axis=0) for half in halves)
    return difference(ours, theirs)


def over(scores: Scores, baseline: str, metric: str = "R@1") -> pd.DataFrame:
    """What every system has over one, by protocol: columns protocol, system, value, low, high, half width, p (Holm
    within a protocol), seeds, clips; fractions.
    """
    tables = []
    for protocol in protocols(scores):
        where = {"protocol": protocol}
        found = {
            (protocol, system): scores.contrast(system, baseline, metric, where)
            for system in systems(scores, protocol)
            if system != baseline
        }
        tables.append(_table(found, ("protocol", "system")))
    return pd.concat(tables, ignore_index=True)


def scaled(scores: Scores, metric: str = "R@1") -> pd.DataFrame:
    """What a scaled push has over InfoNCE: the columns of `over`, with part ("perpendicular" or "sideways") and factor;
    InfoNCE itself has factor 1 and difference 0.
    """
    table = over(scores, "infonce", metric)
    table = table[table["system"].isin(SCALED)].copy()
    options = [SCALED[name][1] for name in table["system"]]
    table["factor"] = [float(option["perpendicular"]) for option in options]
    table["part"] = [option.get("part", "perpendicular") for option in options]
    ones = table.drop_duplicates(["protocol", "part"]).assign(
        factor=1.0, system="infonce", value=0.0, low=0.0, high=0.0
    )
    return pd.concat([table, ones], ignore_index=True).sort_values(["protocol", "part", "factor"], ignore_index=True)


def table_over(scores: Scores, baseline: str, names: Sequence[str], metric: str = "R@1") -> pd.DataFrame:
    """`over` for some systems with the columns that `show.tables.gains` takes; the system's name says its protocol."""
    table = over(scores, baseline, metric)
    table = table[table["system"].isin(names)].assign(baseline=baseline, metric=metric)
    return table.assign(system=table["protocol"].map(TITLES) + ": " + table["system"]).reset_index(drop=True)


def standings(scores: Scores, names: Sequence[str], metric: str = "R@1") -> pd.DataFrame:
    """Some systems by protocol, in %: seeds, mean ± standard deviation, and what validation still gained at the end."""
    table = scores.table[scores.table["system"].isin(names)].rename(columns={"unconverged": "still gained"})
    parts = []
    for protocol in protocols(scores):
        rows = table[table["protocol"] == protocol]
        part = common.mean_and_spread(rows, "system", [metric, "still gained"], percent=True)
        part.insert(0, "protocol", TITLES[protocol])
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def race(scores: Scores, names: Sequence[str]) -> pd.DataFrame:
    """How soon systems are where InfoNCE ends, by protocol: `histories.epochs_to_target` and the epochs of a run."""
    parts = []
    for protocol in protocols(scores):
        rows = scores.history[scores.history["protocol"] == protocol]
        part = histories.epochs_to_target(rows, names, baseline="infonce")
        part.insert(0, "protocol", TITLES[protocol])
        part.insert(4, "of", rows["epoch"].max())
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def judge(ledger: Ledger, scores: Scores, protocol: str = "random/cnn") -> None:
    """Judge the claims about the mechanism: those of the experiment, and what the Jacobian adds in one protocol."""
    ledger.judge_scores(scores)
    if not scores:
        ledger.leave("jacobian-effect", "effects is long and was not computed for these parameters and data")
        return
    design = full("".join(LETTERS.values()))
    try:
        ledger.judge("jacobian-effect", _contrast(scores, design.runs, "J", "R@1", {"protocol": protocol}))
    except ExperimentError as error:
        ledger.leave("jacobian-effect", f"not in this profile's experiment: {error}")


def _table(found: Mapping[tuple, Difference], heads: Sequence[str]) -> pd.DataFrame:
    rows = [
        (*key, one.value, one.low, one.high, one.half_width, one.p_holm, one.seeds, one.clips)
        for key, one in holm(found).items()  # pyrefly: ignore[no-matching-overload]
    ]
    return pd.DataFrame(rows, columns=[*heads, "value", "low", "high", "half width", "p", "seeds", "clips"])


# ---------------------------------------------------------------- what a system does to a step


def step_of(systems: Mapping[str, System], text: Tensor, audio: Tensor, tau: float, *, batch_size: int) -> pd.DataFrame:
    """What the objective of each system asks of the texts of a model, at one temperature; `(N, d)` unit vectors each.

    Returns:
        Columns system; parallel, perpendicular (mean norms along the geodesic direction and across it); across/along,
        their ratio; kept for pairs that fit, the mean length of the step of the better half of each batch's pairs (by
        cosine) over that of the other half; audio to audio, the share of the gradient on the sounds that comes to them
        through the support vector. Systems whose radius is learnt are left out: here nothing has taught it. A batch
        larger than the set is the set.
    """
    rows, batch_size = [], min(batch_size, len(text))
    for name, (parts, options) in systems.items():
        if "dynamic" in parts:
            continue
        loss = _objective(parts, {**options, "tau": tau})
        with one_thread():
            found = step_parts(loss, text, audio, batch_size=batch_size)
        along, across = found.parallel.abs(), found.perpendicular
        length = torch.hypot(along, across)
        fits = _fits(text, audio, batch_size)
        kept = (length[fits].mean() / length[~fits].mean()).item()
        means = along.mean().item(), across.mean().item()
        partner = _through_partner(loss, parts, options, text, audio, tau, batch_size)
        rows.append((name, *means, means[1] / means[0], kept, partner))
    columns = ["system", "parallel", "perpendicular", "across/along", "kept for pairs that fit", "audio to audio"]
    return pd.DataFrame(rows, columns=columns)


def parallel_change(text: Tensor, audio: Tensor, tau: float, radius: float, *, batch_size: int) -> Difference:
    """How much the part along the way of the SVR term's step changes from R = 0 to a radius, as a fraction, over
    batches of `(N, d)`: nothing, if a radius suppresses what is across and that alone.

    Raises:
        PullPushError: there are fewer than two batches.
    """
    if len(text) < 2 * batch_size:
        raise PullPushError(f"{len(text)} pairs are too few: an interval takes two batches of {batch_size}")
    changes = []
    for start in range(0, len(text) - batch_size + 1, batch_size):
        rows = slice(start, start + batch_size)
        none, some = radius_effects(text[rows], audio[rows], tau, (0.0, radius), batch_size=batch_size)["parallel"]
        changes.append(some / none - 1)
    return difference([changes])


def _objective(name: str, options: Mapping):
    """The sum of a recipe's terms as a function of (audio, text), at one temperature."""
    plain = {key: value for key, value in options.items() if key not in ("scalar_lr", "lr", "epochs")}
    terms = recipe(name, **plain).terms
    modules = [(term.weight, TERMS[term.name].make(**{**term.options, "tau": options["tau"]})) for term in terms]
    return lambda audio, text: sum(weight * module(audio, text).value for weight, module in modules)


def _fits(text: Tensor, audio: Tensor, batch_size: int) -> Tensor:
    """Whether a pair is of the better half of its batch."""
    count = len(text) // batch_size * batch_size
    cosines = (text * audio).sum(dim=1)[:count].view(-1, batch_size)
    return (cosines > cosines.quantile(HARD, dim=1, keepdim=True)).flatten()


def _through_partner(loss, name: str, options: Mapping, text: Tensor, audio: Tensor, tau: float, size: int) -> float:
    """How much of the gradient on the sounds goes away when the partner is held, as a share of its norm."""
    if not options.get("partner"):
        return 0.0
    without = _objective(name, {**options, "tau": tau, "partner": False})
    shares = []
    for start in range(0, len(text) - size + 1, size):
        rows = slice(start, start + size)
        gradients = []
        for one in (loss, without):
            leaf = audio[rows].clone().requires_grad_()
            gradients.append(torch.autograd.grad(one(leaf, text[rows]), leaf)[0])
        shares.append(((gradients[0] - gradients[1]).norm() / gradients[0].norm()).item())
    return float(np.mean(shares))
