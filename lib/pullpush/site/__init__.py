"""The site: chapters are run, swept, kept and published, by the command `pullpush`."""

import sys

from pullpush.extras import need

EXTRA = need("book", "pullpush.site")
# jsonschema, of nbformat, would take a second to build a grammar for addresses, which no notebook has checked.
sys.modules.setdefault("rfc3987_syntax", None)  # pyrefly: ignore
