"""The command line: `main.py` puts the commands of `commands/` together and turns errors into messages and exit codes.

`service_loading.py` loads a service and `service_names.py` imports what defines it; `service_options.py` and
`run_options.py` are options that commands share, in groups (`option_groups.py`), and `log_option.py` is where the log
is; `plan_text.py` and `record_lines.py` print.
"""
