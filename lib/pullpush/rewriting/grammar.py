"""Back-translation that is exact: a caption's scene is told in another language, and from there back in other words.

The book's captions come from scene graphs. What a language model would guess is known here: the graph is what a
translation has to keep, and two graphs are merged by their union. Nothing is fetched, nothing is paid, and the same
caption gives the same words everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple, Self

from pullpush.data.clips import Clips
from pullpush.data.draws import number as draw
from pullpush.data.language.vocabulary import Event
from pullpush.data.language.wording import VOCABULARIES, is_plain, worded_captions
from pullpush.data.languages import LANGUAGES, load_languages
from pullpush.data.scenes.augmented import Merger, Rewriter, RewritingError, check_pairs, unite
from pullpush.data.scenes.scene import Scene, Sound
from pullpush.errors import check_all_known, check_known
from pullpush.rewriting import RewriterCard

WAYS = 8  # captions told on the way back where some may be equal, of which the first that differs is taken


class Retold(NamedTuple):
    """A caption on its way: language, ISO 639-3, that it was told in; pivot, how; back, the caption that came back."""

    language: str
    pivot: str
    back: str


@dataclass(frozen=True)
class SceneRewriter(Rewriter, Merger):
    """Captions of scenes by their graphs; `of` gives it the clips whose captions it is to know.

    What comes back has the same events in the same relation. Distance, repetition and noise are mentioned now and then
    where they are there, as by another annotator of the same clip, never where they are not.

    through: languages to go through, one drawn for each caption; default: all that the book's grammar has.
    vocabulary, skew: words of what comes back, see `data.language.wording`; "rich" without skew are the grammar's own.
    seed: of all draws, with the caption and the number.
    scenes, events: what `of` gave, no part of what rewriters are compared and named in caches by: clips have keys.

    Raises:
        UnknownNameError: there is no such language or vocabulary.

    >>> from pullpush.data.scenes.world import WorldConfig, load_world
    >>> world = load_world(WorldConfig("synthetic", n_train=4, n_valid=2, n_test=2, n_single_per_event=1))
    >>> rewriter = SceneRewriter(through=("deu",)).of(world.singles, "eng", world.bank.events)
    >>> caption = world.singles.captions("eng")[1][0]
    >>> caption, rewriter.retold(caption).back
    ('In this recording, a bell rings.', 'The ringing of a bell, with noise in the background.')
    """

    through: tuple[str, ...] = LANGUAGES
    vocabulary: str = "rich"
    skew: float = 0.0
    seed: int = 0
    language: str = "eng"
    scenes: Mapping[str, Scene] | None = field(default=None, repr=False, compare=False)
    events: Sequence[Event] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "through", tuple(self.through))
        check_all_known("language", (*self.through, self.language), load_languages())
        check_known("vocabulary", self.vocabulary, VOCABULARIES)
        if not set(self.through) - {self.language}:
            raise ValueError(f"through needs a language other than {self.language!r}, got {self.through}")

    def of(self, clips: Clips, language: str = "eng", events: Sequence[Event] = ()) -> Self:
        """The same, knowing the captions of these clips in one language.

        Raises:
            RewritingError: the clips are no scenes, or `events` of their bank are missing.
            ValueError: there is no other language to go through.
        """
        if "scene" not in clips.columns or not events:
            columns = ", ".join(clips.columns) or "none"
            raise RewritingError(
                "the grammar rewrites captions of scenes, which have a column 'scene' and the events of a bank "
                f"(columns here: {columns}; events: {len(events)}): take the rewriter 'endpoint' for other "
                "clips, or change single words ('deletion', 'synonyms')"
            )
        found: dict[str, list[Scene]] = {}
        for scene, texts in zip(clips.columns["scene"], clips.captions(language), strict=True):
            shared = shared_scene([scene])
            for text in set(texts):
                found.setdefault(text, []).append(shared)
        scenes = {text: several[0] if len(several) == 1 else shared_scene(several) for text, several in found.items()}
        return replace(self, language=language, scenes=scenes, events=events)

    def rewrite(self, captions: Sequence[str], *, number: int = 0) -> list[str]:
        """See `Rewriter`: each caption back from another language; the same where there is no other way to tell it.

        Raises:
            RewritingError: no clips are known, or not one with this caption.
        """
        return [self.retold(caption, number).back for caption in captions]

    def merge(self, first: Sequence[str], second: Sequence[str], *, number: int = 0) -> list[str]:
        """See `Merger`: captions of the union of both scenes (see `data.scenes.augmented.unite`).

        Raises:
            RewritingError: as for `rewrite`; or two scenes that have no union.
            ValueError: there are not as many first captions as second ones.
        """
        check_pairs(first, second)
        return [self._merged(*pair, number) for pair in zip(first, second, strict=True)]

    def retold(self, caption: str, number: int = 0) -> Retold:
        """A caption's way through another language and back; number: of the copy."""
        scene = self._scene(caption)
        drawn_by = (self.seed, caption, number)
        others = [language for language in self.through if language != self.language]
        language = others[draw(("through", *drawn_by)) % len(others)]
        pivot = self._captions(scene, language, draw(("pivot", *drawn_by)), 1)[0]
        ways = 2 if is_plain(self.vocabulary, self.skew) else WAYS  # the grammar's own captions differ
        back = self._captions(scene, self.language, draw(("back", pivot, *drawn_by)), ways)
        return Retold(language, pivot, next((text for text in back if text != caption), caption))

    def _merged(self, first: str, second: str, number: int) -> str:
        try:
            scene = unite(self._scene(first), self._scene(second))
        except ValueError as error:
            if isinstance(error, RewritingError):
                raise
            raise RewritingError(
                f"{first!r} and {second!r} have no union: merge captions of scenes without a sequence and without an "
                "event in common (see `data.scenes.augmented.partners`)"
            ) from error
        return self._captions(scene, self.language, draw(("merge", self.seed, first, second, number)), 1)[0]

    def _scene(self, caption: str) -> Scene:
        if self.scenes is None:
            raise RewritingError(
                "the grammar knows no scenes yet: make it for clips, SceneRewriter().of(world.train, 'eng', "
                "world.bank.events), or describe them by an AugmentedConfig, which does so"
            )
        if caption not in self.scenes:
            raise RewritingError(
                f"the grammar knows no scene of the caption {caption!r} among {len(self.scenes)} captions: it rewrites "
                "those of the clips that it was made for, word for word; put it first where rewriters are chained"
            )
        return self.scenes[caption]

    def _captions(self, scene: Scene, language: str, seed: int, n: int) -> list[str]:
        words = {"vocabulary": self.vocabulary, "skew": self.skew}
        return worded_captions(scene, self.events, language=language, n=n, seed=seed, **words)


