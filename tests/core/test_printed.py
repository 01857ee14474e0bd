"""What an interpreter shows of a record is its text: in a terminal, in IPython, in a script."""

import pytest
from IPython.lib.pretty import pretty

from tests.support.right_values import RECORD_NAMES, record


@pytest.mark.parametrize("name", RECORD_NAMES)
def test_a_record_with_a_text_shows_it(name: str) -> None:
    """A record that prints a text shows it, and no dump of its fields, wherever it is shown."""
    shown = record(name)
    if "__str__" in vars(type(shown)):
        for text in (repr(shown), pretty(shown)):
            assert not text.startswith(f"{type(shown).__qualname__}(")
            assert str(shown).partition("\n")[0] in text
