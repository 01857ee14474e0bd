"""Tables in a notebook's output: accessible, and no text in them is taken for markup."""

from gpulab.markup import table


def test_table_with_headings_and_caption() -> None:
    """Each heading says whether it is of a column or of a row."""
    assert table([["a", 1]], caption="T", headings=["name", "n"], has_row_headings=True) == (
        '<table><caption>T</caption><thead><tr><th scope="col">name</th><th scope="col">n</th>'
        '</tr></thead><tbody><tr><th scope="row">a</th><td>1</td></tr></tbody></table>'
    )


def test_text_is_aligned_left() -> None:
    """In every cell, as a style sheet of the page aligns them right."""
    left = 'style="text-align:left"'
    assert table([["a", "b"]], headings=["x", "y"], has_row_headings=True, is_text=True) == (
        f'<table><thead><tr><th scope="col" {left}>x</th><th scope="col" {left}>y</th></tr>'
        f'</thead><tbody><tr><th scope="row" {left}>a</th><td {left}>b</td></tr></tbody></table>'
    )


def test_everything_in_a_table_is_escaped() -> None:
    """Caption, headings and cells of either kind."""
    page = table([["<b>", "<b>"]], caption="<b>", headings=["<b>"], has_row_headings=True)
    assert "<b>" not in page
    assert page.count("&lt;b&gt;") == 4


def test_empty_table() -> None:
    """Without rows the headings stand alone."""
    assert table([], headings=["x"]) == (
        '<table><thead><tr><th scope="col">x</th></tr></thead><tbody></tbody></table>'
    )
