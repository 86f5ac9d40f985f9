"""What a service is: frozen nodes, schemas, keys, validation, errors. Knows no Spark."""
