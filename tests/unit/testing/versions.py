"""What an upgrade has done, in the form that tests compare."""


def kinds(upgrade):
    """What followed for each output."""
    return {action.output: action.kind for action in upgrade.plan.actions}


def written(upgrade):
    """Key and value of all records that the cutovers have published."""
    return [(record.key, record.value) for record in upgrade.records]


def categories(upgrade, output="out"):
    """Why an output was touched."""
    return [str(difference.category) for difference in upgrade.plan.action(output).differences]
