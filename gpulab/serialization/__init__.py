"""Save frozen records as JSON under the name of a schema, and check every field when reading."""

from gpulab.serialization._json import parse_json
from gpulab.serialization._records import Saved
from gpulab.serialization._text import GZIP_MAGIC, as_text, read_bytes, read_text

__all__ = ["GZIP_MAGIC", "Saved", "as_text", "parse_json", "read_bytes", "read_text"]
