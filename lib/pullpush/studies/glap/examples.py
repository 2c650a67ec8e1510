"""Clips of all three domains: one of each that tells of one thing, a batch sorted by domain, and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import nn

from pullpush.data.clips import Clips
from pullpush.data.mixture import Mixed
from pullpush.errors import UnknownNameError
from pullpush.metrics.prompt_templates import GLAP
from pullpush.studies.glap.grounds import DOMAINS, Grounds
from pullpush.studies.glap.lesson import tests
from pullpush.studies.own_data import check_classes
from pullpush.training.evaluate import embed_audio, embed_texts, zero_shot
from pullpush.training.frozen import Base, splits_encoder


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


def prompted(labels: Mapping[str, str]) -> list[str]:
    """Labels in the prompts of GLAP's Table 3, in English; labels: domain → label.

    >>> prompted({"music": "jazz"})
    ['The music in the style of jazz.']
    """
    return [GLAP[domain]["eng"].format(label=label) for domain, label in labels.items()]


def nearness(model: nn.Module, ears: Base, clips: Mixed, texts: Sequence[str]) -> pd.DataFrame:
    """Cosines of one clip of each domain with texts: a row a clip, a column a text.

    model: of what the frozen encoder `ears` hears.
    """
    cosines = embed_audio(model, splits_encoder(ears)(clips)) @ embed_texts(model, texts).T
    return pd.DataFrame({"clip": list(DOMAINS), **dict(zip(texts, cosines.T.tolist(), strict=True))})


def mixed_batch(clips: Clips, size: int, *, seed: int) -> Clips:
    """Random clips of a mixture, sorted by domain.

    clips: with the column "domain".
    """
    drawn = torch.randperm(len(clips), generator=torch.Generator().manual_seed(seed))[:size].tolist()
    return clips.select(sorted(drawn, key=lambda row: DOMAINS.index(clips.columns["domain"][row])))


def named_by_prompts(model: nn.Module, singles: Mapping[str, Clips]) -> pd.DataFrame:
    """Zero-shot accuracy with each prompt of GLAP's Table 3, in English.

    singles: domain → clips of a single event.

    Returns:
        Columns clips (the domain), prompt, accuracy and chance.

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
