"""Files that others write, read into columns: runs and judgments in the formats of the field."""
