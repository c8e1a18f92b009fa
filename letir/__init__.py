"""letir: NumPy functions as programs that can be read, checked, transformed, differentiated and
replayed.

    f = letir.trace(loss, params, x, y)     a closed Lambda of let-bindings
    df = letir.grad(f)                      the gradient is a program too
    df(params, x, y)                        replayed on NumPy or CuPy

A name loads its module on first use.
"""

import importlib.util
import sys

from letir.ast import LATE_BOUND, load_module

__version__ = "0.1.0"

_PUBLIC = {  # theme -> module -> names; a name loads its module on first use
    "Recording": {
        "tracing.entry": ("trace",),
        "tracing.manual": (
            *("concrete", "is_tracing", "pause_tracing", "tracer_enter", "tracer_exit"),
        ),
        "tracing.trace_state": ("Trace",),
        "tracing.tracer": ("Tracer",),
    },
    "Running": {
        "eval.evaluator": ("run_forward",),
        "executor.compiled": ("compile",),
        "executor.calls": ("last_executed_graph",),
        "executor.explanation": ("explain",),
        "executor.jit_api": ("jit",),
        "kernels.threads": ("get_num_threads", "set_num_threads"),
    },
    "Derivatives and batching": {
        "ad.differentiation": ("differentiate",),
        "ad.gradient_program": ("Gradient",),
        "ad.symbolic_zeros": ("lower_grad_of", "specialize_undef"),
        "transforms.checkpointing": ("checkpoint",),
        "transforms.custom_forward": ("custom_jvp",),
        "transforms.custom_reverse": ("custom_vjp",),
        "transforms.gauss_newton": ("ggnvp",),
        "transforms.gradients": ("grad", "value_and_grad"),
        "transforms.hessians": ("hessian", "hvp"),
        "transforms.jacobians": ("jacfwd", "jacobian", "jacrev"),
        "transforms.pytree_vector": ("ravel",),
        "transforms.residual_report": ("explain_residuals",),
        "transforms.result_types": ("eval_shape",),
        "transforms.stopped_gradients": ("stop_gradient",),
        "transforms.transposition": ("linear_transpose",),
        "transforms.vjp_jvp": ("jvp", "linearize", "vjp"),
        "transforms.vmapping": ("vmap",),
    },
    "Control flow": {
        "tracing.control_flow.conditionals": ("cond", "switch"),
        "tracing.control_flow.map_reduce": (
            "associative_scan",
            "map",
            "reduce",
            "reduce_by_index",
            "scatter",
        ),
        "tracing.control_flow.scans": ("scan",),
        "tracing.control_flow.while_and_fori": ("fori_loop", "while_loop"),
    },
    "Programs": {
        "ast.alpha_equality": ("canonicalize",),
        "ast.builder": ("LetBuilder", "Value"),
        "ast.checker": ("check", "retype"),
        "ast.primitive": ("Primitive",),
        "ast.terms": ("Bind", "Const", "Lambda", "Let", "Local", "Ret", "Source"),
        "ast.types": ("ArrayType", "ShapeDtype", "Size", "Undef"),
        "visitors.substitution": ("from_dag", "to_dag"),
        "visitors.usedef": ("UseDef", "uses"),
        "visitors.visitor": ("ArgVisitor", "ExprVisitor", "TailCall"),
    },
    "Text and files": {
        "ast.text.parser": ("parse",),
        "ast.text.printer": ("dumps",),
        "source.functions": ("to_source",),
        "source.side_by_side.comparison": ("diff",),
        "storage": ("load", "save"),
    },
    "Passes": {
        "passes.pattern_rewrite.replacement": ("rewrite",),
        "passes.slicing": ("slice",),
    },
    "Operations and scripts": {
        "ops.define.user_operations": ("opaque", "primitive"),
        "scripting.operations": ("script_op",),
        "scripting.scripts": ("Script",),
        "scripting.units": ("CompilationUnit", "script"),
    },
    "Variables": {
        "eager.functions.function": ("Function",),
        "eager.grad_mode": ("no_grad",),
        "eager.models.recorded_model": ("jit_model",),
        "eager.models.verification": ("verify",),
        "eager.variable": ("Variable",),
    },
    "Errors": {
        "errors": (
            "BoundsError",
            "DTypeError",
            "EscapedTracerError",
            "ExportError",
            "GuardError",
            "InternalError",
            "LetirError",
            "MissingRule",
            "ParseError",
            "ScopeError",
            "ShapeError",
            "TraceError",
        ),
    },
}
_NAMESPACES = (
    *("dask", "debug", "eager", "extend", "nn", "numpy", "onnx", "passes", "random", "scipy"),
    *("testing", "tree", "viz"),
)
_HOME = {
    name: f"letir.{module}"
    for modules in _PUBLIC.values()
    for module, names in modules.items()
    for name in names
}
# Python's own functions of these names, which `from letir import *` must not hide
_SHADOWING = {"compile", "map", "reduce", "slice"}
__all__ = [name for name in sorted({*_HOME, *_NAMESPACES}) if name not in _SHADOWING]


