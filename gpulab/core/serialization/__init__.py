"""Save frozen records as JSON under the name of a schema, and check every field when reading."""

from gpulab.core.serialization._json import parse_json, parse_object
from gpulab.core.serialization._records import Saved
from gpulab.core.serialization._text import as_text, read_bytes, read_text

__all__ = ["Saved", "as_text", "parse_json", "parse_object", "read_bytes", "read_text"]