def shared_scene(scenes: Sequence[Scene]) -> Scene:
    """What a caption of all these scenes may be taken to tell: their graph, and what of the rest all of them share.

    Distance, repetition and noise stay where every scene has them; pitch, level and time, which no caption tells, go.
    `RewritingError` where the scenes differ in their graphs.
    """
    relation, events = scenes[0].graph
    if any(scene.graph != (relation, events) for scene in scenes):
        raise RewritingError(
            f"one caption tells {len({scene.graph for scene in scenes})} graphs, such as {scenes[0].graph} and "
            f"{next(scene.graph for scene in scenes if scene.graph != scenes[0].graph)}: two events are called the same"
        )
    order = attrgetter("onset" if relation == "sequence" else "event")
    ordered = [sorted(scene.sounds, key=order) for scene in scenes]
    sounds = tuple(
        Sound(
            same[0].event,
            0,
            float(place) * (relation == "sequence"),
            far=all(sound.far for sound in same),
            repeats=min(sound.repeats for sound in same),
        )
        for place, same in enumerate(zip(*ordered, strict=True))
    )
    noisy = all(scene.snr_db is not None for scene in scenes)
    return Scene(sounds, relation, 0.0 if noisy else None, float(len(sounds)))


CARD = RewriterCard(
    name="grammar",
    make=SceneRewriter,
    title="Scene graph",
    about="Tells a caption's scene in another language and back in other words; merges two scenes by their union.",
    source="Distillation & clusters §2.4, without a language model",
    citation="distill_cluster",
    merges=True,
    needs="scenes",
)
