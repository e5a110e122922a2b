"""Systems against a golden set: from files to a report that a person, a spreadsheet or a CI job can use."""
