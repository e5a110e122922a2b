"""Golden sets in a project's own tests: the plugin of pytest, which has the fixture `golden`.

pytest loads `plugin.py` whenever it starts, in every project of an environment that has raggs: so it imports nothing
else of raggs, and does nothing, until a test asks for the fixture.
"""
