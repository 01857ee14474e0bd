"""Keep streams and events valid after their virtual GPU exits, with errors that name the cause.

Builds of torch without CUDA have empty base classes for ``torch.cuda.Stream`` and ``Event``. While
a virtual GPU is entered, our classes replace these bases. A program may use its streams and events
after the end of the context, when torch's classes have their empty bases again. So these objects
get a class that has our base for good, and its methods name the cause.
"""

# The classes of torch whose bases are replaced while a virtual GPU is entered.
_borrowed: set[type] = set()
_lasting_classes: dict[type, type] = {}


def borrow(original: type) -> None:
    """Note that the base of a class of torch is replaced while a virtual GPU is entered."""
    _borrowed.add(original)


def lasting_class(cls: type, base: type, checks: type = object) -> type:
    """Return the class for the objects of ``cls``: one that has ``base`` also after the context.

    ``base`` is the base class while a virtual GPU is entered. Methods of ``checks`` run before
    those of ``cls``.
    """
    if cls not in _lasting_classes:
        # ``cls`` comes before ``base``, as it would by inheritance.
        bases = (cls, base) if checks is object else (checks, cls, base)
        is_borrowed = not _borrowed.isdisjoint(cls.__mro__)
        lasting = type(cls.__name__, bases, {"__module__": cls.__module__}) if is_borrowed else cls
        _lasting_classes[cls] = lasting
    return _lasting_classes[cls]
