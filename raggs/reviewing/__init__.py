"""People grade the passages of runs in a browser: what is asked of whom next, and the page that asks.

`session` decides and knows no web; `server` speaks HTTP and decides nothing.
"""
