"""Words: one catalogue a language, and one way to say a thing.

Code names a sentence by its key and gives the values that belong into it; the sentence itself
stands in `catalogues/en.po`, `catalogues/ko.po`, and so on. A new language is one more file there.

    >>> fields = {"file": "config.json", "cause": "it is empty"}
    >>> say("error.BadConfig", "en", **fields)     # a string, now
    >>> message("error.BadConfig", **fields)       # to be said later, in any language
    >>> words("error.BadConfig", **fields)["ko"]   # in all languages, to travel with data
    >>> sentence("error.BadConfig", **fields)      # English text that knows its other languages

Fields are filled in with `str.format`, but for shares: `{share:.1%}` is "0.3 %", and never 0 or 100
of what is some or nearly all. A field may be a message or words itself, which are said in
the language of the sentence around them. Keys are lower-case parts joined by dots, from the general
to the special, such as `verdict.answer.derived`; a sentence with a `count` may have plural forms.
"""

from kinprint.text.catalogue import field_names, known_keys, knows, languages
from kinprint.text.message import (
    Message,
    Sentence,
    Span,
    Words,
    in_percent,
    joined,
    joined_sentences,
    message,
    plain,
    say,
    sentence,
    spans,
    words,
)

__all__ = [
    "Message",
    "Sentence",
    "Span",
    "Words",
    "field_names",
    "in_percent",
    "joined",
    "joined_sentences",
    "known_keys",
    "knows",
    "languages",
    "message",
    "plain",
    "say",
    "sentence",
    "spans",
    "words",
]
