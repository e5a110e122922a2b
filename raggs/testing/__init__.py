"""Golden sets in a project's own tests: a pytest plugin with the fixture `golden`.

pytest loads `plugin.py` at every start, in every project of an environment that has raggs. So the plugin imports no
other module of raggs, and does nothing, until a test uses the fixture.
"""
