"""Training data that is larger than a disk: pairs from shards, read as they are needed.

    data = ShardDataset("/data/train-{000000..000099}.tar", languages=("eng", "fra"), captions="random")
    data = ShardDataset({"sound": "/data/sound", "speech": "/data/speech"}, weights={"sound": 1, "speech": 1})
    train(model, recipe, data, read_shards("/data/valid"))

What shards are is said in files.py. In which order their samples come is arithmetic on (seed, epoch) and on how many
samples each shard has, before any is read: a run that goes on skips what it has seen at once.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from torch import Tensor

from pullpush.checks import check_count
from pullpush.data.batches import GROUP, Batch, Item, apportioned, collate, shard
from pullpush.data.mixture import SEVERAL
from pullpush.data.pairing import Pairing
from pullpush.data.shards.files import Annotation, DamagedError, Sample, Where, read_sample, samples_of, shards_of
from pullpush.errors import PullPushError, TrainingError, check_known, few
from pullpush.settings import Positive, check_setting

AHEAD = 2  # batches that are read while another one is trained on
NAMED = 3  # damaged samples that a message names
LISTED = 10_000  # damaged samples that a table has
TRIES = 100  # samples that may be damaged one after the other
T = TypeVar("T")


class Place(NamedTuple):
    """A sample by its turn: which stream, which pass over it, and the position in the pass."""

    stream: int
    turn: int
    position: int


def one_pass(counts: Sequence[int] | np.ndarray, *, window: int, seed: Sequence[int]) -> np.ndarray:
    """One pass over shards: the shards in random order, and in windows of so many samples those in random order.

    Two samples of a shard are at most about a window and a shard apart, so that few shards are read at a time.
    counts: samples of each shard. `(N, 2)`: the number of each sample's shard, and its own there.

    >>> one_pass([3, 1, 2], window=4, seed=(0,)).tolist()
    [[0, 1], [2, 0], [0, 0], [2, 1], [1, 0], [0, 2]]
    """
    shards = np.random.default_rng([*seed, 0]).permutation(len(counts)).tolist()
    found = np.concatenate([np.stack([np.full(counts[one], one), np.arange(counts[one])], axis=1) for one in shards])
    for number, start in enumerate(range(0, len(found), window)):
        part = found[start : start + window]
        part[:] = part[np.random.default_rng([*seed, 1, number]).permutation(len(part))]
    return found


def substitutes(position: int, count: int) -> Iterator[int]:
    """Positions of a pass of `count` samples to try in turn for the sample at one of them: itself, then those half a
    pass away, a quarter, three quarters, an eighth …, far from the batch that the sample is in.

    >>> list(substitutes(2, 5))
    [2, 4, 3, 0, 1]
    """
    seen = set()
    for number in range(2 * count):
        # the bits of the number, mirrored at the binary point: 0, 1/2, 1/4, 3/4, 1/8 …
        mirrored = int(f"{number:b}"[::-1], 2) * count >> number.bit_length()
        place = (position + mirrored) % count
        if place not in seen:
            seen.add(place)
            yield place
        if len(seen) == TRIES:
            return


class Schedule:
    """Whose turn it is in every batch of every epoch.

    Streams are passed over side by side, each in one random order after the other (see `one_pass`), and each goes on
    where the epoch before has left it. In an epoch they are mixed as evenly as clips at hand are by `balanced_order`.
    shards: of each stream the samples of each shard; counts: of each stream the samples in an epoch, at least one.
    """

    def __init__(self, shards: Sequence[np.ndarray], counts: Sequence[int], *, window: int) -> None:
        self.counts = tuple(counts)
        self.totals = [int(each.sum()) for each in shards]
        # Of an epoch's samples, in their order: the stream, and the number there. The same in every epoch.
        due = np.argsort(np.concatenate([(np.arange(count) + 0.5) / count for count in counts]), kind="stable")
        self.stream = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[due]
        self.number = np.concatenate([np.arange(count) for count in counts])[due]
        self._order = lru_cache(maxsize=4 * len(shards))(
            lambda *seed: one_pass(shards[seed[1]], window=window, seed=seed)
        )

    def __len__(self) -> int:
        return len(self.stream)

    def steps(self, batch_size: int, processes: int) -> int:
        """Batches of an epoch that have a sample for every process."""
        check_count("batch_size", batch_size)
        if (most := min(batch_size, len(self))) < processes:
            raise TrainingError(f"batches of {most} clips are too small for {processes} processes")
        full, rest = divmod(len(self), batch_size)
        return full + (rest >= processes)

    def batch(self, number: int, batch_size: int, *, epoch: int) -> list[Place]:
        """Whose turn it is in a batch of an epoch, over all processes."""
        rows = slice(batch_size * number, batch_size * (number + 1))
        streams, numbers = self.stream[rows].tolist(), self.number[rows].tolist()
        return [
            Place(stream, *divmod(number + epoch * self.counts[stream], self.totals[stream]))
            for stream, number in zip(streams, numbers, strict=True)
        ]

    def samples(self, place: Place, *, seed: int) -> Iterator[tuple[int, int]]:
        """The sample whose turn it is, as number of its shard in the stream and number there; then its substitutes."""
        order = self._order(seed, place.stream, place.turn)
        for position in substitutes(place.position, len(order)):
            yield tuple(order[position].tolist())


class ShardDataset:
    """Pairs from shards, a caption each (or one per language) drawn anew every epoch; a `TrainingData`.

    The order is a function of (seed, epoch) alone (see `one_pass`). Each process reads its own samples alone; what a
    resumed run skips is not read. A damaged sample (a shard cut short, a recording or JSON that cannot be read, no
    caption) is replaced by another one of the epoch, the same one whatever the number of processes. A warning at the
    end of the epoch says how many there were, `damaged` which.

    Args:
        where: a folder, a pattern with braces, or a list of these (see `shards_of`); or several such sets by name,
            which samples have as their column "group".
        languages, sampling, captions, seed, sample_rate, columns: see `PairDataset`. Captions whose language is not
            named are in the first of the languages; "mul" takes those in all languages that a sample has.
        buffer: samples that are shuffled among each other; as many shards are read at a time as hold so many.
        seconds: longer recordings are cut to this; None keeps all.
        weights: of the sets by name, as in `PairDataset`; a set that is exhausted starts anew, in another order. Empty:
            all are shuffled together.
        threads: that read and decode.

    Raises:
        DataNotFoundError: there are no such shards.
        UnknownNameError: an unknown sampling or caption choice, or no such column.
        PullPushError: no shard has a sample, or weights of other sets (see `batches.apportioned`).
    """

    def __init__(
        self,
        where: Where | Mapping[str, Where],
        *,
        languages: Sequence[str] = ("eng",),
        sampling: str = "fixed",
        captions: str = "first",
        seed: int = 0,
        sample_rate: int | None = None,
        columns: Sequence[str] = (),
        buffer: int = 10_000,
        seconds: float | None = None,
        weights: Mapping[str, float] = MappingProxyType({}),
        threads: int = 2,
    ) -> None:
        check_count("buffer", buffer)
        check_count("threads", threads)
        check_setting("seconds", seconds, Positive | None)
        if captions == "all":
            raise ValueError("how many captions a clip of shards has at most is not known: captions is first or random")
        # pyrefly: ignore[bad-argument-type]
        self.pairing = Pairing(languages, sampling, captions, seed)
        self.sample_rate, self.seconds, self.buffer, self.threads = sample_rate, seconds, buffer, threads
        sets = {name: shards_of(each) for name, each in (where if isinstance(where, Mapping) else {"": where}).items()}
        self.groups = np.array([name for name, each in sets.items() for _ in each])
        self.shards = [one for each in sets.values() for one in each]
        self.sizes = np.array([one.samples for one in self.shards], dtype=np.int64)
        self.offsets = np.cumsum(self.sizes) - self.sizes
        totals = {name: sum(one.samples for one in each) for name, each in sets.items()}
        if not (total := sum(totals.values())):
            names = few([str(one.path) for one in self.shards], most=NAMED)
            raise PullPushError(f"none of the {len(self.shards)} shards has a sample that can be read: {names}")
        # Samples that follow each other lie in about as many shards as hold a window, in each of two windows.
        near = buffer * len(sets) // max(total // len(self.shards), 1)
        self._samples = lru_cache(maxsize=2 * (near + 2))(self._listed)
        self._damaged: dict[tuple[str, str], str] = {}
        for number in np.flatnonzero(self.sizes == 0).tolist():
            self._samples(number)
        self.weights = dict(weights)
        counts = apportioned(totals, weights) if weights else {"": total}
        self.streams = [
            np.flatnonzero(self.groups == name) if weights else np.arange(len(self.groups))
            for name in counts
            if counts[name]
        ]
        sizes = [self.sizes[stream] for stream in self.streams]
        self.schedule = Schedule(sizes, [count for count in counts.values() if count], window=buffer)
        self.bring(columns)

    @property
    def languages(self) -> tuple[str, ...]:
        """Of the captions; the first is the main one."""
        return self.pairing.languages

    def __len__(self) -> int:
        return len(self.schedule)

    @property
    def damaged(self) -> pd.DataFrame:
        """What this process met that cannot be used: columns shard, sample ("" for a shard as a whole), reason."""
        rows = [(*name, reason) for name, reason in sorted(self._damaged.items())]
        return pd.DataFrame(rows, columns=["shard", "sample", "reason"])

    def find(self, index: int) -> tuple[str, str]:
        """The shard and the key of a sample by the number that batches and messages give it."""
        number = int(np.searchsorted(np.cumsum(self.sizes), index, side="right"))
        sample, samples = index - int(self.offsets[number]), self._samples(number)
        key = samples[sample].key if sample < len(samples) else f"sample {sample}"
        return str(self.shards[number].path), key

    @cached_property
    def offered(self) -> Mapping[str, Sequence[Any]]:
        """The columns by name, as the first sample has them; their values are not known before they are read."""
        _, first = self._first(Place(0, 0, 0), self.pairing.seed, self._read, [])
        return dict.fromkeys([*first.columns, *([GROUP] if self.groups.any() else [])], ())

    def bring(self, columns: Sequence[str]) -> None:
        for name in columns:
            check_known("column of the shards", name, self.offered)
        self.columns = tuple(columns)

    def steps(self, batch_size: int, *, processes: int = 1) -> int:
        return self.schedule.steps(batch_size, processes)

    def batches(
        self, batch_size: int, *, seed: int, epoch: int, skip: int = 0, rank: int = 0, processes: int = 1
    ) -> Iterator[Batch]:
        steps = range(skip, self.steps(batch_size, processes=processes))
        pair = partial(self._pair, epoch=epoch)
        replaced: list[str] = []  # samples that are damaged
        with ThreadPoolExecutor(self.threads, "shards") as pool:

            def coming() -> Iterator[list[Future[Item]]]:
                for number in steps:
                    share = shard(self.schedule.batch(number, batch_size, epoch=epoch), rank, processes)
                    yield [pool.submit(self._first, place, seed, pair, replaced) for place in share]

            try:
                batches = coming()
                waiting = deque(islice(batches, AHEAD))
                while waiting:
                    waiting.extend(islice(batches, 1))
                    yield collate([item.result() for item in waiting.popleft()])
            finally:
                pool.shutdown(cancel_futures=True)
        if replaced:
            warnings.warn(
                f"{len(replaced)} samples of epoch {epoch + 1} are damaged, replaced by others: "
                f"{few(replaced, most=NAMED)}; "
                "`damaged` of the dataset lists them",
                stacklevel=2,
            )

    def _first(self, place: Place, seed: int, use: Callable[[int, int], T], replaced: list[str]) -> T:
        """What `use` makes of the sample whose turn it is, or of the first of its substitutes that can be used."""
        problems: list[str] = []
        for inside, sample in self.schedule.samples(place, seed=seed):
            number = int(self.streams[place.stream][inside])
            try:
                result = use(number, sample)
            except DamagedError as error:
                path, key = self.find(int(self.offsets[number]) + sample)
                problems.append(f"{key} in {path} ({error})")
                if len(self._damaged) < LISTED:
                    self._damaged[path, key] = str(error)
                continue
            replaced.extend(problems[:1])
            return result
        raise PullPushError(
            f"{len(problems)} samples from all over the shards cannot be used, such as "
            f"{few(problems, most=NAMED)}: compare the "
            "shards with their checksums (check_shards), and fetch them again"
        )

    def _pair(self, number: int, sample: int, epoch: int) -> Item:
        """One sample with its texts."""
        wave, annotation = self._read(number, sample)
        captions = captions_in(annotation, self.languages)
        if sum(map(bool, captions.values())) < self.pairing.needed:
            raise DamagedError(f"no caption in {self.pairing.needed} of {', '.join(self.languages)}")
        columns = {**annotation.columns, **({GROUP: str(self.groups[number])} if self.groups[number] else {})}
        if lost := [name for name in self.columns if name not in columns]:
            raise DamagedError(f"its JSON has no {', '.join(lost)}")
        index = int(self.offsets[number]) + sample
        texts = self.pairing.texts(index, epoch, captions)
        return Item(index, wave, *texts, {name: columns[name] for name in self.columns})

    def _read(self, number: int, sample: int) -> tuple[Tensor, Annotation]:
        samples = self._samples(number)
        if sample >= len(samples):
            raise DamagedError("its shard ends before it")
        path = self.shards[number].path
        return read_sample(path, samples[sample], sample_rate=self.sample_rate, seconds=self.seconds)

    def _listed(self, number: int) -> list[Sample]:
        """The samples of a shard; what ends it early is noted."""
        path = self.shards[number].path
        samples, problem = samples_of(path)
        if problem:
            self._damaged[str(path), ""] = problem
        return samples


def captions_in(annotation: Annotation, languages: Sequence[str]) -> dict[str, Sequence[str]]:
    """The captions of a sample in each language; "mul" has all, and the first language those that name none.

    >>> captions_in(Annotation({"eng": ["a dog"], "fra": ["un chien"]}, {}), ("mul", "deu"))
    {'mul': ['a dog', 'un chien'], 'deu': ()}
    """
    known = annotation.captions
    captions: dict[str, Sequence[str]] = {name: known.get(name, ()) for name in languages}
    if SEVERAL in captions and SEVERAL not in known:
        captions[SEVERAL] = [text for texts in known.values() for text in texts]
    captions[languages[0]] = captions[languages[0]] or known.get("", ())
    return captions
