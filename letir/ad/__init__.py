"""The derivative transforms of programs: reverse mode, forward mode, and linearity.

Read ``reverse`` first, then ``differentiation``, which makes a ``Gradient``, and ``forward``.
``remat`` chooses the residuals. Users call the functions of ``letir.transforms``.
"""
