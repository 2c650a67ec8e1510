"""Shown: the palette, marks and tables that figures are made of, sounds and interactive pages."""

from pullpush.extras import need

EXTRA = need("book", "pullpush.show")
