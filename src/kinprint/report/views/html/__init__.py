"""Pages: one HTML file that holds everything, asks the network for nothing and runs no stranger's
code.

`pair_page` draws two models compared. To draw another kind of document:

1. Write `assets/NAME.html.j2` for the inside of one language, from the macros of
   `assets/parts.html.j2`, with ids that begin with `{{ lang }}-`.
2. Add its words to the catalogues, under `page.`, in every language.
3. Give `frame.assemble` a title and a `frame.render("NAME.html.j2", language, ...)` for each
   language.

Whatever is printed passes through `printable` and is escaped; `Markup` comes from `shapes` and
the catalogues only. Styles sit in classes: the page's policy forbids style attributes.
"""
