"""Text encoders that are not trained: features that are looked up, of hashed letters or behind dropout.

Features are kept in memory and on disk, so that no text is encoded twice. Python's own sqlite holds them: diskcache,
tried with 5,000 texts of 512 and of 4,608 numbers, took as much room, twice the time to read, and would save a dozen
lines. They are float16: of 2,000 captions' states of MiniLM's lower layers, 12.6 kB each, the file is 1.07 times what
its numbers are, and zlib would save 6 to 13 % of it.
"""

import sqlite3
import threading
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor, nn

from pullpush.encoders.interface import TEXT, TextEncoder, TextEncoderCard
from pullpush.errors import CacheError, unknown

BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")  # the last where it has no table of features
CHUNK = 512  # texts between two commits: what a killed run can lose
Encode = Callable[[list[str]], Sequence[np.ndarray] | np.ndarray]


class FeatureStore:
    """Remembers one feature vector a text, or several: one a token.

    Features are rounded to float16 before anything else sees them (relative error under 2⁻¹⁰), so a text has the same
    features whether they were computed just now or read back. Threads and processes may share one file: each chunk of
    unseen texts is encoded under a lock after another look at the file.

    Which texts meet in a call of `encode`, texts → `(N, dim)` array, or with `ragged` N arrays `(tokens, dim)`, depends
    on what was seen before, so it must give a text features that do not depend on the others; then neither do those of
    the store. Features that are not finite are refused. path: SQLite file, made when the first text is encoded; None
    keeps features in memory only.

    >>> store = FeatureStore(lambda texts: np.array([[len(text)] for text in texts]), dim=1)
    >>> store(["ab", "c"]).tolist()
    [[2.0], [1.0]]
    """

    def __init__(self, encode: Encode, dim: int, path: Path | None = None, *, ragged: bool = False) -> None:
        self.dim, self.path, self.ragged = dim, path and path.absolute(), ragged
        self._encode = encode
        self._memory: dict[str, np.ndarray] = {}
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Features of the texts, `(N, dim)` float32.

        Raises:
            CacheError: the file cannot be read or written; the message says what to do.
        """
        self.add(texts)
        return np.concatenate([self._memory[text] for text in texts]).reshape(-1, self.dim).astype(np.float32)

    def rows(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The vectors of each text, `(tokens, dim)` float32; one row where the store is not ragged."""
        self.add(texts)
        return [self._memory[text].reshape(-1, self.dim).astype(np.float32) for text in texts]

    def __deepcopy__(self, memo: dict[int, object]) -> "FeatureStore":
        return self  # copies of a model look the same texts up

    def add(self, texts: Sequence[str]) -> None:
        """Make sure that the features of all texts are in memory; encode those that nobody has seen."""
        unseen = self._unseen(texts)
        if not unseen:
            return
        with self._lock:  # one thread at a time looks up and encodes; the others then find the texts in memory
            self._read(self._unseen(unseen))
            unseen = self._unseen(unseen)
            for start in range(0, len(unseen), CHUNK):
                self._encode_chunk(unseen[start : start + CHUNK])

    def _unseen(self, texts: Sequence[str]) -> list[str]:
        return [text for text in dict.fromkeys(texts) if text not in self._memory]

    def _encode_chunk(self, texts: list[str]) -> None:
        if self.path is None:
            self._memory.update(self._compute(texts))
            return
        with _actionable(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{self.path}.lock"):
                self._read(texts)  # another process may have been here
                new = self._compute(self._unseen(texts))
                self._write(new)
        self._memory.update(new)

    def _compute(self, texts: list[str]) -> dict[str, np.ndarray]:
        if not texts:
            return {}
        features = [np.asarray(vectors) for vectors in self._encode(texts)]
        shapes = {vectors.shape for vectors in features}
        fit = all(shape[-1:] == (self.dim,) and len(shape) == 1 + self.ragged and 0 not in shape for shape in shapes)
        if len(features) != len(texts) or not fit:
            wanted = f"(tokens, {self.dim})" if self.ragged else f"({self.dim},)"
            raise ValueError(
                f"encoder gave {len(features)} arrays {', '.join(map(str, sorted(shapes)))} for {len(texts)} texts, "
                f"expected one {wanted} a text"
            )
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            features = [vectors.astype(np.float16).ravel() for vectors in features]
        wrong = np.array([not np.isfinite(vectors).all() for vectors in features])
        if wrong.any():
            first = texts[int(wrong.argmax())]
            raise ValueError(
                f"encoder gave features for {wrong.sum()} of {len(texts)} texts that are not finite in half precision "
                f"(NaN, or beyond 65504); the first is {first[:80]!r}. Nothing of them is kept."
            )
        return dict(zip(texts, features, strict=True))

    def _read(self, texts: list[str]) -> None:
        """Take what the file has into memory."""
        if self.path is None or not texts or not self.path.exists():
            return
        with _actionable(self.path), closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as base:
            for text in texts:
                for (blob,) in base.execute("SELECT feature FROM features WHERE text = ?", (text,)):
                    size = len(blob) - 5 * (len(blob) % 2)  # earlier versions wrote no checksum behind it
                    vector = np.frombuffer(blob[:size], dtype="<f2")
                    right = blob[size:] in (b"", _sum(blob[:size]))
                    if right and self._fits(vector) and np.isfinite(vector).all():  # else: encode it again
                        self._memory[text] = vector

    def _fits(self, vector: np.ndarray) -> bool:
        return vector.size % self.dim == 0 and vector.size > 0 if self.ragged else vector.size == self.dim

    def _write(self, features: dict[str, np.ndarray]) -> None:
        blobs = {text: vector.astype("<f2").tobytes() for text, vector in features.items()}
        rows = [(text, blob + _sum(blob)) for text, blob in blobs.items()]
        # Called where there is a path.
        with closing(sqlite3.connect(self.path, timeout=60)) as base, base:  # pyrefly: ignore[no-matching-overload]
            base.execute(f"PRAGMA page_size = {4096 if self.ragged else 8192}")  # a seventh less of vectors of 1 kB
            base.execute("CREATE TABLE IF NOT EXISTS features (text TEXT PRIMARY KEY, feature BLOB)")
            base.executemany("INSERT OR REPLACE INTO features VALUES (?, ?)", rows)


def _sum(blob: bytes) -> bytes:
    return zlib.crc32(blob).to_bytes(5)  # an odd number, unlike halves


@contextmanager
def _actionable(path: Path) -> Iterator[None]:
    """Turn failures of the disk into errors that say what to do."""
    try:
        yield
    except CacheError:
        raise
    except (OSError, sqlite3.DatabaseError) as error:
        if getattr(error, "sqlite_errorname", "") in BROKEN or path.is_dir():
            raise CacheError(
                f"the text features in {path} are damaged ({error}): delete that file and run again."
            ) from error
        raise CacheError(
            f"cannot use the text features in {path}: {error}. Free some space, or set PULLPUSH_HOME to a folder that "
            "is writable."
        ) from error


class FrozenText(TextEncoder):
    """Looks features up in a store; nothing here is trained or saved in a checkpoint."""

    def __init__(self, store: FeatureStore) -> None:
        super().__init__()
        self.store, self.dim = store, store.dim
        self.register_buffer("place", torch.empty(0), persistent=False)  # knows the module's device and dtype

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        return torch.from_numpy(self.store(texts)).to(self.place)

    def precompute(self, texts: Sequence[str]) -> None:
        """Encode the texts that were never seen, so that training only looks up."""
        self.store.add(texts)


class HashedNGrams(FrozenText):
    """Hashed character n-grams: frozen, nothing to download, the same on every machine.

    It knows no meaning, only spelling: two captions are near when they share letters. Enough to see that the machinery
    runs, and a floor for every other text encoder. orders: lengths of the n-grams.
    """

    def __init__(self, *, features: int = 512, orders: Sequence[int] = (1, 2, 3, 4)) -> None:
        super().__init__(_hashed_store(features, tuple(orders)))


@cache
def _hashed_store(features: int, orders: tuple[int, ...]) -> FeatureStore:
    return FeatureStore(lambda texts: hash_ngrams(texts, features, orders), features)


def hash_ngrams(texts: Sequence[str], features: int, orders: Sequence[int]) -> np.ndarray:
    """Signed counts of character n-grams, square-rooted and L2-normalised: `(N, features)` float32.

    The text is NFKC-normalised, case-folded and put between spaces, so that n-grams see where words begin.

    >>> hash_ngrams(["aha"], 4, (1,)).round(2)
    array([[0.  , 0.63, 0.63, 0.45]], dtype=float32)
    """
    counts = np.zeros((len(texts), features), dtype=np.float32)
    for row, text in zip(counts, texts, strict=True):
        text = f" {unicodedata.normalize('NFKC', text).casefold()} "
        for order in orders:
            for start in range(len(text) - order + 1):
                # CRC-32, not hash(): Python salts hash() anew in each process.
                code = zlib.crc32(text[start : start + order].encode("utf-8", "surrogatepass"))
                row[(code >> 1) % features] += 1.0 if code & 1 else -1.0
    counts = np.sign(counts) * np.sqrt(np.abs(counts))
    return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-12)


