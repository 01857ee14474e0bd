"""Count the elements that a call writes at the places of an index."""

from gpulab.virtual.kernels._operator_call import OperatorCall


def n_indexed(call: OperatorCall) -> int:
    """Return how many elements of its first tensor a call writes by an index."""
    table, *others = call.reads
    if call.name == "index_fill" and table.sizes:
        places = max(item.n_elements for item in others)
        along = int(table.sizes[call.args[1]])
        return places * (table.n_elements // max(1, along))
    return max((item.n_elements for item in others), default=table.n_elements)
