"""Models whose code is the publisher's: fetched and run only where the reader asks for it, at one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pullpush.encoders.huggingface import from_hub, pinned
from pullpush.errors import PullPushError


def remote_model(model: str, *, trust_remote_code: bool) -> Any:
    """A model on the hub, or in a folder, by the code that lies beside its weights.

    Args:
        model: a folder, or "owner/name@commit"; without a commit the code could change from one run to the next.
        trust_remote_code: whether the reader has read that code and wants it to run.

    Raises:
        PullPushError: the reader has not asked for it, or names no commit.
        DataNotFoundError: the model is not to be had.
    """
    import transformers

    name, commit = pinned(model)
    if not trust_remote_code:
        raise PullPushError(
            f"{name} comes with code of its publisher's, which would run on this machine: read it, and if you trust "
            "it, ask for it by trust_remote_code=True (--trust-remote-code on the command line)"
        )
    if not commit and not Path(model).exists():
        raise PullPushError(
            f"code of {name} is run at one commit alone: name the one that you have read, {name}@COMMIT"
        )
    return from_hub(transformers.AutoModel, model, trust_remote_code=True)
