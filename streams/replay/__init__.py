"""Replay: any answer explained offline from its log. Reads, folds, and touches nothing."""
