"""What chapters do alike: load the profile's world, train a recipe on it, look at what the model has learnt."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd
from IPython.display import Markdown
from torch import nn

from pullpush.data.clips import Clips
from pullpush.data.language.grammar import prompts
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.data.recordings.corpora import owners
from pullpush.data.scenes.composer import SceneConfig
from pullpush.data.scenes.world import World, WorldConfig, load_world
from pullpush.encoders import AUDIO, TEXT, create
from pullpush.encoders.dual import options_of
from pullpush.lab.session import Session
from pullpush.training.diagnostics import Diagnostics
from pullpush.training.evaluate import zero_shot
from pullpush.training.loop import Result
from pullpush.training.recipes import Recipe, recipe
from pullpush.training.runs import Plan
from pullpush.training.trunk import Published


def world(book: Session, **overrides: Any) -> World:
    """The world of the session's profile; `overrides` are fields of WorldConfig.

    Every chapter and every seed sees the same scenes, so that a difference is one of training.
    """
    return load_world(WorldConfig(**{**book.settings.world, **overrides}))


def scene(book: Session, **overrides: Any) -> SceneConfig:
    """What scenes of the session's profile sound like; `overrides` are fields of SceneConfig."""
    return SceneConfig(**{**book.settings.world.get("scene", {}), **overrides})


def sized(book: Session, name: str, **overrides: Any) -> Recipe:
    """A recipe at the profile's size: its encoders with their options, dimensions, epochs and batch size, unless
    `overrides` differ. Where clips are features, the text encoder's weights stay as they are, too.
    """
    size = {field: getattr(book.settings, field) for field in ("audio", "text", "dim", "epochs", "batch_size")}
    fields, tuning = {**size, **overrides}, book.settings.fine_tuning
    kept = [side for side in ("audio", "text") if fields[side] == size[side]]
    options = {name: value for name, value in book.settings.encoder_options.items() if name.partition("_")[0] in kept}
    if fields["audio"] == "features":
        options |= {"text_frozen": True} if TEXT[fields["text"]].pretrained else {}
        tuning = {}
    options |= fields.get("encoder_options", {})
    return recipe(name, **{**tuning, **fields, "encoder_options": options})


def published_trunk(book: Session, *, pretrained: bool = True) -> Published:
    """The profile's audio encoder as it is published; pretrained: with its weights, or random ones of the session's
    seed.
    """
    settings, drawn = book.settings, {} if pretrained else {"pretrained": False}
    options, _ = options_of(settings.encoder_options, audio=AUDIO[settings.audio].make, text=TEXT[settings.text].make)
    return Published(settings.audio, options | drawn, 0 if pretrained else book.seed)


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides of a recipe, later ones before earlier ones, with the encoders' options of all."""
    options = {name: value for part in parts for name, value in part.get("encoder_options", {}).items()}
    flat = {name: value for part in parts for name, value in part.items()}
    return flat | ({"encoder_options": options} if options else {})


WATCH = Diagnostics(every=2, tau=0.07)  # one yardstick for all, so that chapters share runs


def train(book: Session, data: World, name: str, **options: Any) -> Result:
    """Train a recipe at the profile's size, or read the run from the cache where any chapter trained it before.

    options: see `plan`.
    """
    return plan(book, data, name, **options).train()


def plan(
    book: Session,
    data: World,
    name: str,
    *,
    seed: int | None = None,
    diagnostics: Diagnostics | None = WATCH,
    **overrides: Any,
) -> Plan:
    """A run that `train` trains.

    Args:
        book: the session; its seed is used unless `seed` is given.
        data: the world.
        name: of the recipe, or a sum of recipes.
        diagnostics: what to measure on the way.
        overrides: fields of the recipe, or options of its terms, such as `tau`.
    """
    return Plan(data, sized(book, name, **overrides), book.seed if seed is None else seed, diagnostics)


def untrained(book: Session) -> nn.Module:
    """The profile's model before its first step, with the weights that a run of the session's seed starts from."""
    size = book.settings
    return create(size.audio, size.text, dim=size.dim, seed=book.seed, **size.encoder_options).eval()


def zero_shot_by_language(model: nn.Module, data: World) -> pd.DataFrame:
    """Zero-shot accuracy on single-event clips, with the prompt and the labels of each language that the bank speaks.

    Columns: language, value, low, high (95 %, whole classes resampled), chance.
    """
    known = set.intersection(*(set(event.phrases) for event in data.bank.events))
    rows = []
    for language in (each for each in LANGUAGES if each in known):
        table = zero_shot(model, data.singles, prompts(data.bank.events, language)).set_index("metric")
        rows.append({"language": language, **table.loc["accuracy"].to_dict()})
    return pd.DataFrame(rows)


def mean_and_spread(table: pd.DataFrame, by: str, columns: Sequence[str], *, percent: bool = False) -> pd.DataFrame:
    """Each column's mean ± standard deviation over the rows (the seeds) of a group, as text; groups stay in order.

    percent: columns are fractions; their names get the unit.
    """
    scale, digits = (100, 1) if percent else (1, 3)
    rows = []
    for name, group in table.groupby(by, sort=False):
        row: dict[str, Any] = {by: name, "seeds": len(group)}
        for column in columns:
            values = scale * group[column]
            spread = f" ± {values.std():.{digits}f}" if len(group) > 1 else ""
            row[f"{column} (%)" if percent else column] = f"{values.mean():.{digits}f}{spread}"
        rows.append(row)
    return pd.DataFrame(rows)


# ---------------------------------------------------------------- captions that several clips have


def shared_captions(clips: Clips) -> Markdown:
    """How many clips share a caption with another, and the highest R@1 that is left; or that there is one clip alone;
    nothing else.

    A caption counts as right for its own clip alone, and ties count against a system (metrics/_retrieval.py): where one
    text is the caption of several clips, no system ranks them all first.
    """
    captions, name = clips.captions("eng"), escape(clips.name)
    if len(captions) == 1:
        return Markdown(f"**There is one {name} clip:** among one, recall is 100 % whatever a system has learnt.")
    owned = owners(captions)
    shared = sum(any(owned[text] > 1 for text in own) for own in captions)
    if not shared:
        return Markdown("")
    from_text, from_audio = ceilings(captions)
    return Markdown(
        f"**{shared} of the {len(captions)} {name} clips share a caption with another, word for word.** A "
        "caption counts as right for its own clip alone, and ties count against a system, so that R@1 of no system "
        f"can pass {from_text:.1%} from text to audio and {from_audio:.1%} from audio to text: compare systems with "
        "one another and with these numbers."
    )


def ceilings(captions: Sequence[Sequence[str]]) -> tuple[float, float]:
    """The highest R@1 from text to audio, a query a caption, and from audio to text, a query a clip; fractions.

    >>> ceilings([["a dog"], ["a dog"], ["a cat"], ["a cow"]])
    (0.75, 0.5)
    """
    owned, most = owners(captions), defaultdict(int)
    for own in captions:
        for text, times in Counter(own).items():
            most[text] = max(most[text], times)  # one clip comes first for all queries of one text
    queries = sum(len(own) for own in captions)
    found = sum(any(owned[text] == 1 for text in own) for own in captions)
    return sum(most.values()) / max(queries, 1), found / max(len(captions), 1)
