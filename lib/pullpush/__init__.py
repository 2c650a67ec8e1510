"""Pull & Push: encoders, losses, forces, metrics and training loops for contrastive audio–text learning."""

from importlib.metadata import version

__version__ = version("pullpush")
