"""The lab: sessions, experiments declared once, claims and their verdicts, and where results come from."""

from pullpush.extras import need

EXTRA = need("book", "pullpush.lab")
