"""Objects of torch's classes that name the cause when they are used outside of their context.

Builds of torch without CUDA have empty classes below ``torch.cuda.Stream`` and its like. Ours take
their place while a virtual GPU is entered. Objects that were made then go on being used.
"""

_borrowed: set[type] = set()
_lasting: dict[type, type] = {}


def borrow(original: type) -> None:
    """Note that a class of torch gets a base of ours for a while."""
    _borrowed.add(original)


def lasting_class(cls: type, base: type, checks: type = object) -> type:
    """Return the class of the objects that ``cls`` makes: one that keeps ``base`` for good.

    Parameters
    ----------
    cls
        A class of torch, or one derived from it.
    base
        What stands below it while a virtual GPU is entered.
    checks
        What is asked before the methods of ``cls``.
    """
    if cls not in _lasting:
        bases = (cls, base) if checks is object else (checks, cls, base)
        is_borrowed = not _borrowed.isdisjoint(cls.__mro__)
        made = type(cls.__name__, bases, {"__module__": cls.__module__}) if is_borrowed else cls
        _lasting[cls] = made
    return _lasting[cls]
