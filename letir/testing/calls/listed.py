"""Public functions of NumPy that take no arrays of numbers, grouped by purpose."""

NO_ARRAYS = {
    "reads or writes files": """
        fromfile fromregex genfromtxt load loadtxt save savetxt savez savez_compressed""",
    "reads bytes, text or foreign memory": "frombuffer fromstring from_dlpack",
    "writes one number as text": """
        base_repr binary_repr format_float_positional format_float_scientific""",
    "sets or reports NumPy's options": """
        get_include get_printoptions getbufsize geterr geterrcall info printoptions
        set_printoptions setbufsize seterr seterrcall show_config show_runtime test""",
    "is about dates": """
        busday_count busday_offset datetime_as_string datetime_data is_busday isnat""",
    "is about dtypes and Python objects": """
        isdtype issubdtype isfortran isscalar iterable mintypecode typename""",
    "computes with Python objects": "frompyfunc",
    "makes matrices, a class that NumPy advises against": "asmatrix bmat",
    "iterates in C, over buffers": "nested_iters",
    "is deprecated": "row_stack in1d trapz",
}
