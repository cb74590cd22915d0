"""``anabranch chaos``: break everything around the parts, and verify that the promise held."""

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="Break everything around the parts, and verify that every goal got its one answer.",
)
