"""Operators with an index, such as gather and embedding, and their kernels."""

from dataclasses import replace

from gpulab.virtual.operators._argument_checks import check_scatter_reduce
from gpulab.virtual.operators._elementwise import elementwise
from gpulab.virtual.operators._host_reads import (
    HostRead,
    When,
    check_number,
    has_mask,
    on_device,
)
from gpulab.virtual.operators._index_coordinates import surface_of_index, surface_of_index_put
from gpulab.virtual.operators._index_ranges import (
    along_dimension,
    of_each_dimension,
    of_gradient_rows,
    of_rows,
)
from gpulab.virtual.operators._model import Alert, Autocast, Models, OperatorModel
from gpulab.virtual.operators._operator_call import Lowering, OperatorCall, n_indexed
from gpulab.virtual.simulator.costs import KernelWork

_MAX = 2  # the mode of an embedding bag


def _indexed_rows(family: str) -> Lowering:
    """Return a lowering for reads from a table: it touches only the rows that are asked for."""

    def lower(call: OperatorCall) -> KernelWork:
        touched = [item.size_bytes for item in call.writes]
        touched += [item.size_bytes for item in call.reads if not item.dtype.is_floating_point]
        return call.work(family, most_bytes=max(touched, default=0))

    return lower


def _index_write(call: OperatorCall) -> KernelWork:
    """Return the work of writes to a table: it touches only the elements at the index."""
    n = n_indexed(call)
    width = max(item.dtype.itemsize for item in call.reads)
    return call.work("atomic add", n_elements=n, most_bytes=max(1, n * width))


def _added(call: OperatorCall) -> KernelWork:
    return call.work("atomic add", n_elements=call.n_in)


_INDEX = OperatorModel(
    lowering=_indexed_rows("gather"), surface=surface_of_index, index_ranges=of_each_dimension
)
_WRITE = OperatorModel(lowering=_index_write, surface="index write")
_SCATTER = OperatorModel(lowering=_index_write, surface="scatter", index_ranges=along_dimension)
# To find out whether the index is right takes about as long as to compute the values.
_PUT = replace(_WRITE, may_find_wrong_values=True)
_INDEX_PUT = replace(
    _PUT,
    surface=surface_of_index_put,
    may_write_twice=True,
    takes_host_indices=True,
    host_numbers=("values",),
)
_BAG = OperatorModel(is_wrong_on_meta=True, may_find_wrong_values=True)
_MAX_IN_BAG = Alert("embedding_bag_backward_cuda_max", lambda call: call("mode") == _MAX)
_SPARSE_GRADIENTS = (
    "sparse gradients, as of nn.Embedding(sparse=True)",
    "use sparse=False (in gather sparse_grad=False), which gives dense gradients",
)
MODELS: Models = {
    # Reads
    "index": replace(
        _INDEX,
        host_reads=(HostRead(When.FOR_SIZE, has_mask),),
        takes_host_indices=True,
    ),
    "_unsafe_index": _INDEX,
    "take": replace(_INDEX, index_ranges=None, may_find_wrong_values=True),
    "gather": OperatorModel(
        lowering=_indexed_rows("gather"), surface="gather", index_ranges=along_dimension
    ),
    "index_select": OperatorModel(
        lowering=_indexed_rows("rows"),
        surface="index_select",
        index_ranges=along_dimension,
    ),
    # Writes
    "index_add index_copy": replace(_WRITE, index_ranges=along_dimension),
    "index_fill": replace(
        _WRITE,
        may_write_twice=True,
        host_numbers=("value",),
        index_ranges=along_dimension,
        host_reads=(HostRead(When.BEFORE, on_device("value"), check=check_number),),
    ),
    "index_reduce": OperatorModel(index_ranges=along_dimension, nondeterministic=Alert("{}_cuda")),
    "index_put": replace(_INDEX_PUT, autocast=Autocast.WIDEST),
    "_index_put_impl": _INDEX_PUT,
    "_unsafe_index_put": replace(_PUT, lowering=elementwise, host_numbers=("values",)),
    "put": replace(_PUT, nondeterministic=Alert("put_")),
    "scatter": replace(
        _SCATTER,
        nondeterministic=Alert(
            "scatter_reduce_cuda_kernel", lambda call: call("reduce") == "multiply"
        ),
    ),
    "scatter_add": replace(_SCATTER, autocast=Autocast.WIDEST),
    "scatter_reduce": replace(
        _SCATTER,
        checks=(check_scatter_reduce,),
        nondeterministic=Alert("scatter_reduce_cuda_prod_", lambda call: call("reduce") == "prod"),
    ),
    # Embeddings
    "embedding": OperatorModel(
        lowering=_indexed_rows("rows"), surface="embedding", index_ranges=of_rows
    ),
    "embedding_dense_backward": OperatorModel(
        lowering=_added,
        surface="embedding backward",
        index_ranges=of_gradient_rows,
    ),
    "embedding_renorm": OperatorModel(may_find_wrong_values=True),
    "_embedding_bag _embedding_bag_forward_only": _BAG,
    "_embedding_bag_dense_backward": OperatorModel(nondeterministic=_MAX_IN_BAG),
    "_embedding_bag_backward": OperatorModel(
        nondeterministic=_MAX_IN_BAG, refusal=_SPARSE_GRADIENTS
    ),
    "_sparse_coo_tensor_with_dims_and_tensors": OperatorModel(refusal=_SPARSE_GRADIENTS),
}
