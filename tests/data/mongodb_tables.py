"""Writes into so many collections that SecantusDB has made all tables that it spreads them over.

It makes a table at the first write into one of its collections. Killed meanwhile, it does not
start again ("cannot be used until all column groups are created"), which is a defect of its own.
"""

import sys

import pymongo

client = pymongo.MongoClient(f"mongodb://127.0.0.1:{sys.argv[1]}/?directConnection=true")
for number in range(200):
    client["tables"][f"c{number}"].insert_one({})
client.drop_database("tables")
