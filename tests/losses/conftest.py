import sys
from pathlib import Path

# What these tests share with each other, with those of training, and with the processes that they start.
FOLDER = Path(__file__).parent
sys.path[:0] = [str(folder) for folder in (FOLDER, FOLDER.parent / "training", FOLDER.parent)]

from toys import add  # noqa: E402, F401 - a fixture
