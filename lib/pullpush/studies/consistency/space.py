"""A joint space with many languages: ranks, tightness and maps in it, and the direction error of ATRI's Figure 2."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from pullpush.data.batches import Batch, PairDataset, TrainingData
from pullpush.data.clips import Clips
from pullpush.data.language.vocabulary import LANGUAGES
from pullpush.losses import cacl, kcl, ml_clap
from pullpush.metrics import angle, direction_error, language_ranks, pseudo_values, rank_variance
from pullpush.parallel import in_threads, side_by_side
from pullpush.show.palette import method_name
from pullpush.studies.consistency.data import Runs, complete, take
from pullpush.training.diagnostics import Asking, Diagnostics
from pullpush.training.evaluate import embed_audio, embed_captions
from pullpush.training.objective import Objective


class Space(NamedTuple):
    """Embeddings of a split: audio `(N, d)`; texts `(N, C, K, d)`, C captions in each of K languages."""

    audio: Tensor
    texts: Tensor

    @property
    def ranks(self) -> Tensor:
        """Rank of each clip for its first caption in each language, from 1: `(N, K)`."""
        return language_ranks(self.audio, self.texts[:, 0])


def embed(model: nn.Module, split: Clips, languages: Sequence[str] = LANGUAGES) -> Space:
    """Embed all clips and all their captions in all languages."""
    texts = torch.stack([embed_captions(model, split.captions(each), language=each) for each in languages], dim=2)
    return Space(embed_audio(model, split, batch_size=512), texts)


def spaces(runs: Runs, split: Clips, languages: Sequence[str] = LANGUAGES) -> dict[tuple[str, int], Space]:
    """The space of each run; see `embed`."""
    for language in languages:
        split.captions(language)  # written once, for all threads
    embedded = in_threads([partial(embed, run.model, split, languages) for run in runs.values()])
    return dict(zip(runs, embedded, strict=True))


def uneven(spaces: Mapping[str, Space]) -> dict[str, int]:
    """For each system the clip whose rank varies most over the languages; no clip twice."""
    found: dict[str, int] = {}
    for system, space in spaces.items():
        order = rank_variance(space.ranks).argsort(descending=True).tolist()
        found[system] = next(clip for clip in order if clip not in found.values())
    return found


def clip_ranks(spaces: Mapping[str, Space], clip: int) -> dict[str, list[int]]:
    """A clip's ranks in each language, by the printed names of the systems."""
    return {method_name(system): space.ranks[clip].tolist() for system, space in spaces.items()}


def tightness(spaces: Iterable[Space]) -> np.ndarray:
    """How tight a clip's first captions lie, `(seeds, clips)`: their mean distance to their centre over that to the
    centre of all clips' captions, as pseudo-values. Small is tight.
    """
    rows = []
    for texts in (space.texts[:, 0] for space in spaces):  # (N, K, d)
        near = (texts - texts.mean(1, keepdim=True)).norm(dim=-1).mean(1)
        far = (texts - texts.mean((0, 1))).norm(dim=-1).mean(1)
        distances = torch.stack([near, far], dim=1).double().numpy()
        rows.append(pseudo_values(lambda pair: pair[:, 0].mean() / pair[:, 1].mean(), distances))
    return np.stack(rows)


