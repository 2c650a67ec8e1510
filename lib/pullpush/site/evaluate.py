"""What a model scores on a dataset: retrieval, geometry and forces, or zero-shot, by the book's metrics."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from pullpush.data.batches import is_missing
from pullpush.data.clips import Clips
from pullpush.data.recordings.corpora import CorpusConfig, load_labelled, load_split, shared_captions
from pullpush.data.recordings.registry import find
from pullpush.encoders.interface import SAMPLE_RATE, Model
from pullpush.errors import PullPushError
from pullpush.metrics import alignment, difference, uniformity
from pullpush.studies.push_parts import forces_in_batches
from pullpush.training.evaluate import embed_audio, embed_ragged, embed_texts, retrieval_rows, zero_shot

WHOLE = "of the clips of the whole set"
COLUMNS = ["part", "language", "score", "value", "low", "high", "chance"]
FORCES = {
    "pull": "‖F_pull‖",
    "push": "‖F_push‖",
    "perpendicular": "‖F_⊥‖",
    "perpendicular_share": "‖F_⊥‖²/‖F_push‖²",
    "sideways_share": "‖F_push off the plane‖²/‖F_push‖²",
}


def evaluate(
    model: Model,
    dataset: str,
    *,
    tau: float,
    split: str = "test",
    languages: Sequence[str] = ("eng",),
    seconds: float | None = None,
    clips: int | None = None,
    subset: str | None = None,
    text_cleaning: str = "none",
    batch_size: int = 128,
) -> pd.DataFrame:
    """Scores of a model, tidy: a row a score.

    Args:
        dataset: as for `pullpush.data.recordings.registry.find`; tau: temperature of the forces.
        split: "train", "valid" or "test"; languages: ISO 639-3 codes.
        clips: only so many, the first, of labelled sets spread evenly.
        seconds, subset, text_cleaning: as for `CorpusConfig`.
        batch_size: of the forces.

    Returns:
        Columns part ("counts", "retrieval", "geometry", "forces"; "zero-shot" for labelled sets), language, score,
        value, low, high (95 % over clips; NaN for what is no mean over them), chance (NaN where there is none);
        fractions, cosines, norms at the model's own temperature, and counts.

    Raises:
        PullPushError, DataNotFoundError, UnknownNameError: see `load_corpus`.
    """
    rate, whole = model.sample_rate or SAMPLE_RATE, find(dataset).clips
    if find(dataset).labelled:
        is_usual = {"split": split == "test", "languages": tuple(languages) == ("eng",)}
        is_usual |= {"subset": subset is None, "text_cleaning": text_cleaning == "none"}
        if given := [name for name, so in is_usual.items() if not so]:
            raise PullPushError(
                f"{dataset} has test clips with labels, and English prompts: {', '.join(given)} goes with captions"
            )
        test = load_labelled(dataset, seconds=seconds, n=clips, sample_rate=rate)
        named = zero_shot(model, test, test.prompts())
        rows = [*counts(test, whole), *_of_table("zero-shot", "eng", named["metric"], named)]
        return pd.DataFrame(rows, columns=COLUMNS)
    size: dict[str, Any] = {f"n_{split}": clips, "seconds": seconds, "subset": subset, "text_cleaning": text_cleaning}
    of_split = load_split(CorpusConfig(dataset, sample_rate=rate, **size), split)
    return of_clips(model, of_split, languages, tau=tau, batch_size=batch_size, whole=whole)


def of_clips(
    model: Model,
    clips: Clips,
    languages: Sequence[str] = ("eng",),
    *,
    tau: float,
    batch_size: int = 128,
    whole: int = 0,
) -> pd.DataFrame:
    """`evaluate` of any model on captioned clips, at a temperature."""
    rows = counts(clips, whole)
    audio = embed_audio(model, clips)
    for language in languages:
        captions = clips.captions(language)
        kept = [row for row, texts in enumerate(captions) if texts and not any(map(is_missing, texts))]
        if len(kept) < 2:
            raise PullPushError(f"{len(kept)} clips have captions in {language!r}: retrieval takes two at least")
        captions = [captions[row] for row in kept]
        sounds, (text, clip) = audio[kept], embed_ragged(model, captions, language=language)
        number = {"clips with captions": len(captions), "captions": sum(map(len, captions))}
        rows += _rows("counts", language, number | {"captions that another clip has, too": shared_captions(captions)})
        found, first = retrieval_rows(sounds, text, clip), first_of(text, clip)
        rows += _of_table("retrieval", language, found["direction"] + " " + found["metric"], found)
        rows += geometry(sounds, first, language)
        rows += forces(sounds, first, language, tau=tau, batch_size=batch_size)
    return pd.DataFrame(rows, columns=COLUMNS)


def search(model: Model, clips: Clips, query: str, *, top: int = 5, language: str = "eng") -> Iterator[str]:
    """The clips that are most similar to a query, a line each: rank, cosine, where it lies, its first caption."""
    with torch.no_grad():
        similarity = (embed_audio(model, clips) @ embed_texts(model, [query], language=language).T)[:, 0]
    files, captions = clips.columns.get("file", [""] * len(clips)), clips.captions(language)
    for rank, row in enumerate(similarity.topk(min(top, len(similarity))).indices.tolist(), start=1):
        yield f"{rank:3}. {similarity[row]:+.2f}  {files[row]}  {(captions[row] or ['–'])[0]}"


def counts(clips: Clips, whole: int = 0) -> list[tuple]:
    """How many clips there are, of how many in the whole set where that is known, and how long."""
    seconds = clips.lengths.double() / getattr(clips, "sample_rate", SAMPLE_RATE)
    found = {
        "clips": len(clips),
        **({WHOLE: whole} if whole else {}),
        "mean seconds": seconds.mean(),
        "longest, seconds": seconds.max(),
    }
    return _rows("counts", "", found)


def first_of(text: Tensor, clip: Tensor) -> Tensor:
    """Of captions `(M, d)`, those of one clip after those of another, the first of each, `(N, d)`; clip: `(M,)`, which
    clip each is of.
    """
    return text[clip.diff(prepend=torch.tensor([-1])) > 0]


def geometry(audio: Tensor, text: Tensor, language: str) -> list[tuple]:
    """Where clips lie and where their first captions do, `(N, d)` each."""
    cosine = text @ audio.T
    others = (cosine.sum(1) - cosine.diagonal()) / (len(cosine) - 1)
    found: dict[str, Any] = {
        "cosine with its caption": _interval(cosine.diagonal()),
        "cosine with other captions": _interval(others),
        "alignment": alignment(audio, text),
        "uniformity of clips": uniformity(audio),
        "uniformity of captions": uniformity(text),
        "modality gap": (audio.mean(0) - text.mean(0)).norm(),
        "cosine of the mean clip and the mean caption": F.cosine_similarity(audio.mean(0), text.mean(0), dim=0),
    }
    return _rows("geometry", language, found)


def forces(audio: Tensor, text: Tensor, language: str, *, tau: float, batch_size: int) -> list[tuple]:
    """The forces of InfoNCE on first captions at a temperature, in random batches (SupCLAP Eq. 4)."""
    table = forces_in_batches(text.double(), audio.double(), tau, batch_size)
    found: dict[str, Any] = {"τ": tau, "batch": min(batch_size, len(audio))}
    found |= {name: _interval(torch.tensor(table[column].to_numpy())) for column, name in FORCES.items()}
    return _rows("forces", language, found)


def plain(table: pd.DataFrame) -> str:
    """The table as text: a block a part and language; fractions of retrieval and zero-shot in per cent.

    >>> plain(pd.DataFrame([("retrieval", "eng", "T2A R@1", 0.5, 0.4, 0.6, 0.01)], columns=COLUMNS))
    'retrieval, eng\\n    T2A R@1                                  50.0 %  [40.0, 60.0]  chance 1.0'
    """
    lines: list[str] = []
    size = table[(table["part"] == "counts") & (table["language"] == "")].set_index("score")["value"]
    of_whole = f" of {size[WHOLE]:,.0f}" if WHOLE in size else ""
    on = f" (on {size['clips']:,.0f}{of_whole} clips)" if "clips" in size else ""
    for (part, language), block in table.groupby(["part", "language"], sort=False):
        lines.append(f"{part}, {language}{on}" if language else part)
        lines += [_line(part, row) for row in block.to_dict("records")]
    return "\n".join(lines)


def _line(part: str, row: dict) -> str:
    percent = part in ("retrieval", "zero-shot")
    scale, digits, unit = (100, 1, " %") if percent else (1, 0 if float(row["value"]).is_integer() else 3, "")
    line = f"    {row['score']:<40} {scale * row['value']:.{digits}f}{unit}"
    if not math.isnan(row["low"]):
        line += f"  [{scale * row['low']:.{digits}f}, {scale * row['high']:.{digits}f}]"
    if not math.isnan(row["chance"]):
        line += f"  chance {scale * row['chance']:.{digits}f}"
    return line


def _interval(values: Tensor) -> tuple[float, float, float]:
    """The mean of values `(N,)` with its 95 % interval over them."""
    sure = difference(values.double().numpy()[None])
    return sure.value, sure.low, sure.high


def _rows(part: str, language: str, found: Mapping[str, Any]) -> list[tuple]:
    """A row a score: a number, or one with its interval and chance."""
    given = {name: value if isinstance(value, tuple) else (float(value),) for name, value in found.items()}
    return [(part, language, name, *value, *[math.nan] * (4 - len(value))) for name, value in given.items()]


def _of_table(part: str, language: str, names: pd.Series, table: pd.DataFrame) -> list[tuple]:
    values = table[["value", "low", "high", "chance"]].itertuples(index=False, name=None)
    return _rows(part, language, dict(zip(names, values, strict=True)))
