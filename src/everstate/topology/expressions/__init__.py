"""What a row expression may be: walked node by node, against lists of what is known to work row by row."""
