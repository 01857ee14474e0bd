"""Tables in a notebook's output are accessible, and all text in them is escaped."""

from gpulab.core.markup import Html, clean, table


def test_table_with_headings_and_caption() -> None:
    """Each heading has a scope, column or row, for screen readers."""
    assert table([["a", 1]], caption="T", headings=["name", "n"], has_row_headings=True) == (
        '<table><caption>T</caption><thead><tr><th scope="col">name</th><th scope="col">n</th>'
        '</tr></thead><tbody><tr><th scope="row">a</th><td>1</td></tr></tbody></table>'
    )


def test_text_is_aligned_left() -> None:
    """In a table of text every cell is aligned left, because Jupyter would align it right."""
    left = 'style="text-align:left"'
    assert table([["a", "b"]], headings=["x", "y"], has_row_headings=True, is_text=True) == (
        f'<table><thead><tr><th scope="col" {left}>x</th><th scope="col" {left}>y</th></tr>'
        f'</thead><tbody><tr><th scope="row" {left}>a</th><td {left}>b</td></tr></tbody></table>'
    )


def test_everything_in_a_table_is_escaped() -> None:
    """Text in the caption, the headings and the cells is escaped."""
    page = table([["<b>", "<b>"]], caption="<b>", headings=["<b>"], has_row_headings=True)
    assert "<b>" not in page
    assert page.count("&lt;b&gt;") == 4


def test_a_cell_of_html_is_left_as_it_is() -> None:
    """A cell that is HTML already is not escaped, be it the heading of its row or not."""
    page = table([[Html("<b>a</b>"), Html("<i>b</i>"), "<u>"]], has_row_headings=True)
    assert page == (
        '<table><tbody><tr><th scope="row"><b>a</b></th><td><i>b</i></td>'
        f"<td>{clean('<u>')}</td></tr></tbody></table>"
    )