# {module: names that it enters into LATE_BOUND}: functions of packages that the caller must not
# import, and functions that are seldom called. The module is loaded when a name is first looked up.
_LATE_BOUND = {
    "ad.forward": ("push",),
    "ad.pullback": ("differentiate_body", "pull"),
    "ad.remat.policies": ("with_policy",),
    "ast.alpha_equality": ("equal", "hash"),
    "ast.checker": ("check", "retype"),
    "ast.malformed_programs": ("malformed_error", "wrong_bind_error"),
    "ast.tree_nodes.record_classes": ("register_class",),
    "ast.sizes.size_comparisons": ("compare_with_zero",),
    "progress": ("count_items", "with_progress"),
    "ast.text.positions": ("error_in_text",),
    "ast.text.printer": (
        *("bind_text", "dumps", "line_of", "listing", "numbered_local", "text"),
        "untyped_text",
    ),
    "ast.text.literals": ("parse_size",),
    "dask.block_evaluator": ("dask_evaluator",),
    "eager.grad_mode": ("is_grad_enabled",),
    "eval.array_modules": ("scipy",),
    "eval.evaluator": ("call", "compute", "evaluator"),
    "eval.failures": ("caught_failure", "forget_values", "add_location_note"),
    "eval.float_warnings": ("in_warning_state", "run_error_region", "run_hiding_warnings"),
    "eval.device_functions": ("device_functions",),
    "eval.device_linalg": ("apply_to_stacks",),
    "eval.nan_checks": ("nan_observer",),
    "executor.autodiff.differentiable_program": ("compile_differentiable",),
    "executor.autodiff.subgraphs": (
        *("create_autodiff_subgraphs", "finished_subgraphs", "inline_autodiff_subgraphs"),
    ),
    "executor.kernels.background": ("compile_later", "forget_keys_after_swap"),
    "executor.kernels.device_kernels": ("device_call",),
    "executor.reports": (
        *("executor_state", "size_words", "spec_difference"),
        *("retry_raising", "retry_refused"),
        *("warn_of_compiles", "warn_of_python"),
    ),
    "executor.kernels.batch_kernels": ("with_batch_kernels",),
    "executor.kernels.call_costs": ("cost_of_units",),
    "executor.kernels.convolution_calls": ("with_convolution_kernels",),
    "executor.kernels.group_kernels": ("with_device_kernels", "with_kernels"),
    "executor.kernels.kernel_binds": ("kernel_bind",),
    "executor.kernels.kernel_kinds": ("with_all_kernels",),
    "executor.kernels.arena": ("let_kernels_reuse_memory",),
    "executor.kernels.einsum_products": ("with_einsum_products",),
    "executor.kernels.loop_kernels": ("becomes_loop_kernel", "with_loop_kernels"),
    "executor.kernels.table_kernels": (
        *("with_first_tables", "with_faster_tables", "with_tables"),
    ),
    "executor.kernels.unrolled_kernels": ("with_unrolled_kernels",),
    "executor.methods": (
        *("call_of_objects", "call_on_first", "executor_on_arrays", "holds_attributes_only"),
        "jitted_method",
    ),
    "executor.kernels.plan_kernels": ("kernel_lines", "plan_kernels"),
    "executor.plan_limits": ("exceeds_plan_limit",),
    "executor.measurements.plan_memory": ("plan_memory",),
    "executor.measurements.plan_profile": ("plan_profile",),
    "executor.measurements.profiling": ("profiled_plan",),
    "executor.frequent_calls.object_calls": ("object_call",),
    "executor.frequent_calls.python_calls": ("python_kinds",),
    "executor.frequent_calls.quick_calls": ("quick_call", "quick_plan"),
    "executor.transformed_executors": ("pickled_function", "transformed_function"),
    "kernels.elementary.complex_numbers": ("as_pair", "complex_form_of", "number_pair"),
    "kernels.interpreted_calls": ("interpreted_call",),
    "kernels.llvm.machine_code": ("ufuncs_of",),
    "kernels.machine_costs": ("machine_costs",),
    "passes.peephole_rules.canceling_maxima": ("without_canceling_maxima",),
    "numpy.power_series": ("polynomial_function",),
    "tracing.numpy_functions.polynomial_objects": ("coefficients_of", "horner", "polynomial_call"),
    "numpy.functions_of_sizes": ("sized_function",),
    "plan.generator_draws": ("unchecked_runner", "run_with_generators"),
    "plan.straight_line": ("rest_of_run", "straight_line_of"),
    "ops": ("load_operation", "load_records_of"),
    "ops.control_flow.loop_analysis": ("has_fixed_shape", "restore_number_results"),
    "ops.define.documentation": ("record_documentation", "record_signature"),
    "ops.define.named_operands": ("attributes_error", "operands_by_name"),
    "ops.random.captured_generators": ("traced_class",),
    "ops.random.vector_draws": ("vector_draw",),
    "ops.random.numpy_generator": ("generator_node",),
    "ops.random.generator_arguments": ("with_generator_arguments",),
    "ops.shape.size_numbers": ("number_array", "sized_call"),
    "ops.special.define": ("op_of_scipy",),
    "scipy": ("scipy_recorded",),
    "scipy.formulas.programs": ("formula_program",),
    "scipy.library_calls": ("scipy_call",),
    "scipy.solver_calls": ("scipy_solver",),
    "scipy.interpolate.interpolation": ("interpolation_methods",),
    "scipy.sparse_products": ("sparse_methods",),
    "source.side_by_side.comparison": ("diff",),
    "tracing.concrete_values": ("apply_elsewhere", "demanded_value"),
    "tracing.checks.caught_exceptions": ("note_attempt", "note_error", "note_failure"),
    "tracing.mutation.buffers": ("as_buffer",),
    "tracing.mutation.buffer_calls": ("call_with_buffers", "compute_known"),
    "tracing.checks.baked_constants": ("refuse_another_result", "refuse_baked"),
    "foreign_names": ("attribute_remedy",),
    "tracing.checks.abstract_values": ("explain_abstract", "unanswered_error"),
    "tracing.checks.guarded_copies": ("guarded_integer_copy",),
    "tracing.checks.unrecorded_regions": ("begin_region", "end_region"),
    "ast.tree_nodes.stored_results": ("joined_call",),
    "eval.argument_containers": ("containers_of_call", "without_stores"),
    "tracing.checks.changed_owners": ("settling_owner",),
    "tracing.checks.container_arguments": (
        *("argument_snapshot", "refusing_changes_at_two_places", "with_stores"),
    ),
    "tracing.checks.recording_limits": ("note_guard", "note_length", "record_limited"),
    "tracing.numpy_protocols.rule_calls": ("call_on_values", "call_ufunc_on_values"),
    "tracing.numpy_protocols.traced_slices": ("take_traced_slices",),
    "tracing.checks.draw_errors": ("draws_in_code_error",),
    "tracing.checks.hidden_random_state": ("watch_numpy_random",),
    "tracing.checks.unsupported": ("refusal_reason",),
    "tracing.checks.misuse": (
        *("argument_error", "describe_value", "not_callable_error", "other_operand"),
        *("refuse_flag", "refuse_misfit", "wrong_call_error"),
    ),
    "tracing.checks.user_functions": (
        *("call_plainly", "call_rule", "not_a_program_error", "refuse_argnums", "refuse_call"),
        *("refuse_c_function", "refuse_positions", "refuse_static", "refuse_unless_function"),
    ),
    "tracing.checks.short_tracebacks": ("shorten_traceback",),
    "tracing.checks.symbolic_size_reads": (
        *("answer_by_guard", "number_of_size", "numpy_call_on_size", "watch_size_reads"),
    ),
    "tracing.called_programs": ("replay_each",),
    "tracing.static_leaves": (*("refuse_ambiguous_options", "with_static", "with_static_leaves"),),
    "tracing.mutation.overlapping_arguments": (
        *("inlined_effect", "refuse_captured", "require_separate"),
    ),
    "tracing.mutation.structured_buffers": ("structured_buffer", "structured_rows"),
    "tracing.mutation.adopted_arrays": ("adopt_item_write", "adopt_result_array"),
    "tracing.mutation.operator_results": (
        *("end_owning", "note_refused_write", "record_again_owning", "recorded_again"),
        "start_owning",
    ),
    "tracing.mutation.returned_views": ("with_returned_views",),
    "tracing.mutation.array_layout": ("as_strided", "flags_of", "layout_of", "resize", "set_shape"),
    "executor.symbolic_recordings": ("record_for_sizes",),
    "executor.external_state.changes": (
        *("call_as_python", "refuse_changes", "refuse_changes_of"),
        *("require_same_state", "restore_state"),
    ),
    "executor.external_state.effects": (
        *("note_call_of_user", "note_log", "note_open", "note_output"),
        *("raise_has_effects", "warn_in_place"),
    ),
    "executor.external_state.library_objects": (
        "iterators_in_use",
        "values_of_library_object",
    ),
    "executor.external_state.earlier_changes": ("call_noting_changes",),
    "executor.external_state.identity_tests": ("refuse_tests_of_identity",),
    "executor.external_state.iterators": (
        *("call_watching", "generator_position", "run_watching_iterators"),
        "watch_iterators",
    ),
    "executor.frequent_calls.external_values": ("calls_letir", "is_faster_in_scipy", "values_read"),
    "executor.frequent_calls.repeated_calls": ("outside_state", "repeated_call"),
    "tracing.late_imports": ("restore_new_modules", "watched_spec"),
    "tracing.operands": ("guarded_attribute", "stack_traced"),
    "tracing.scipy_stand_ins": (
        *("functions_decomposed", "functions_faster_in_scipy", "loaded_scipy_modules"),
    ),
    "tracing.distribution_methods": ("distribution_methods",),
    "tracing.checks.warning_places": (
        *("call_at_user", "reduce_at_user", "refuse_warnings_as_errors", "warn_at_user"),
    ),
    "tracing.refusals": (
        *(
            "ambiguous_truth_error",
            "escaped_error",
            "lost_change_error",
            "not_an_index_error",
            "not_one_number_error",
        ),
        *("note_list_of_integers", "note_refusal"),
    ),
    "tracing.library_stand_ins": (
        "watch_process",
        *("library_methods", "library_modules", "function_stand_in", "sized_stand_in"),
        *("list_taking_function", "recorded_function"),
    ),
    "tracing.numpy_protocols.boolean_identity": ("known_boolean",),
    "tracing.checks.object_arguments": (
        *("flatten_marking_generators", "flatten_objects", "marked_copy", "objects_flattened"),
        *("argument_leaves", "refuse_objects"),
    ),
    "tracing.class_stand_ins": ("class_read", "class_stand_in"),
    "tracing.container_sites": (
        *("cached_members", "cached_sites", "holds_traced", "learn_held_functions"),
        *("note_held_function", "start_held_stand_ins"),
    ),
    "tracing.math_stand_ins": (
        *("cached_function", "cached_stand_ins", "named_stand_ins", "python_stand_ins"),
        "scalar_stand_ins",
    ),
    "tracing.numpy_functions.testing_functions": ("assertion_stand_in",),
    "tracing.numpy_functions.late_modules": ("loaded_modules",),
    "tracing.numpy_functions.list_arguments": (
        *("learn_function_of_lists", "note_function_of_lists", "note_module_of_numbers"),
        "note_module_beside_extensions",
        "note_function_of_object",
        "watch_list_arguments",
    ),
    "tracing.numpy_functions.select_and_grid": ("piecewise",),
    "tracing.numpy_functions.texts": ("choose_texts",),
    "tracing.numpy_protocols.errstate_regions": ("record_errstate",),
    "tracing.numpy_protocols.gufuncs": ("move_core_axes",),
    "tracing.numpy_protocols.out_casts": (
        *("casting_into_out", "casting_of_fold", "mean_into_out"),
    ),
    "tracing.numpy_protocols.python_protocols": ("known_key", "with_known_keys"),
    "tracing.numpy_protocols.python_numbers": ("apply_python_operator", "is_users_operator"),
    "tracing.numpy_protocols.text_formats": (
        *(
            "float_for_text",
            "format_traced",
            "guard_printed",
            "json_stand_in",
            "note_text",
            "number_of_text",
            "text_by_function",
        ),
        "text_of",
    ),
    "tracing.numpy_protocols.text_readers": ("reading_stand_in", "refuse_texts", "text_reader"),
    "tracing.statistics_stand_ins": ("statistics_module",),
    "tracing.random_draws": (*("draw_watch", "generator_states", "generators_of", "record_draw"),),
    "tracing.checks.own_generators": ("keeps_generator",),
    "tracing.checks.reachable_draws": ("reaches_draws",),
    "transforms.batching": ("batch_program",),
    "transforms.transposition": ("transposed_program",),
    "viz.executor_view": ("compiled_html", "executor_html", "plan_html", "state_html"),
    "viz.gradient_view": ("gradient_html",),
    "viz.program_view": ("program_html",),
    "viz.report_views": (
        *("comparison_html", "explanation_html", "memory_html", "profile_html"),
        *("residuals_html", "variable_html"),
    ),
    "viz.terminal_colors": ("pretty_program",),
}


def _load_late_bound(name: str) -> None:
    """Load the module that enters ``name`` into ``LATE_BOUND``; nothing happens if none does."""
    for module, names in _LATE_BOUND.items():
        if name in names:
            load_module(f"letir.{module}")


LATE_BOUND.load = _load_late_bound


def __getattr__(name: str):
    if name in _HOME:
        result = globals()[name] = getattr(load_module(_HOME[name]), name)
        return result
    # packages such as letir.ops too, for readers of the internals
    if not name.startswith("_") and importlib.util.find_spec(f"letir.{name}") is not None:
        return load_module(f"letir.{name}")
    raise load_module("letir.foreign_names").missing_name(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted({*_HOME, *_NAMESPACES})
