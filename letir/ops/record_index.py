"""Which file of ``letir/ops`` defines which records: read by ``letir.ops``.

Written by ``python docs/make_index.py``; a test fails if it is not up to date.
"""

OPERATIONS = {  # module: the operations that it defines
    "autodiff.checkpoint_and_custom_jvp": "checkpoint custom_jvp",
    "autodiff.gradient_steps": "autograd_add custom_vjp grad_of guard instantiate when_defined",
    "autodiff.scripted": "scripted",
    "autodiff.subgraph": "differentiable_graph",
    "control_flow.conditionals": "cond switch",
    "control_flow.loop_over_examples": "looped",
    "control_flow.map_reduce": "associative_scan map reduce",
    "control_flow.odeint": "odeint",
    "control_flow.scans": "scan",
    "control_flow.scattered_updates": "reduce_by_index scatter",
    "control_flow.while_and_fori": "fori_loop while_loop while_scan",
    "define.safe_division": "quotient",
    "effects.errstate": "errstate",
    "effects.printing": "print",
    "effects.raised_errors": "guard_computed guard_raised",
    "effects.separate_arguments": "guard_separate",
    "effects.writes_to_arguments": "complex_of guard_order write_back",
    "elementwise.casting": "barrier cast copy stop_gradient weaken",
    "elementwise.clip": "clip",
    "elementwise.comparisons_and_where": """
        bitwise_and bitwise_or bitwise_xor equal greater greater_equal invert isfinite isinf isnan
        less less_equal logical_and logical_not logical_or logical_xor not_equal where
    """,
    "elementwise.floating": """
        angle copysign degrees divmod fabs float_power fmax fmin fmod frexp heaviside ldexp
        logaddexp2 modf nextafter radians signbit spacing unwrap
    """,
    "elementwise.fused": "fused",
    "elementwise.integer": "bitwise_count gcd lcm left_shift right_shift",
    "elementwise.logaddexp": "logaddexp",
    "elementwise.math_functions": "complex_math_function math_function math_reduction",
    "elementwise.python_operators": "python_operator",
    "elementwise.rounding": "isclose nan_to_num round",
    "elementwise.rounding_sign_parts": "abs ceil conj floor imag real rint sign trunc",
    "elementwise.sinc_and_i0": "i0 i0_slope sinc",
    "elementwise.ufuncs": """
        add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt cos cosh div exp exp2 expm1
        floor_divide hypot log log10 log1p log2 maximum minimum mul neg positive power reciprocal
        remainder sin sinh sqrt square sub tan tanh
    """,
    "indexing.basic": "assemble index index_add index_set",
    "indexing.data_dependent": "bincount first_places isin nonzero unique",
    "indexing.dynamic_slice": "dynamic_slice",
    "indexing.index_encoding": "packbits ravel_multi_index unpackbits unravel_index",
    "indexing.searchsorted": "digitize searchsorted",
    "indexing.sorting": "argpartition argsort lexsort partition sort",
    "indexing.take": "choose take take_along_axis",
    "indexing.ufunc_at": "ufunc_at",
    "linalg.cholesky_qr": "cholesky qr",
    "linalg.contractions": "inner matvec multi_dot outer tensordot vdot vecdot vecmat",
    "linalg.cross_kron_vander": "cross kron vander",
    "linalg.eigen": "eig eigh eigvals eigvalsh",
    "linalg.generalized_eigen": "generalized_eigh",
    "linalg.least_squares": "lstsq",
    "linalg.matmul_einsum": "dot einsum matmul",
    "linalg.matrix_functions": """
        checked_finite expm logm multivariate_normal_logpdf solve_triangular sqrtm
    """,
    "linalg.norms": "condition_number matrix_norm norm vector_norm",
    "linalg.schur_form": "triangular_schur_form",
    "linalg.solve_inv_det": "cofactors det inv matrix_power slogdet solve tensorinv tensorsolve",
    "linalg.svd": "matrix_rank pinv svd svdvals",
    "linalg.sylvester": "solve_sylvester",
    "nn.activations": """
        celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid mish
        prelu relu relu6 selu sigmoid silu softplus softshrink softsign tanhshrink
    """,
    "nn.attention": "attention",
    "nn.class_losses": "checked_classes cross_entropy nll_loss one_hot",
    "nn.convolution": "conv conv_transpose conv_weight",
    "nn.distances": "cosine_embedding_loss cosine_similarity pairwise_distance triplet_margin_loss",
    "nn.embedding_linear_dropout": "dropout embedding linear",
    "nn.losses": """
        binary_cross_entropy binary_cross_entropy_with_logits gaussian_nll_loss hinge_embedding_loss
        huber_loss kl_div l1_loss margin_ranking_loss mse_loss poisson_nll_loss smooth_l1_loss
        soft_margin_loss
    """,
    "nn.normalization": "batch_norm group_norm layer_norm rms_norm",
    "nn.pooling": "avg_pool fold max_pool unfold",
    "nn.softmax": "log_softmax logsumexp softmax",
    "random.distributions": """
        random_bernoulli random_categorical random_exponential random_normal random_randint
        random_uniform
    """,
    "random.gamma_and_truncated": "random_gamma random_truncated_normal",
    "random.keys_and_draws": "random_draw random_fold_in random_key random_split",
    "random.numpy_generator": "generator_draw",
    "random.permutation_choice": "random_choice random_permutation random_places",
    "reductions.covariance": "corrcoef cov",
    "reductions.cumulative": "cumprod cumsum",
    "reductions.histograms": "bin_count histogram histogram_bin_edges histogramdd",
    "reductions.linear_recurrence": "linear_recurrence",
    "reductions.nan_reductions": """
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar
    """,
    "reductions.product": "prod",
    "reductions.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "reductions.reductions": "all any argmax argmin max mean min sum",
    "reductions.ufunc_methods": "ufunc_accumulate ufunc_reduce ufunc_reduceat",
    "reductions.variance_and_average": "average count_nonzero ptp std var",
    "shape.concatenate_stack_split": "concatenate split stack",
    "shape.eye_and_arange": "arange eye",
    "shape.linspace": "geomspace linspace logspace",
    "shape.padding": "pad",
    "shape.repeat_and_diagonal": "diagflat diagonal repeat roll tile trace tril triu",
    "shape.reshape_and_ravel": "ravel reshape",
    "shape.shape_and_creation": "broadcast_to constant full ones size sum_to_size zeros",
    "shape.size_numbers": "length sized",
    "shape.sliding_windows": "sliding_window_view",
    "shape.strided_views": "as_strided",
    "shape.transpose": "transpose",
    "shape.unit_axes_and_flip": "expand_dims flip squeeze",
    "signal.all_pole_filter": "all_pole_filter",
    "signal.convolve_correlate": "convolve correlate",
    "signal.finite_differences": "diff gradient trapezoid",
    "signal.fourier_transforms": "fftn ifftn irfftn rfftn",
    "signal.interpolation": "interp",
    "signal.polynomials": "polydiv polyfit polyval",
    "special.bessel": """
        bessel_i0 i0e i1 i1e iv ive j0 j1 jv k0 k0e k1 k1e kn kv kve special_cbrt special_exp2
        special_expm1 special_log1p special_round y0 y1 yn yv
    """,
    "special.beta_gradient": "betainc_slope",
    "special.densities": """
        beta_cdf beta_isf beta_logcdf beta_logpdf beta_logsf beta_pdf beta_ppf beta_sf cauchy_cdf
        cauchy_isf cauchy_logcdf cauchy_logpdf cauchy_logsf cauchy_pdf cauchy_ppf cauchy_sf chi2_cdf
        chi2_isf chi2_logcdf chi2_logpdf chi2_logsf chi2_pdf chi2_ppf chi2_sf expon_cdf expon_isf
        expon_logcdf expon_logpdf expon_logsf expon_pdf expon_ppf expon_sf gamma_cdf gamma_isf
        gamma_logcdf gamma_logpdf gamma_logsf gamma_pdf gamma_ppf gamma_sf laplace_cdf laplace_isf
        laplace_logcdf laplace_logpdf laplace_logsf laplace_pdf laplace_ppf laplace_sf logistic_cdf
        logistic_isf logistic_logcdf logistic_logpdf logistic_logsf logistic_pdf logistic_ppf
        logistic_sf norm_cdf norm_isf norm_logcdf norm_logpdf norm_logsf norm_pdf norm_ppf norm_sf
        poisson_cdf poisson_logpmf poisson_pmf poisson_sf t_cdf t_isf t_logcdf t_logpdf t_logsf
        t_pdf t_ppf t_sf uniform_cdf uniform_isf uniform_logcdf uniform_logpdf uniform_logsf
        uniform_pdf uniform_ppf uniform_sf
    """,
    "special.distribution_functions": """
        bdtr bdtrc chdtr chdtrc chdtri fdtr fdtrc fdtri gdtr gdtrc nbdtr nbdtrc pdtr pdtrc stdtr
        stdtrit
    """,
    "special.gamma_gradient": "gamma_slope",
    "special.normal_cdf": "normal_cdf",
    "special.scipy_call": "scipy_call",
    "special.scipy_solve": "scipy_solve",
    "special.special_functions": """
        beta betainc betaincc betainccinv betaincinv betaln binom cosdg cosm1 cotdg dawsn entr erf
        erfc erfcinv erfcx erfi erfinv exp1 exp10 expi expit expn exprel gamma gammainc gammaincc
        gammainccinv gammaincinv gammaln gammasgn huber log_expit log_ndtr loggamma logit ndtr ndtri
        ndtri_exp poch polygamma pseudo_huber psi rel_entr rgamma riemann_zeta sindg special_kl_div
        spence tandg wofz wrightomega xlog1py xlogy zeta zetac
    """,
    "special.unknown_slope": "unknown_slope",
    "special.vector_integral": "vector_integral",
}

