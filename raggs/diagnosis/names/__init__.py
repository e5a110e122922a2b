"""`raggs diagnose names`: how much of a score hangs on who is named, and which changes of a text destroy that."""