def maps(
    spaces: Mapping[str, Space], clips: Sequence[int], methods: Sequence[str], languages: Sequence[str] = LANGUAGES
) -> pd.DataFrame:
    """Two-dimensional maps of some clips and their first captions: columns system, method, item, language, x, y.

    language "audio" is the clip itself. methods: "t-SNE", "UMAP"; they run side by side.
    """
    clips = list(clips)
    points = [  # of each system, a clip and then its captions, (M · (1 + K), d)
        torch.cat([space.audio[clips, None], space.texts[clips, 0]], dim=1).flatten(0, 1).numpy()
        for space in spaces.values()
    ]
    placed = side_by_side([partial(_placed, points, method) for method in methods])
    names = [(item, language) for item in range(len(clips)) for language in ("audio", *languages)]
    tables = [
        pd.DataFrame(names, columns=["item", "language"]).assign(system=system, method=method, x=at[:, 0], y=at[:, 1])
        for method, places in zip(methods, placed, strict=True)
        for system, at in zip(spaces, places, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)[["system", "method", "item", "language", "x", "y"]]


def _placed(several: Sequence[np.ndarray], method: str) -> list[np.ndarray]:
    """Maps of several sets of points by one method, `(P, 2)` each; both are slow to import, and only maps need them."""
    options = {"metric": "cosine", "random_state": 0}
    if method == "UMAP":
        from umap import UMAP

        made = [UMAP(n_neighbors=min(15, len(points) - 1), n_jobs=1, **options) for points in several]
    else:
        from sklearn.manifold import TSNE

        made = [TSNE(perplexity=min(30, (len(points) - 1) // 3), init="random", **options) for points in several]
    return [one.fit_transform(points) for one, points in zip(made, several, strict=True)]


def map_tightness(table: pd.DataFrame) -> float:
    """How tight the clusters of one map are: mean distance of a text to its item's centre over that to the map's."""
    texts = table[table["language"] != "audio"]
    centre = texts.groupby("item")[["x", "y"]].transform("mean")
    near = np.hypot(texts["x"] - centre["x"], texts["y"] - centre["y"]).mean()
    return float(near / np.hypot(texts["x"] - texts["x"].mean(), texts["y"] - texts["y"].mean()).mean())


# ---------------------------------------------------------------- the direction error

PROBED = ("one", "pair", "one aim", "pair aim", "one gradient", "pair gradient", "batch gradient")


@dataclass(frozen=True)
class DirectionProbe(Diagnostics):
    """Asks a model, while it trains, how far one random language is from all of them: on embeddings and on gradients,
    of validation clips.

    Columns, mean angles in degrees: `one`, Figure 2's error if one random language is taken (ML-CLAP); `pair`, if
    English and another are (CACL); `one gradient` and `pair gradient`, between the gradients of `ml_clap` and `cacl`
    on a batch and that of `kcl` on the same batch, over all weights; `batch gradient`, between the gradients of `kcl`
    on two batches, the yardstick. `one aim` and `pair aim`: the same errors per unit of spread, see `aim_error`.

    A gradient is of as many clips as a batch of the run has, at most a quarter of those that have captions in all
    languages; there are at most five such batches.

    languages: of the captions, English first.
    """

    languages: tuple[str, ...] = LANGUAGES

    def on(self, objective: Objective, pairs: TrainingData, valid: Clips) -> Diagnostics:
        clips = complete(valid, self.languages)
        size = min(objective.recipe.batch_size, max(1, len(clips) // 4))
        rate = objective.model.sample_rate
        data = PairDataset(clips.head(5 * size), languages=self.languages, sampling="all", sample_rate=rate)
        places = range(len(data))
        batches = [data.batch(places[start : start + size]) for start in places[::size]]
        return Asking(self.every, ask=partial(_directions, batches))


@torch.enable_grad()
def _directions(batches: Sequence[Batch], objective: Objective) -> dict[str, float]:
    """What a probe asks about batches; gradients are compared on those that are as large as the first."""
    model, generator = objective.model, torch.Generator().manual_seed(0)
    # Clips and their texts in each language, a graph each: a gradient goes back through one batch.
    encoded = [(model.encode_audio(batch.audio, batch.lengths), objective.embed_here(batch)) for batch in batches]
    spaces = [(audio.cpu(), torch.stack(texts, dim=1).cpu()) for audio, texts in encoded]
    audio, texts = (torch.cat([each.detach() for each in side]) for side in zip(*spaces, strict=True))
    clips, count = texts.shape[:2]
    taken = {name: take(clips, count, name, generator) for name in ("random", "pair")}
    row = {}
    for name, each in zip(("one", "pair"), taken.values(), strict=True):
        row[name] = float(direction_error(audio, texts, each).nanmean())
        row[f"{name} aim"] = float(aim_error(audio, texts, each).nanmean())
    weights = [weight for weight in model.parameters() if weight.requires_grad]

    def gradient(loss: Tensor) -> Tensor:
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss, weights, retain_graph=True)])

    rows, last, size = [], None, len(batches[0].audio)
    for at, (sounds, told) in enumerate(space for space in spaces if len(space[0]) == size):
        one, pair = (each[at * size : (at + 1) * size] for each in taken.values())
        of_kcl = gradient(kcl(sounds, told))
        of_ml_clap = gradient(ml_clap(sounds, told[one]))
        of_cacl = gradient(cacl(sounds, told[:, 0], told[:, 1:][pair[:, 1:]]))
        found = {"one gradient": angle(of_ml_clap, of_kcl), "pair gradient": angle(of_cacl, of_kcl)}
        rows.append(found | ({"batch gradient": angle(last, of_kcl)} if last is not None else {}))
        last = of_kcl
    return row | {name: float(value) for name, value in pd.DataFrame(rows).astype(float).mean().items()}


def aim_error(audio: Tensor, texts: Tensor, taken: Tensor) -> Tensor:
    """Direction error per unit of spread: how far beside the mean of all K texts a clip aims, over the spread of texts.

    The angle of `direction_error` grows by parallax as a clip comes nearer to its texts, although the texts stay where
    they are. This is the distance from the mean of all texts to the line through the clip and the mean of those taken,
    over the mean distance of all clips' means from their centre: `(N, d)`, `(N, K, d)`, `(N, K)` boolean → `(N,)`; 0
    where all are taken, NaN where a clip lies on the mean of those taken.

    Example:
        >>> texts = torch.tensor([[[3.0, 1.0], [3.0, -1.0]], [[-3.0, 1.0], [-3.0, -1.0]]])
        >>> taken = torch.tensor([[True, False], [True, True]])
        >>> aim_error(torch.tensor([[0.0, 1.0], [9.0, 9.0]]), texts, taken)
        tensor([0.3333, 0.0000])
    """
    weight = taken.to(texts.dtype) / taken.sum(dim=1, keepdim=True)
    mean = texts.mean(dim=1)
    way = (texts * weight[..., None]).sum(dim=1) - audio
    unit = way / way.norm(dim=1, keepdim=True)
    left = mean - audio
    beside = (left - (left * unit).sum(dim=1, keepdim=True) * unit).norm(dim=1)
    return beside / (mean - mean.mean(dim=0)).norm(dim=1).mean()


def direction_by_count(spaces: Mapping[tuple[str, int], Space]) -> pd.DataFrame:
    """Figure 2's error over the number of languages, in degrees: columns system, seed, what, count, error.

    what: "one of K", a random language against all of K random ones; "m of all", m random ones against all.
    """
    rows = []
    for (system, seed), (audio, texts) in spaces.items():
        clips, _, most = texts.shape[:3]
        order = torch.rand(clips, most, generator=torch.Generator().manual_seed(seed)).argsort(1)
        mixed = texts[:, 0].gather(1, order[:, :, None].expand_as(texts[:, 0]))
        place = torch.arange(most)[None].expand(clips, -1)
        for count in range(1, most + 1):
            of_first = direction_error(audio, mixed[:, :count], place[:, :count] < 1)
            of_several = direction_error(audio, mixed, place < count)
            for what, error in (("one of K", of_first), ("m of all", of_several)):
                rows.append((system, seed, what, count, error.nanmean().item()))
    return pd.DataFrame(rows, columns=["system", "seed", "what", "count", "error"])