FUNCTIONS = {  # module: the NumPy and SciPy functions that they record
    "elementwise.casting": "copy",
    "elementwise.clip": "clip",
    "elementwise.comparisons_and_where": """
        bitwise_and bitwise_or bitwise_xor equal greater greater_equal invert isfinite isinf isnan
        less less_equal logical_and logical_not logical_or logical_xor not_equal where
    """,
    "elementwise.floating": """
        angle copysign deg2rad degrees divmod fabs float_power fmax fmin fmod frexp heaviside ldexp
        logaddexp2 modf nextafter rad2deg radians signbit spacing unwrap
    """,
    "elementwise.integer": "bitwise_count gcd lcm left_shift right_shift",
    "elementwise.logaddexp": "logaddexp",
    "elementwise.rounding": "around isclose nan_to_num round",
    "elementwise.rounding_sign_parts": "absolute ceil conjugate floor imag real rint sign trunc",
    "elementwise.sinc_and_i0": "i0 sinc",
    "elementwise.ufuncs": """
        add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt cos cosh divide exp exp2 expm1
        floor_divide hypot log log10 log1p log2 maximum minimum multiply negative positive power
        reciprocal remainder sin sinh sqrt square subtract tan tanh
    """,
    "indexing.data_dependent": "isin",
    "indexing.index_encoding": "packbits ravel_multi_index unpackbits unravel_index",
    "indexing.searchsorted": "digitize searchsorted",
    "indexing.sorting": "argpartition argsort lexsort partition sort",
    "indexing.take": "choose take take_along_axis",
    "linalg.cholesky_qr": "cholesky qr",
    "linalg.contractions": "inner matvec multi_dot outer tensordot vdot vecdot vecmat",
    "linalg.cross_kron_vander": "cross kron vander",
    "linalg.eigen": "eig eigh eigvals eigvalsh",
    "linalg.least_squares": "lstsq",
    "linalg.matmul_einsum": "dot einsum matmul",
    "linalg.norms": "cond matrix_norm norm vector_norm",
    "linalg.solve_inv_det": "det inv matrix_power slogdet solve tensorinv tensorsolve",
    "linalg.svd": "matrix_rank pinv svd svdvals",
    "reductions.covariance": "corrcoef cov",
    "reductions.cumulative": "cumprod cumsum",
    "reductions.histograms": "histogram histogram_bin_edges histogramdd",
    "reductions.nan_reductions": """
        nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd nansum nanvar
    """,
    "reductions.product": "prod",
    "reductions.quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "reductions.reductions": "all amax amin any argmax argmin max mean min sum",
    "reductions.variance_and_average": "count_nonzero ptp std var",
    "shape.concatenate_stack_split": "array_split concatenate split stack",
    "shape.linspace": "geomspace linspace logspace",
    "shape.padding": "pad",
    "shape.repeat_and_diagonal": "diagflat diagonal repeat roll tile trace tril triu",
    "shape.reshape_and_ravel": "reshape",
    "shape.shape_and_creation": "broadcast_to",
    "shape.sliding_windows": "sliding_window_view",
    "shape.transpose": "moveaxis swapaxes transpose",
    "shape.unit_axes_and_flip": "expand_dims flip squeeze",
    "signal.convolve_correlate": "convolve correlate",
    "signal.finite_differences": "diff trapezoid",
    "signal.fourier_transforms": """
        fft fft2 fftn ifft ifft2 ifftn irfft irfft2 irfftn rfft rfft2 rfftn
    """,
    "signal.interpolation": "interp",
    "signal.polynomials": "polydiv polyval",
    "special.bessel": """
        cbrt exp2 expm1 i0 i0e i1 i1e iv ive j0 j1 jv k0 k0e k1 k1e kn kv kve log1p round y0 y1 yn
        yv
    """,
    "special.distribution_functions": """
        bdtr bdtrc chdtr chdtrc chdtri fdtr fdtrc fdtri gdtr gdtrc nbdtr nbdtrc pdtr pdtrc stdtr
        stdtrit
    """,
    "special.special_functions": """
        _riemann_zeta _zeta beta betainc betaincc betainccinv betaincinv betaln binom cosdg cosm1
        cotdg dawsn entr erf erfc erfcinv erfcx erfi erfinv exp1 exp10 expi expit expn exprel gamma
        gammainc gammaincc gammainccinv gammaincinv gammaln gammasgn huber kl_div log_expit log_ndtr
        loggamma logit ndtr ndtri ndtri_exp poch pseudo_huber psi rel_entr rgamma sindg spence tandg
        wofz wrightomega xlog1py xlogy zetac
    """,
}
