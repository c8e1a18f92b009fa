"""``letir demo``: classifiers in plain NumPy, recorded, differentiated and trained on real data.

``models`` is the NumPy code, which knows nothing of letir; ``training`` records and replays it;
``measurement`` times it; ``walkthrough`` prints what happens.
"""
