"""What users type: builds a description and runs nothing."""