class DropoutText(TextEncoder):
    """The features of a frozen text encoder, `rate` of them set to zero while a model is trained (0.1 in SimCSE).

    SimCSE needs two views of a text. An encoder whose features are looked up gives one; behind dropout they are two,
    and what learns to bear the difference is the projection that follows. Within an encoder that is trained itself,
    dropout falls on every layer, and every layer learns.

    Raises:
        UnknownNameError: no such encoder, or one that is not frozen; those that are are named.
    """

    def __init__(self, *, of: str = "use", rate: float = 0.1) -> None:
        super().__init__()
        if not TEXT[of].frozen:
            raise unknown("frozen text encoder", of, (card.name for card in TEXT.values() if card.frozen))
        self.features = TEXT[of].make()
        self.dim = self.features.dim
        self.dropout = nn.Dropout(rate)

    def forward(self, texts: Sequence[str], languages: Sequence[str] | None = None) -> Tensor:
        return self.dropout(self.features(texts, languages))

    def precompute(self, texts: Sequence[str]) -> None:
        self.features.precompute(texts)


CARDS = (
    TextEncoderCard(
        name="hashed",
        make=HashedNGrams,
        title="hashed n-grams",
        about="Signed counts of hashed character n-grams: spelling without meaning, the floor of all others.",
        source="ours; after Weinberger et al. 2009, feature hashing",
        licence="MIT",
        frozen=True,
        probe=lambda: {"features": 32},
    ),
    TextEncoderCard(
        name="dropout",
        make=DropoutText,
        title="frozen features behind dropout",
        about="Another frozen text encoder, some of whose features are left out while a model is trained, as SimCSE "
        "asks.",
        source="ours; after SimCSE",
        licence="that of the encoder",
        weights="those of the encoder",
        languages="those of the encoder",
        probe=lambda: {"of": "hashed"},
    ),
)
