"""Gradient caching: the texts of a batch in many languages, or thousands of clips, at the memory of a few.

A contrastive loss needs the embeddings of all texts and clips at once, but not the activations that led to them. So:

1. Forward: the batch's unique texts are encoded chunk by chunk, and only the embeddings stay (torch's `checkpoint`).
   The last chunk, of the longest texts, keeps its activations: this is the memory that one language needs as well.
2. The loss is computed on them as always; autograd brings dL/d(embeddings) back.
3. Backward: the last chunk's rows of dL/d(embeddings) go on to the weights, and its activations are gone. Then each
   other chunk is encoded once more from the same random state, and does the same.

Value and gradient are those of the plain loss up to rounding (with dropout: for one draw of it); the price is a second
forward pass of the texts outside the last chunk: the larger the chunks, the fewer. Clips go the same way, in the order
of the batch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pullpush.data.batches import Batch
from pullpush.errors import TrainingError

Part = tuple[Any, Any]  # texts and their languages, or clips and their lengths
PACKED = -1  # in place of a size: all texts of a batch with one graph, those of like length padded together


def chunk_size(model: nn.Module, wanted: int | None, *, sampling: str, clips: int) -> int | None:
    """Texts encoded at once; None: the whole batch, with one graph.

    Args:
        model: its text encoder is `model.text`; a model without one counts as a text encoder as a whole.
        wanted: `Recipe.text_chunk`: a number, 0 for None, PACKED for as many as clips, or None to let this function
            decide.
        sampling: chunks are the default where each clip brings "all" languages and the text encoder is trained.
        clips: of a batch in this process; the default chunk, so that texts need no more than with one language.
    """
    if wanted is not None:
        return clips if wanted == PACKED else wanted or None
    trained = any(parameter.requires_grad for parameter in getattr(model, "text", model).parameters())
    return clips if sampling == "all" and trained else None


def embed_unique(model: nn.Module, batch: Batch, chunk: int | None, *, cached: bool = True) -> tuple[Tensor, ...]:
    """The batch's main and parallel texts, each distinct text of a language encoded once.

    Args:
        model: has `encode_text(texts, languages)`.
        batch: some texts may be missing (None or blank).
        chunk: of the longest texts encoded at once; of shorter ones as many as take no more room. None: all.
        cached: whether one chunk's activations are all that exist at any time, as in `in_chunks`; else all stay.

    Returns:
        1 + K tensors `(N, d)`; rows of missing texts are zero.
    """
    columns = list(zip((batch.texts, *batch.parallel), (batch.languages, *batch.parallel_languages), strict=True))
    present = batch.present
    pairs = {
        pair: None
        for (texts, languages), flags in zip(columns, present, strict=True)
        for pair, is_present in zip(zip(texts, languages, strict=True), flags, strict=True)
        if is_present
    }
    # Where none is there, one stands in: the encoder must stay in the graph of processes that wait for each other.
    # pyrefly: ignore[missing-attribute]
    pairs = sorted(pairs, key=_size) or [("-", batch.languages[0])]
    rows_of_parts = _alike([_size(pair) for pair in pairs], chunk)
    # pyrefly: ignore[bad-assignment]
    parts: list[Part] = [tuple(map(list, zip(*pairs[rows], strict=True))) for rows in rows_of_parts]
    table = _in_parts(model.encode_text, parts, cached=cached)  # pyrefly: ignore[bad-argument-type]
    row = {pair: number for number, pair in enumerate(pairs)}
    nothing = len(pairs)  # the row of zeros
    table = torch.cat([table, table.new_zeros(1, table.shape[1])])
    return tuple(
        table[torch.tensor([row.get(pair, nothing) for pair in zip(*column, strict=True)], device=table.device)]
        for column in columns
    )


def in_chunks(encode: Callable[..., Tensor], rows: Any, more: Any, chunk: int | None) -> Tensor:
    """Embeddings `(M, d)` of M texts or clips, encoded `chunk` at a time, with one chunk's activations at any time.

    The last chunk's stay for the backward pass, the others' are made anew in it: put long texts last.

    Args:
        encode: `encode_text` or `encode_audio` of a model.
        rows, more: texts and their languages; or clips `(M, T)`, which keep the padding of the batch, so that they
            round as it does, and their lengths.
        chunk: None, 0 or at least M: all at once, with the usual graph.

    Raises:
        TrainingError: the encoder changes its buffers as it encodes, as batch normalisation does: its result depends on
            which come together, so that no chunks can give the plain loss.
        TypeError: a function that is no method of a model.
    """
    if not chunk:
        return encode(rows, more)
    return _in_parts(encode, [(rows[part], more[part]) for part in _chunks(len(rows), chunk)])


def _size(pair: tuple[Any, str]) -> int:
    """Bytes of a text, which its tokens grow with."""
    return len(pair[0].encode("utf-8", "surrogatepass"))


def _alike(lengths: Sequence[int], most: int | None) -> list[slice]:
    """Of ascending lengths rows that are padded together: `most` of the longest, of shorter ones as take no more room.

    >>> _alike([1, 1, 2, 2, 4, 4], 2)
    [slice(0, 4, None), slice(4, 6, None)]
    """
    stop, found = len(lengths), list[slice]()
    room = (most or stop) * lengths[-1]
    while stop:
        found.append(slice(max(0, stop - room // lengths[stop - 1]), stop))
        stop = found[-1].start
    return found[::-1]


def _chunks(count: int, step: int) -> list[slice]:
    """Rows of each chunk. A remainder comes first, so that the last one, which is not encoded twice, is full."""
    return [slice(max(start, 0), start + step) for start in range(count - step, -step, -step)[::-1]]


def _in_parts(encode: Callable[..., Tensor], parts: Sequence[Part], *, cached: bool = True) -> Tensor:
    """Embeddings of all parts, of which, if `cached`, only the last keeps its activations."""
    if len(parts) == 1:
        return encode(*parts[0])
    if not hasattr(encode, "__self__"):  # whose buffers and random state are watched
        raise TypeError(f"in chunks encodes a method of a model, such as model.encode_text, got {encode!r}")
    # pyrefly: ignore[missing-attribute]
    model, kind = encode.__self__, encode.__name__.removeprefix("encode_")
    before = [buffer._version for buffer in model.buffers()]
    place = next(model.parameters(), None)  # texts are no tensors, and say of no device whose random state to keep

    def apart(_: Tensor | None, *part: Any) -> Tensor:
        torch.clear_autocast_cache()  # else gradients of all chunks add up in one weight cast to bfloat16, and as such
        return encode(*part)

    first = [
        checkpoint(apart, place, *part, use_reentrant=False) if cached else apart(place, *part) for part in parts[:-1]
    ]
    table = torch.cat([*first, apart(place, *parts[-1])])
    if before != [buffer._version for buffer in model.buffers()]:
        raise TrainingError(
            f"the {kind} encoder changes its buffers while it encodes (batch normalisation?), so that chunks "
            f"would not give the same loss: set {kind}_chunk=0 to encode each batch at once"
        )
    return table
