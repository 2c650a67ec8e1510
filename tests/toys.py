"""Files that a reader adds: `add("losses/mine.py", text)` puts one where the catalogues look, for one test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from pullpush.catalogue import EXTRA, modules

Add = Callable[[str, str], Path]
DISTANCE = '''
    """Mean squared distance of the pairs."""
    from pullpush.losses import Loss, LossCard, Output


    class Distance(Loss):
        def __init__(self, scale: float = 1.0):
            super().__init__()
            self.scale = scale

        def forward(self, audio, text):
            return Output(self.scale * (audio - text).square().sum(dim=1).mean())


    CARD = LossCard(name="distance", make=Distance, title="Distance", about="Squared distance.", colour="sky")
'''
LOUDNESS = '''
    """Loudness of a clip."""

    from torch import nn

    from pullpush.encoders import AudioEncoder, AudioEncoderCard


    class Loudness(AudioEncoder):
        def __init__(self, *, size: int = 4) -> None:
            super().__init__()
            self.dim = size
            self.layer = nn.Linear(1, size)
            self.dropout = nn.Dropout(0.5)

        def forward(self, audio, lengths):
            return self.dropout(self.layer((audio.square().sum(1) / lengths).sqrt()[:, None]))


    CARD = AudioEncoderCard(name="loudness", make=Loudness, title="Loudness", about="How loud it is.", licence="MIT")
'''


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Add]:
    """Write a file below `$PULLPUSH_EXTRA`; when the test is over, none of it is left."""
    root = tmp_path / "extra"
    monkeypatch.setenv(EXTRA, str(root))
    packages: set[str] = set()

    def write(path: str, text: str) -> Path:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
        packages.add("pullpush." + Path(path).parent.as_posix().replace("/", "."))
        return file

    yield write
    monkeypatch.delenv(EXTRA)
    for package in packages:
        modules(package)  # forgets what the variable names no longer
