"""`kinprint identify`: what is a model built on, of all models of an atlas?"""

from __future__ import annotations

import click

import kinprint
from kinprint.cli.atlas import tell_empty
from kinprint.cli.commands import Whole, command, option
from kinprint.cli.compare import code_for
from kinprint.cli.language import language
from kinprint.cli.output import form_option, given_models, show
from kinprint.cli.reading import reading_options, seed_option
from kinprint.records import Relation


@command("identify")
@click.argument("model", metavar="MODEL")
@option("--atlas", metavar="PLACE")
@option("--shortlist", metavar="N", type=Whole(min=1), default=24)
@option("--deep", metavar="N", type=Whole(min=0), default=0)
@option("--jobs", metavar="N", type=Whole(min=1))
@seed_option
@option("--base", metavar="MODEL")
@option("--declared", metavar="FILE")
@form_option
@option("--exit-code", is_flag=True)
@option("-o", "--output", multiple=True, metavar="PATH")
@reading_options
def identify(
    model: str,
    atlas: str | None,
    shortlist: int,
    deep: int,
    jobs: int | None,
    seed: int,
    base: str | None,
    declared: str | None,
    format: str,
    exit_code: bool,
    output: tuple[str, ...],
    reader: kinprint.Reader,
) -> int:
    """Show what a model is built on."""
    kinprint.Identification.check(output, given_models(model, base))
    found = kinprint.identify(
        model,
        atlas=atlas,
        shortlist=shortlist,
        deep=deep,
        jobs=jobs,
        seed=seed,
        base=base,
        declared=declared,
        reader=reader,
        language=language(),
    )
    show(found, format, output)
    if not found.searched:
        tell_empty(atlas, seed)
    if not found.compared and (found.searched or exit_code):  # 0 would say that nothing links
        return 2
    linked = (*found.parents, *found.descendants, *found.relatives)
    relations = [one.relation for one in linked]
    if not linked and found.undecided:  # nor would 0 be true here: something was not tested
        relations = [Relation.UNTESTABLE]
    return code_for(relations) if exit_code else 0
