"""Times and bytes of plans: predicted from types, and measured in calls."""
