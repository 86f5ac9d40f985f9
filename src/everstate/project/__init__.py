"""What a project says once for all commands: `everstate.toml`, or `[tool.everstate]` in `pyproject.toml`.

`project_file.py` finds and reads it, `lines.py` says where in it something stands, `config_values.py` reads what it
says for `Service.config` and what counts as true, and `starting.py` writes a new project from `template/`.
"""
