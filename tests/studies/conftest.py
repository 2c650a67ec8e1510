import sys
from pathlib import Path

# Tiny clips and models, which tests of losses and of training share.
TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("losses", "training")]
