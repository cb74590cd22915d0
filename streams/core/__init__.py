"""The rules of a job, pure: no clock, no chance, no input or output, the standard library only."""
