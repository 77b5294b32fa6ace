"""Writes documents to a server: mongodb_writes.py URI COUNT."""

import sys

import pymongo

uri, count = sys.argv[1], int(sys.argv[2])
client = pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000)
orders = client.shop.orders
orders.insert_many([{"number": number} for number in range(count)])
assert orders.count_documents({}) == count
