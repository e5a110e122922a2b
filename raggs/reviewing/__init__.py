"""Human labels in a browser: the queue of each annotator, and the page for labelling.

session             the queue, and how labels are stored; independent of HTTP
server              HTTP routes and access control
pool, ordering      passages to grade, and batches to order
deciding, agreeing  adjudication of differing labels; agreement of annotators
page                HTML, styles and scripts
"""
