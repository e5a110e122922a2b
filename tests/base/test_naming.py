"""Names by their capitals, and where capitals say nothing."""

import pytest

from raggs.base.languages import names_in


@pytest.mark.parametrize(
    ("text", "language", "names"),
    [
        ("Which works by Anna Seghers on exile?", "en", ("Anna", "Seghers")),
        ("what is the boundary layer?", "en", ()),
        ("Ludwig Prandtl said what?", "en", ("Ludwig", "Prandtl")),
        ("Wings stall. Why? Then what", "en", ()),  # the first word of a sentence has a capital anyway
        ("How does NASA test wings?", "en", ()),
        ("What Is The Best Wing Shape", "en", ()),
        ("Is it what I think it is?", "en", ()),
        ("que dit d'Alembert des fluides", "fr", ("d'Alembert",)),
        ("Quels travaux de Saint-Exupéry parlent de vol ?", "fr", ("Saint-Exupéry",)),
        ("Welche Werke von Anna Seghers über das Exil?", "de", ("Anna", "Seghers")),
        ("Welche Werke über das Exil?", "de", ()),  # every noun has a capital
        ("", "en", ()),
        ("?! 12", "en", ()),
    ],
)
def test_names_are_found_where_only_a_name_has_a_capital(text: str, language: str, names: tuple[str, ...]) -> None:
    assert names_in(text, language) == names
