"""The configuration: one YAML file, checked as a whole, and the wiring that it asks for."""
