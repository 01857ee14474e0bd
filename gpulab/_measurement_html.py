"""A measurement as HTML: its line, its doubts, its samples drawn, and its facts in a table."""

from collections.abc import Iterable

from gpulab._distribution import Distribution
from gpulab._markup import clean

Pairs = Iterable[tuple[str, str]]


def to_html(
    estimate: str, remark: str, shown: Distribution, *, facts: Pairs, findings: Pairs
) -> str:
    """Return one element of well-formed XML that needs no script and no style sheet.

    Parameters
    ----------
    estimate, remark
        The two parts of the one-line form: in bold, and in brackets behind it.
    shown
        The samples and their estimate.
    facts
        Name and text of each row of the table.
    findings
        Code and text of each finding.
    """
    return "\n".join(
        [
            '<div class="gpulab-measurement">',
            f'<p style="margin:0.3em 0"><strong>{clean(estimate)}</strong> ({clean(remark)})</p>',
            *_findings(findings),
            shown.to_svg(),
            *_details(facts),
            "</div>",
        ]
    )


def _findings(findings: Pairs) -> list[str]:
    items = [f"<li><strong>{clean(code)}</strong>: {clean(text)}</li>" for code, text in findings]
    return ['<ul aria-label="Findings" style="margin:0.3em 0">', *items, "</ul>"] if items else []


def _details(facts: Pairs) -> list[str]:
    rows = [
        f'<tr><th scope="row" style="text-align:left">{clean(name)}</th>'
        f'<td style="text-align:left">{clean(text)}</td></tr>'
        for name, text in facts
    ]
    opening = "<details><summary>Samples and conditions</summary><table><tbody>"
    return [opening, *rows, "</tbody></table></details>"]
