"""Records, errors, registries, files, hashes and text: what every other package uses."""
