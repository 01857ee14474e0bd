"""A stand-in for the package of this name, which compiles 38 grammars when it is imported.

jsonschema imports it where it can, and no program of the tests needs it. Programs find this file
first if the folder is at the front of their ``PYTHONPATH``.
"""

raise ImportError("the tests leave rfc3987_syntax out, because it takes long to import")
