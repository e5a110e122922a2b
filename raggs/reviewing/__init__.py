"""Human labels in a browser: what each annotator is asked next, and the page that asks.

session             who is asked what, and what happens to the labels; it knows no HTTP
server              HTTP: requests in, answers of the session out; access control
pool, ordering      the passages that may be graded, and those to be ordered
deciding, agreeing  labels that differ, and how they are adjudicated; agreement of annotators
page                HTML, styles and scripts
"""
