"""Old names, until the chapters have the new ones."""

from pullpush.show.galleries import scenes, translations  # noqa: F401
from pullpush.show.search import retrieve as search  # noqa: F401
from pullpush.show.tables import gains  # noqa: F401
from pullpush.show.tables import styled as table  # noqa: F401
