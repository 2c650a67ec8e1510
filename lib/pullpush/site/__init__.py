"""The site: chapters are run, swept, kept and published, by the command `pullpush`."""

from pullpush.extras import need

EXTRA = need("book", "pullpush.site")
