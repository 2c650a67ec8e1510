"""Pull & Push: encoders, losses, forces, metrics and training loops for contrastive audio–text learning.

`import pullpush` alone imports nothing more; `pullpush.losses` does when it is first used.
"""

from importlib import import_module
from importlib.metadata import version
from types import ModuleType

__version__ = version("pullpush")
__all__ = ["data", "encoders", "forces", "losses", "metrics", "training"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"pullpush.{name}")
    raise AttributeError(f"module 'pullpush' has no attribute {name!r}: it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
