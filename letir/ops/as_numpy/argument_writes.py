"""NumPy source of writes to arguments, guards of memory order, and complex numbers from parts."""

from typing import Any

_COMPLEX_OF = '''
def complex_of(re, im):
    """Both parts to the bit, which re + 1j * im would not keep."""
    is_array = isinstance(re, np.ndarray) or isinstance(im, np.ndarray)
    re, im = np.broadcast_arrays(re, im)
    out = np.empty_like(re, dtype=np.result_type(re, im, np.complex64))
    out.real, out.imag = re, im
    return out if is_array else out[()]
'''


def complex_of(write: Any, re: str, im: str) -> str:
    """A call of a helper function that fills both parts."""
    return f"{write.helper(_COMPLEX_OF)}({re}, {im})"


def write_back(write: Any, x: str, new: str) -> None:
    """An assignment into the caller's array; a NumPy scalar is replaced instead."""
    if write.type(0) and write.type(0).shape:
        write.line(f"{x}[...] = {new}")
        write.line(f"{write.result()} = {x}")
        return
    with write.block(f"if isinstance({x}, np.ndarray):"):
        write.line(f"{x}[...] = {new}")
    write.line(f"{write.result()} = {x} if isinstance({x}, np.ndarray) else {new}")


def guard_order(write: Any, x: str, *, order: Any) -> None:
    """A statement that raises for an array in another memory order."""
    if type(order) is tuple:
        wrong = f"{x}.strides != {order!r}"
    else:
        wrong = f"not {x}.flags.{order.lower()}_contiguous"
    with write.block(f"if {wrong}:"):
        write.line(f"raise ValueError('{write.place}recorded for memory order {order}')")
