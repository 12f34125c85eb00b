"""`kinprint demo`: small models, a mirror on this machine, and what their norms show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kinprint.cli.loopback import loopback_hub
from kinprint.errors import DemoMissing

if TYPE_CHECKING:
    from kinprint.records import Cost
    from kinprint.studies.norms import NormComparison


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for the picture and the data.",
)
def command(output: Path) -> None:
    """Inspect and compare the repository's small models, read over HTTP Range.

    A mirror of the Hub is started on this machine; nothing leaves it, and the cache and
    the settings of your own Hub tools are left alone.
    """
    folder = demo_folder()
    with loopback_hub(folder):
        _run(folder, output)


def demo_folder() -> Path:
    """The repository's demo folder: from here, or from where this package was checked out."""
    candidates = (Path.cwd() / "demo", Path(__file__).resolve().parents[3] / "demo")
    for candidate in candidates:
        if (candidate / "pairs.json").is_file():
            return candidate
    raise DemoMissing(folder=str(candidates[0]))


def _run(folder: Path, output: Path) -> None:
    import msgspec

    from kinprint.model.inspection import Inspection
    from kinprint.model.opened import open_models
    from kinprint.reader.cache import Cache
    from kinprint.reader.checkpoint import open_checkpoints
    from kinprint.reader.fetch import Fetcher
    from kinprint.report.norms import draw_norms, norm_document
    from kinprint.studies.norms import compare_norms

    pairs: list[dict[str, Any]] = msgspec.json.decode((folder / "pairs.json").read_bytes())
    names = list(dict.fromkeys(name for pair in pairs for name in (pair["a"], pair["b"])))
    click.echo("Small language models, served by a mirror on this machine as the Hub serves them,")
    click.echo("and read over HTTP Range.\n")
    with Fetcher(cache=Cache.default()) as fetcher:
        opened = open_models(open_checkpoints(names, fetcher))
        models = dict(zip(names, opened, strict=True))
        held = 0
        for name, model in models.items():
            found = Inspection(model)
            held += found.nbytes
            click.echo(
                f"  {name:<12} {found.geometry.architecture}, {found.geometry.layers} layers, "
                f"{len(found.tensors)} tensors in {len(found.shards)} file"
                f"{'s' * (len(found.shards) != 1)}"
            )
        compared = [
            (compare_norms(models[pair["a"]], models[pair["b"]]), pair["known"], pair["related"])
            for pair in pairs
        ]
        spent = fetcher.spent
    _print_pairs(compared)
    document = norm_document(compared)
    output.mkdir(parents=True, exist_ok=True)
    (output / "norms.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(document), indent=2)
    )
    draw_norms(document, output / "norms.png")
    _print_end(spent, held, output)


def _print_pairs(compared: list[tuple[NormComparison, str, bool]]) -> None:
    click.echo("\nNorm vectors, averaged     cosine  Pearson   what is known")
    for found, known, _ in compared:
        pair = f"{_short(found.a.name)} and {_short(found.b.name)}"
        click.echo(f"  {pair:<22}  {found.mean_cosine:7.4f}  {found.mean_pearson:7.3f}   {known}")
    click.echo(
        "\nThe raw cosine is above 0.99 for both pairs: it says nothing. Centred (Pearson), the\n"
        "descendant stands out and the stranger does not. A look at the numbers, not a verdict."
    )


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _print_end(spent: Cost, held: int, output: Path) -> None:
    from kinprint.reader.sizes import in_words

    click.echo(
        f"\nRead {in_words(spent.bytes)} of {in_words(held)} in {spent.requests} requests, "
        f"{spent.seconds:.1f} s."
    )
    click.echo(f"Picture: {output / 'norms.png'}   Data: {output / 'norms.json'}")
