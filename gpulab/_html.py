"""Text made safe for HTML and XML: no character of it is ever taken for markup."""

import re
from html import escape
from typing import Protocol

# Characters that XML 1.0 has no way to write, not even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Return ``text`` escaped for an element or a quoted attribute.

    >>> clean('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


class PrettyPrinter(Protocol):
    """What a record uses of IPython's printer, which has no types of its own."""

    def text(self, text: str) -> None:
        """Print this text."""
