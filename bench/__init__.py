"""Measurements, with one command: ``make bench``. Every figure in docs/benchmarks.md is made here."""
