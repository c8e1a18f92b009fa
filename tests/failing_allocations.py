"""A way to let NumPy's allocations fail, from one on."""

import ctypes
from contextlib import contextmanager
from functools import cache

from numpy._core._multiarray_umath import _ARRAY_API  # NumPy's functions for C extensions

from letir.kernels.llvm.machine_code import _llvm_binding, _new_machine


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``, see NEP 49."""

    _fields_ = [
        *(("name", ctypes.c_char * 127), ("version", ctypes.c_uint8)),
        *[(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")],
    ]


# NumPy calls it while exceptions are set, so it cannot be Python. Allocations of few bytes succeed:
# without them NumPy itself crashes, in ``np.float64(1)[()]``.
_ALLOCATOR = """
define private i1 @is_refused(ptr %counts, i64 %size) {{
  %large = icmp uge i64 %size, 256
  br i1 %large, label %counted, label %small
small:
  ret i1 false
counted:
  %before = atomicrmw add ptr %counts, i64 1 seq_cst
  %place = getelementptr i64, ptr %counts, i64 1
  %fails = load atomic i64, ptr %place seq_cst, align 8
  %found = icmp uge i64 %before, %fails
  ret i1 %found
}}
define ptr @malloc_or_fail(ptr %counts, i64 %size) {{
  %refused = call i1 @is_refused(ptr %counts, i64 %size)
  br i1 %refused, label %none, label %some
none:
  ret ptr null
some:
  %found = call ptr inttoptr (i64 {malloc} to ptr)(i64 %size)
  ret ptr %found
}}
define ptr @calloc_or_fail(ptr %counts, i64 %n, i64 %size) {{
  %bytes = mul i64 %n, %size
  %refused = call i1 @is_refused(ptr %counts, i64 %bytes)
  br i1 %refused, label %none, label %some
none:
  ret ptr null
some:
  %found = call ptr inttoptr (i64 {calloc} to ptr)(i64 %n, i64 %size)
  ret ptr %found
}}
define ptr @realloc_or_fail(ptr %counts, ptr %x, i64 %size) {{
  %found = call ptr inttoptr (i64 {realloc} to ptr)(ptr %x, i64 %size)
  ret ptr %found
}}
define void @free_always(ptr %counts, ptr %x, i64 %size) {{
  call void inttoptr (i64 {free} to ptr)(ptr %x)
  ret void
}}
"""


@cache
def failing_allocator() -> tuple:
    """(the engine of the code, a handler for NumPy, its two numbers), which live for ever.

    The numbers are the count of allocations and the number, from 0, of the first one that fails.
    """
    binding, libc = _llvm_binding(), ctypes.CDLL(None)
    names = ("malloc", "calloc", "realloc", "free")
    places = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value for name in names}
    module = binding.parse_assembly(_ALLOCATOR.format(**places))
    engine = binding.create_mcjit_compiler(module, _new_machine())
    engine.finalize_object()
    counts = (ctypes.c_int64 * 2)(0, -1)
    functions = [f"{name}_or_fail" for name in names[:3]] + ["free_always"]
    addresses = map(engine.get_function_address, functions)
    return engine, _Handler(b"failing", 1, ctypes.addressof(counts), *addresses), counts


@contextmanager
def allocations(fails: int):
    """Let NumPy's allocations fail from this number on. Gives a function that counts them."""
    _, handler, counts = failing_allocator()
    api = ctypes.pythonapi
    api.PyCapsule_New.restype, api.PyCapsule_GetPointer.restype = ctypes.py_object, ctypes.c_void_p
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(api.PyCapsule_GetPointer(_ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
    capsule = api.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)
    counts[0], counts[1] = 0, fails
    before = set_handler(capsule)
    try:
        yield lambda: counts[0]
    finally:
        counts[1] = -1
        set_handler(before)
