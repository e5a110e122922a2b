"""What people put around their questions: greetings, digressions, typing errors, made by seeded generators.

One file each and one line in a registry, as other adapters. A noise adds to a question and loses none of it, unless it
says so: names, numbers and negations stay as they were.

Imports: tools, probes, libraries, llm, leaves.
"""
