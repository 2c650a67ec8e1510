"""Probes of what studies store: soft labels of teachers, topics, rewritten captions; and of what they count.

UMAP and HDBSCAN are not ours: what UMAP is asked for is looked at, not what it finds, and keys name its version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pullpush.data.clips import Columns, StoredClips
from pullpush.data.language.vocabulary import load_events
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.data.scenes.world import write_captions
from pullpush.data.store import Waveforms, to_int16
from pullpush.encoders.interface import AudioEncoder, Model
from pullpush.golden.clips import silent
from pullpush.golden.compare import Values
from pullpush.golden.probes import Probes, numbers, seen
from pullpush.rewriting import create
from pullpush.rewriting.grammar import SceneRewriter
from pullpush.rewriting.prompts import Prompted, Question, cleaned
from pullpush.rewriting.words import inflected
from pullpush.studies import counting as costs, taught
from pullpush.studies.distill import labels
from pullpush.topics.clustering import STRATEGIES, arranged, gathered
from pullpush.topics.density import FEW, OUTLIER, Dense, Density, search, umap_options

DIM = 4
SIZES = (4000, 9100, 16_000, 12_345)  # samples of the clips
OF_CLIPS = (("a frog croaks", "frogs"), ("rain", "rain falls on a roof"), ("a bell", "a bell rings"))
OF_CLIPS += (("wind", "it blows"),)
OF_TOPICS = ("a dog barks", "the dog growls", "rain falls", "rain drips down", "a bell rings", "the bell tolls")
OF_TOPICS += ("a motor",)
EVENTS = ((0,), (2,), (1, 2), (2,), (0,))  # of five scenes
QUOTED = ("First a frog croaks, then rain falls.", "“A bell” rings, softly.", "Rain", "on a roof rain drums; wind, too")
ANSWERS = ('Caption: "A bell rings."\nI hope this helps!', "\n  rain falls  ", "English caption: «wind»", "caption")
LEMMAS = ("buzz", "cry", "play", "whine", "hum", "agree", "die", "fix", "bark")
PROBES = Probes("studies", 1e-3)  # soft labels are stored in half precision


# ---------------------------------------------------------------- clips and what teachers make of them


class Levels(AudioEncoder):
    """The level of each quarter of a clip."""

    dim = DIM

    def forward(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        sizes = [audio.shape[1]] * len(audio) if lengths is None else lengths.tolist()
        quarters = [row[:size].tensor_split(DIM) for row, size in zip(audio, sizes, strict=True)]
        return torch.stack([torch.stack([part.square().mean().sqrt() for part in parts]) for parts in quarters])


class Toy(Model):
    """Of a clip its level in each quarter, of a text how often it holds some letters; both of unit length."""

    def encode_audio(self, audio: Tensor, lengths: Tensor | None = None) -> Tensor:
        return F.normalize(Levels()(audio, lengths), dim=1)

    def encode_text(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        counts = [[1.0 + text.count(letter) for letter in "aeir"] for text in texts]
        return F.normalize(torch.tensor(counts), dim=1)


@dataclass(frozen=True)
class OfModel(taught.Run):
    """A teacher that is a model."""

    def model(self) -> Model:
        return Toy()


@dataclass(frozen=True)
class Directed(OfModel, taught.Directed):
    """One of an ensemble."""


def clips() -> StoredClips:
    """Four noises that grow louder, each in its own way, with two captions each."""

    def captions(columns: Columns, language: str) -> list[list[str]]:
        return [list(OF_CLIPS[int(name[0])]) for name in columns["file"]]

    count = len(SIZES)
    waves = [0.1 * np.linspace(1, 2 + at, size) * numbers(size, seed=at).numpy() for at, size in enumerate(SIZES)]
    store = Waveforms(np.concatenate([to_int16(wave.clip(-1, 1)) for wave in waves]), np.cumsum(SIZES))
    names = [f"{at}.wav" for at in range(count)]
    return StoredClips("probe", "probe", store, np.arange(count), {"file": names}, captions)


@PROBES("soft_labels")
def soft_labels() -> Values:
    """What three kinds of teachers make of clips, and the similarities that come of it."""
    kinds: tuple[Any, ...] = (OfModel(""), taught.Truth(), labels.Blind(dim=3, seed=2))
    soft = taught.side_by_side(kinds, clips(), "eng")
    return {
        "of a model": torch.from_numpy(soft[:, 0]).float(),
        "of the others": torch.from_numpy(soft[:, 1:]).float(),
        "similarities": taught.similarities(soft),
    }


@PROBES("dealt")
def dealt() -> Values:
    """What two teachers make of clips, dealt out."""
    return {"dealt": labels.Dealt((taught.Truth(), labels.Blind(dim=3, seed=2)), seed=1).embed(clips(), "eng")}


@PROBES("teachers")
def teachers() -> Values:
    """What a model makes of clips and of the mean direction of their captions."""
    return {"both sides": Directed("").embed(clips(), "eng")}


@PROBES("counting")
def counting() -> Values:
    """What small layers compute and keep: products, a convolution in groups, attention, frozen weights."""
    layer, frozen, rows = nn.Linear(6, 4), nn.Linear(6, 4).requires_grad_(False), torch.ones(3, 6)
    convolution, clip = nn.Conv1d(4, 8, 3, groups=2), torch.ones(2, 4, 9, requires_grad=True)
    heads = torch.ones(1, 2, 5, 8, requires_grad=True)
    return {
        "products": list(costs.cost(layer, lambda: layer(rows).tanh())),
        "frozen": list(costs.cost(frozen, lambda: frozen(rows))),
        "convolution": list(costs.cost(convolution, lambda: convolution(clip))),
        "attention": list(costs.cost(layer, lambda: F.scaled_dot_product_attention(heads, heads, heads))),
    }


# ---------------------------------------------------------------- topics


@PROBES("regions")
def regions() -> Values:
    """Dense regions of points around four centres and of a few between them; what UMAP is asked for."""
    centres = 4 * torch.eye(4, 6, dtype=torch.float64).repeat_interleave(9, dim=0)
    between = torch.tensor([[2.0, 2, 0, 0, 0, 0], [0, 0, 2, 2, 0, 0], [1, 1, 1, 1, 0, 9]], dtype=torch.float64)
    points = torch.cat([centres + 0.2 * numbers(36, 6, seed=1), between]).float().numpy()
    values: dict[str, Any] = {}
    for metric in ("cosine", "euclidean"):
        found = search(points, Density(dimensions=0, metric=metric, min_size=5), 0)
        values[metric] = {"labels": found.labels, "strength": found.strength, "points": seen(found.points)}
    for count, how in ((9, Density()), (FEW, Density(neighbours=5, dimensions=2)), (50, Density(metric="euclidean"))):
        values[f"UMAP of {count}"] = [[name, value] for name, value in sorted(umap_options(count, how, 3).items())]
    return values


@PROBES("topics")
def topics() -> Values:
    """Topics of captions in three regions and of outliers, by every strategy and likeness, some captions twice."""
    kinds = len(OF_TOPICS)
    texts = [OF_TOPICS[place % kinds] for place in range(20)]
    embeddings = numbers(kinds, 5, seed=2)[torch.arange(20) % kinds].float().numpy()
    rows, place = arranged(embeddings, texts, keep_order=False, keep_repeats=False)
    known = np.array([OF_TOPICS.index(texts[row]) for row in rows])
    found = np.array([2, 2, 0, 0, 1, 1, OUTLIER])[known]
    strength = np.where(found == OUTLIER, 0.0, 0.5 + 0.5 * (known % 2))
    region, captions = Dense(embeddings[rows][:, :3], found, strength), [texts[row] for row in rows]
    values: dict[str, Any] = {
        "rows": rows,
        "place": place,
        "in order": arranged(embeddings, texts, keep_order=True, keep_repeats=False)[0],
        "repeats": arranged(embeddings, texts, keep_order=False, keep_repeats=True)[0],
    }
    for outliers in STRATEGIES:
        for count, merge in ((None, "c-tf-idf"), (2, "c-tf-idf"), (2, "embeddings")):
            made = gathered(region, embeddings[rows], captions, place, count=count, outliers=outliers, merge=merge)
            values[f"{outliers}, {count or 'all'} by {merge}"] = {
                "labels": np.stack([made.labels, made.found]),
                "likely": seen(np.concatenate([made.probabilities.T, made.strength[None]])),
                "words": [[word for word, _ in topic[:3]] for topic in made.words],
                "weights": [weight for topic in made.words for _, weight in topic[:3]],
            }
    return values


@PROBES("topic_labels")
def topic_labels() -> Values:
    """Topics of clips by their captions' and by what they are in truth; how finely topics are sought."""
    relation = {1: "single", 2: "overlap"}
    scenes = [Scene(tuple(Sound(one, 0, 0.0) for one in events), relation[len(events)], None, 1.0) for events in EVENTS]
    of_scenes = silent({"scene": scenes})
    kinds = {
        "event": taught.Classes("event"),
        "events": taught.Classes("events"),
        "category": taught.Classes("category", ("animal", "water", "animal")),
        "shuffled": labels.Shuffled(taught.Classes("event"), seed=1),
    }
    values: dict[str, Any] = {kind: each.of(of_scenes, "eng") for kind, each in kinds.items()}
    found = np.array([2, 1, 2, OUTLIER, OUTLIER, 0, OUTLIER, 1, 0])
    values["of clips"] = labels.of_clips(found, [3, 2, 2, 2])
    for source in (labels.ByText(), labels.ByText(size=1, dimensions=0)):
        values[f"density at {source.size}"] = [list(vars(source.density(each)).values()) for each in (1, 5)]
    return values


