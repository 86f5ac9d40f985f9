"""What a plan is shown with: paragraphs that serve the terminal and Markdown, causes told once, previews.

`blocks.py` has the paragraphs and how they wrap, `causes.py` gathers what was changed, `cause_text.py` and
`preview_text.py` put it into words; `markdown.py` writes the whole plan of `plan/text.py` for a pull request.
"""
