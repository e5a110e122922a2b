"""The configuration: one YAML file, checked as a whole, with the origin of each value. It builds nothing."""
