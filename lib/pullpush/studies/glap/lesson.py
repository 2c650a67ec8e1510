"""What lesson 5 computes beside its few lines of torch: systems, starts and biases, clips of all domains, shares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.clips import Clips
from pullpush.data.mixture import SEVERAL, Mixed
from pullpush.errors import UnknownNameError
from pullpush.lab import compute
from pullpush.lab.experiments import Experiment, System, Trial
from pullpush.lab.paper import paper_table
from pullpush.losses import siglip
from pullpush.metrics.prompt_templates import GLAP
from pullpush.studies.glap.grounds import DOMAINS, Grounds
from pullpush.studies.glap.weights import Space, learnt, loss_of, pair_weights, pull_and_push
from pullpush.studies.own_data import check_classes
from pullpush.training.evaluate import embed, embed_audio, embed_texts, zero_shot
from pullpush.training.frozen import Base, splits_encoder
from pullpush.training.loop import Result

SOFTMAX, SIGMOID = "InfoNCE", "SigLIP"
BALANCED, PRINTED = "SigLIP, balanced start", "SigLIP, printed start"
TESTS = {"sound": "sound", "music": "music", "speech": "speech fra"}  # domain → test, see grounds.py
Runs = Mapping[tuple[str, int], Result]  # by (system, seed)


def balancing_bias(pairs: int) -> float:
    """The bias beside s/τ at which a batch with similarities of zero pulls as much as it pushes: −log(N − 1).

    >>> round(balancing_bias(128), 2)
    -4.84
    """
    return -math.log(pairs - 1)


def systems(batch_size: int) -> dict[str, System]:
    """One softmax, and three starts of one sigmoid: SigLIP's, that which balances the batch, and GLAP's as printed."""
    return {
        SOFTMAX: ("infonce-learnable", {}),
        SIGMOID: ("siglip", {}),
        BALANCED: ("siglip", {"bias": balancing_bias(batch_size)}),
        PRINTED: ("siglip", {"form": "glap", "tau": 0.07, "bias": -10.0}),
    }


def by_domain(ground: Grounds, of: Mapping[str, System], ears: Sequence[str]) -> tuple[Trial, ...]:
    """A trial a system, ears and domain: trained on all three, tested on one."""
    return tuple(
        Trial(system, recipe, overrides, {"ears": each, "domain": domain}, f"all/{each}", f"test/{each}/{test}")
        for each in ears
        for system, (recipe, overrides) in of.items()
        for domain, test in tests(ground).items()
    )


def tests(ground: Grounds) -> dict[str, str]:
    """Domain → name of its test; without recordings scenes stand in for all."""
    return TESTS if ground.has_recordings else {domain: domain for domain in TESTS}


def runs(ground: compute.Ground, experiment: Experiment) -> dict[tuple[str, int], Result]:
    """The runs of an experiment by system and seed, each once."""
    plans = {(trial.system, seed): plan for (trial, seed), plan in compute.plans_of(ground, experiment).items()}
    return {key: plan.train() for key, plan in plans.items()}


# ---------------------------------------------------------------- the sigmoid


def spaces(trained: Runs, systems: Iterable[str], clips: Clips, *, seed: int) -> dict[str, Space]:
    """The pairs of some clips as each system of one seed places them, with its loss."""
    found = {system: trained[system, seed] for system in systems}
    return {
        system: Space(*embed(run.model, clips, language=SEVERAL), loss_of(run), learnt(run)["tau"])
        for system, run in found.items()
    }


def starts(similarity: Tensor, options: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """What a sigmoid does to a batch at several starts, in float32.

    Args:
        similarity: `(N, N)`, texts in rows.
        options: name → tau, bias and form of `siglip`.

    Returns:
        A row a start: start, mean logit (over all pairs), pull and push (means over texts; push is of all negatives
        together).
    """
    rows = []
    for name, start in options.items():
        tau, bias = start["tau"], start["bias"]
        logits = (similarity + bias) / tau if start["form"] == "glap" else similarity / tau + bias
        pull, push = pull_and_push(pair_weights(partial(siglip, **start), similarity, tau))
        rows.append((name, float(logits.mean()), float(pull.mean()), float(push.mean())))
    return pd.DataFrame(rows, columns=["start", "mean logit", "pull", "push"])


def sigmoid_of(run: Result) -> tuple[float, float]:
    """The temperature of a run and its bias beside s/τ, whichever form it was trained in."""
    numbers = learnt(run)
    return numbers["tau"], numbers["bias"] / (numbers["tau"] if is_printed(run) else 1.0)


def is_printed(run: Result) -> bool:
    """Whether the bias is divided by the temperature, as GLAP prints it."""
    return run.recipe.terms[0].settings["form"] == "glap"


def biases(trained: Runs) -> pd.DataFrame:
    """Where the sigmoids began and where they ended, a row a system and seed.

    Returns:
        Columns system, seed, start (the bias beside s/τ before training), bias and tau (where the model was taken),
        and moved, how far that bias is from its start.
    """
    rows = []
    for (system, seed), run in trained.items():
        if "bias" in run.steps:
            tau, bias = sigmoid_of(run)
            term = run.recipe.terms[0]
            start = float(term.create().learnt["bias"].detach()) / (term.settings["tau"] if is_printed(run) else 1.0)
            rows.append((system, seed, start, bias, tau, abs(bias - start)))
    return pd.DataFrame(rows, columns=["system", "seed", "start", "bias", "tau", "moved"])


# ---------------------------------------------------------------- clips of all three domains


def one_of_each(ground: Grounds, thing: str) -> Mixed:
    """Three clips: the sound of a thing, music played on it, and a person who says in French what it is.

    thing: a sound event, an instrument, and a stamp that speaks, such as "violin". Without recordings the first clip
    of each test stands in, and the first sound of a bank of one's own that has no such event.

    Raises:
        UnknownNameError: one of the three is missing.
    """
    worlds = {domain: ground.test(test) for domain, test in tests(ground).items()}
    if not ground.has_recordings:
        return Mixed.of("examples", [world.test.head(1) for world in worlds.values()])
    sound, music, speech = worlds["sound"].singles, worlds["music"].singles, ground.load(ground.stamps).train
    said = zip(speech.captions("eng"), speech.columns["spoken"], strict=True)
    found = {
        "sound": _called(sound, thing) or [0] * ground.is_own,
        "music": _called(music, thing),
        "speech": [row for row, (texts, language) in enumerate(said) if (texts, language) == ([f"A {thing}."], "fra")],
    }
    if missing := [domain for domain, rows in found.items() if not rows]:
        raise UnknownNameError(f"no {thing!r} as {', '.join(missing)}: take a violin or a bassoon")
    clips = [each.select(found[name][:1]) for name, each in zip(DOMAINS, (sound, music, speech), strict=True)]
    return Mixed.of("examples", clips)


def _called(clips: Clips, thing: str) -> list[int]:
    """The clips whose class has this name."""
    names = clips.prompts("eng", "{label}")
    return [row for row, label in enumerate(clips.labels.tolist()) if names[label] == thing]


def nearness(model: nn.Module, ears: Base, clips: Mixed, texts: Sequence[str]) -> pd.DataFrame:
    """Cosines of one clip of each domain with texts: a row a clip, a column a text.

    model: of what the frozen encoder `ears` hears.
    """
    cosines = embed_audio(model, splits_encoder(ears)(clips)) @ embed_texts(model, texts).T
    return pd.DataFrame({"clip": list(DOMAINS), **dict(zip(texts, cosines.T.tolist(), strict=True))})


def mixed_batch(clips: Clips, size: int, *, seed: int) -> Clips:
    """Random clips of a mixture, sorted by domain."""
    drawn = torch.randperm(len(clips), generator=torch.Generator().manual_seed(seed))[:size].tolist()
    return clips.select(sorted(drawn, key=lambda row: DOMAINS.index(clips.columns["domain"][row])))


def named_by_prompts(model: nn.Module, singles: Mapping[str, Clips]) -> pd.DataFrame:
    """Zero-shot accuracy with each prompt of GLAP's Table 3, in English: columns clips (the domain), prompt, accuracy
    and chance.

    singles: domain → clips of a single event.

    Raises:
        SettingError: the clips of a domain are all of one class.
    """
    rows = []
    for domain, clips in singles.items():
        check_classes(clips.labels.tolist())
        for templates in GLAP.values():
            table = zero_shot(model, clips, clips.prompts("eng", templates["eng"])).set_index("metric")
            rows.append((domain, templates["eng"], *table.loc["accuracy", ["value", "chance"]]))
    return pd.DataFrame(rows, columns=["clips", "prompt", "accuracy", "chance"])


# ---------------------------------------------------------------- who is in a batch


def shares(collections: Mapping[str, Mapping[str, float]], exponents: Sequence[float]) -> pd.DataFrame:
    """The share of each group in a batch when groups are drawn by their size to a power, and how often a clip is seen.

    Args:
        collections: name → group → number of clips.

    Returns:
        Columns data (the collection), exponent, group, share, and passes, over the clips of the group while as many
        clips are drawn as there are in all.

    Example:
        >>> shares({"here": {"speech": 90, "music": 10}}, [1.0, 0.0])["share"].round(6).tolist()
        [0.9, 0.1, 0.5, 0.5]
    """
    rows = []
    for data, counts in collections.items():
        size = pd.Series(counts, dtype=float)
        for exponent in exponents:
            weight = (size / size.max()) ** exponent
            share = weight / weight.sum()
            passes = share * size.sum() / size
            rows += [(data, exponent, group, share[group], passes[group]) for group in size.index]
    return pd.DataFrame(rows, columns=["data", "exponent", "group", "share", "passes"])


def pairs_of_paper() -> dict[str, float]:
    """Pairs of clips and texts by domain, of all training sets of GLAP's Table 1."""
    table = paper_table("glap", 1)
    pairs = table[table["metric"] == "pairs"]
    domain = pairs["note"].str.extract("domain=([a-z]+)", expand=False)
    return {name: float(pairs["value"][domain == name].sum()) for name in DOMAINS}
