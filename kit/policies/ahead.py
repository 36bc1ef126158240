"""Ask the processor for a record's cache line before it is needed (an LLVM prefetch; no effect on any figure)."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


def _fetch(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, given[0])
        stride = cgutils.unpack_tuple(builder, held.strides)[0]
        byte = cgutils.voidptr_t
        place = builder.gep(builder.bitcast(held.data, byte), [builder.mul(given[1], stride)])
        word = cgutils.int32_t
        kind = cgutils.ir.FunctionType(cgutils.ir.VoidType(), [byte, word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(call, [place, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


fetch: Any = intrinsic(_fetch)
"""`fetch(array, index)` starts to load `array[index]` (a row of a table); 0 <= index < its size."""
