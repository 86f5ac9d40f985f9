"""What a process does with a service, one module each: run it, preview a change, go back, tidy up, look."""
