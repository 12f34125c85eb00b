"""What other packages add to kinprint."""

from __future__ import annotations

from importlib import import_module

from msgspec import Struct

from kinprint import extensions

# The groups of entry points, and what their objects are.
_KINDS = {
    extensions.FORMATS: "kinprint.reader.formats.registry:Format",
    extensions.SOURCES: "kinprint.source.opening:SourceKind",
    extensions.ARCHITECTURES: "kinprint.model.architectures:Architecture",
    extensions.MEASURES: "kinprint.measure.measures:Measure",
    extensions.STUDIES: "kinprint.studies.study:Study",
    extensions.TESTS: "kinprint.lineage.tests.registry:LineageTest",
    extensions.EXPORTS: "kinprint.report.exports:Export",
}


class InstalledExtension(Struct, frozen=True):
    """Something that another package adds.

    Attributes
    ----------
    group : str
        The group of entry points, such as "kinprint.formats".
    name : str
        Its name in that group.
    package : str
        The package that brings it.
    object : str
        Where it lies, as "module:name".
    fault : str or None
        Why it cannot be used, None if it can.

    Examples
    --------
    >>> import kinprint
    >>> [one.name for one in kinprint.installed_extensions() if one.fault]
    []
    """

    group: str
    name: str
    package: str
    object: str
    fault: str | None


def installed_extensions(language: str = "en") -> tuple[InstalledExtension, ...]:
    """List what other packages add: formats, sources, measures, studies, tests and more.

    Each is loaded to see whether it can be used.

    Parameters
    ----------
    language : str
        What faults are told in.

    Returns
    -------
    tuple of InstalledExtension
        By group and name.

    Examples
    --------
    >>> import kinprint
    >>> isinstance(kinprint.installed_extensions(), tuple)
    True
    """
    return tuple(
        InstalledExtension(
            group,
            one.name,
            one.package,
            one.value,
            None if one.fault is None else one.fault.say(language),
        )
        for group in _KINDS
        for one in _extensions(group)
    )


def _extensions(group: str) -> tuple[extensions.Extension[object], ...]:
    module, _, name = _KINDS[group].partition(":")
    kind: type[object] = getattr(import_module(module), name)
    return extensions.extensions(group, kind)
