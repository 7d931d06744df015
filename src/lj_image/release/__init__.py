"""What is said of a release after it exists: its record. Notes, papers and the resumable run have their place here.

In: Plan, image id, VerifyReport, published references. Out: one JSON document per release × variant.
"""
