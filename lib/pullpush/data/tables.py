"""Real datasets on disk: a folder of recordings and a CSV of captions, in the layout of Clotho and AudioCaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pullpush.data.audio import SAMPLE_RATE, load_audio
from pullpush.errors import DataNotFoundError, PullPushError, unknown


def read_captions(path: str | Path, *, split: str | None = None) -> dict[str, list[str]]:
    """Captions of each recording: file name → captions, in the order of the file.

    The CSV has a column `file_name` and either `caption` (one row per caption; rows of one file are gathered) or
    `caption_1`, `caption_2`, …; empty cells are left out. Where it has a column `split`, `split` selects rows.

    Raises:
        DataNotFoundError: there is no such file.
        PullPushError: it is not such a table, or a recording has no caption.
        UnknownNameError: no row has this `split`.
    """
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"no caption table at {path}")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise PullPushError(f"{path} is not a CSV table in UTF-8: {error}") from error
    columns = [name for name in table.columns if name == "caption" or name.startswith("caption_")]
    if "file_name" not in table.columns or not columns:
        raise PullPushError(
            f"{path} needs the columns file_name and caption (or caption_1, caption_2, …), got {list(table.columns)}"
        )
    if split is not None:
        known = set(table["split"]) if "split" in table.columns else set()
        if split not in known:
            raise unknown(f"split in {path.name}", split, known)
        table = table[table["split"] == split]
    return _gather(table, columns, path)


def _gather(table: pd.DataFrame, columns: Sequence[str], path: Path) -> dict[str, list[str]]:
    """File name → captions, from rows with one or several captions."""
    captions: dict[str, list[str]] = {}
    for name, *texts in table[["file_name", *columns]].itertuples(index=False):
        captions.setdefault(name, []).extend(text.strip() for text in texts if text.strip())
    empty = [name for name, texts in captions.items() if not texts]
    if empty:
        raise PullPushError(f"{path} has no caption for {', '.join(empty[:5])} ({len(empty)} in all)")
    return captions


class FolderCaptions:
    """Recordings in a folder with their captions in one language; offers what PairDataset needs.

    Args:
        folder: holds the recordings, of any sample rate and number of channels.
        table: CSV of captions (see `read_captions`).
        split: rows of the table to use, where it has a column `split`.
        language: ISO 639-3 code of the captions.
        seconds: longer recordings are cut to this, as CLAP models do; None keeps all.

    Raises:
        DataNotFoundError: the table, or recordings that it names, are missing.
    """

    def __init__(
        self,
        folder: str | Path,
        table: str | Path,
        *,
        split: str | None = None,
        language: str = "eng",
        seconds: float | None = 10.0,
    ) -> None:
        captions = read_captions(table, split=split)
        self.language, self.seconds, self.name = language, seconds, split or Path(table).stem
        self.paths = [Path(folder) / name for name in captions]
        self._captions = list(captions.values())
        missing = [path.name for path in self.paths if not path.is_file()]
        if missing:
            raise DataNotFoundError(
                f"{len(missing)} of {len(self.paths)} recordings of {table} are not in {folder}: "
                f"{', '.join(missing[:5])}; put them there, or remove their rows"
            )

    def __len__(self) -> int:
        return len(self.paths)

    def audio(self, index: int | Sequence[int] | Tensor | slice) -> tuple[Tensor, Tensor]:
        """Some clips `(B, T)` float32 mono at 16 kHz, padded with zeros, and their lengths `(B,)` int64.

        Raises:
            AudioError: a recording cannot be read; the message names it.
        """
        rows = torch.arange(len(self))[index].reshape(-1).tolist()
        most = None if self.seconds is None else round(self.seconds * SAMPLE_RATE)
        waves = [load_audio(self.paths[row])[:most] for row in rows]
        lengths = torch.tensor([len(wave) for wave in waves], dtype=torch.int64)
        return (pad_sequence(waves, batch_first=True) if waves else torch.zeros(0, 0)), lengths

    def captions(self, language: str) -> list[list[str]]:
        """Every recording's captions.

        Raises:
            UnknownNameError: the table is in another language.
        """
        if language != self.language:
            raise unknown("language of these captions", language, [self.language])
        return self._captions
