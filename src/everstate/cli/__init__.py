"""The command line: `main.py` puts the commands of `commands/` together and turns errors into messages and exit codes.

`service_file.py` loads a service and `service_modules.py` imports what defines it; `service_options.py` and
`log_option.py` are what commands have in common; `plan_text.py` and `record_lines.py` print.
"""
