"""Golden sets in a project's own tests: a pytest plugin with the fixture `golden`.

pytest loads `plugin.py` at every start, in every project of an environment that has raggs. Until a test uses the
fixture, the plugin only registers its options and its marker, and imports no other module of raggs.
"""