# ---------------------------------------------------------------- captions


@dataclass(frozen=True)
class Echo(Prompted):
    """Answers with the end of the question."""

    def answers(self, questions: Sequence[Question]) -> list[str]:
        answers = [f"Caption: {one.number} {one.prompt[10:60]} … {one.prompt[-40:]}" for one in questions]
        return [text.replace("\n", " ") for text in answers]


@PROBES("rewriting")
def rewriting() -> Values:
    """Words that are left out, scenes in other words and merged; what models are asked, and how answers are read."""
    deletion = create("deletion")
    both = create("chain", rewriters=(deletion, create("deletion", p=1.0, seed=1)))
    either = create("one-of", rewriters=(create("deletion", p=0.0), create("deletion", p=1.0)), seed=2)
    simple = {"deletion": deletion, "chain": both, "one-of": either, "asked": Echo(seed=1)}
    values: dict[str, Any] = {
        name: [each.rewrite(QUOTED, number=copy) for copy in (0, 1)] for name, each in simple.items()
    }
    scenes = [
        Scene((Sound(2, 0, 0.3, far=True),), "single", 9.0, 2.0),
        Scene((Sound(7, 0, 0.0), Sound(11, 0, 0.2)), "overlap", None, 2.0),
        Scene((Sound(20, 0, 0.0, repeats=3),), "single", None, 2.0),
        Scene((Sound(30, 0, 0.1),), "single", 3.0, 2.0),
        Scene((Sound(41, 0, 0.0), Sound(5, 0, 1.0)), "sequence", None, 2.0),
    ]
    events = load_events()
    of_scenes = silent({"scene": scenes}, partial(write_captions, events, 2, 0))
    captions = [texts[0] for texts in of_scenes.captions("eng")]
    ways = {"grammar": SceneRewriter(), "few words": SceneRewriter(("deu",), vocabulary="narrow", skew=2.0)}
    for name, way in ways.items():
        rewriter = way.of(of_scenes, "eng", events)
        values[name] = [rewriter.rewrite(captions, number=copy) for copy in (0, 1)]
        values[f"{name}, merged"] = rewriter.merge(captions[:2], captions[2:4])
    return values | {
        "asked, merged": Echo().merge(QUOTED[:1], QUOTED[1:2]),
        "cleaned": [cleaned(text) for text in ANSWERS],
        "inflected": [inflected(lemma, ending) for lemma in LEMMAS for ending in ("", "s", "ing")],
    }
