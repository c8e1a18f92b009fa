"""Which file of this folder says what a NumPy function gives: read by ``registry``.

Written by ``python docs/make_index.py``; a test fails if it is not up to date.
"""

FUNCTIONS = {  # module: names of NumPy's functions
    "elementwise_functions": """
        allclose arccos arcsin arctanh array_equal array_equiv fix iscomplex isneginf isposinf
        isreal log log10 log2 logn power real_if_close sqrt trim_zeros
    """,
    "join_split_rotate": """
        append atleast_1d atleast_2d atleast_3d block broadcast_arrays column_stack delete dsplit
        dstack fliplr flipud hsplit hstack insert matrix_transpose resize rollaxis rot90 unstack
        vsplit vstack
    """,
    "linalg_fft": """
        diagonal einsum_path fftshift hfft ifftshift ihfft matmul outer tensordot trace vecdot
    """,
    "polynomial_functions": "poly polyadd polyder polyfit polyint polymul polysub roots",
    "select_and_grid": """
        apply_along_axis apply_over_axes astype common_type diag diag_indices_from ix_
        may_share_memory meshgrid piecewise select shares_memory sort_complex tril_indices_from
        triu_indices_from
    """,
    "statistics": "average cumulative_prod cumulative_sum ediff1d gradient histogram2d",
    "value_dependent_shapes": """
        argwhere bincount compress extract flatnonzero intersect1d nonzero setdiff1d setxor1d
        union1d unique unique_all unique_counts unique_inverse unique_values where
    """,
}
