"""The verifier's checks, one file each; :mod:`streams.chaos.verifier` makes them all."""
