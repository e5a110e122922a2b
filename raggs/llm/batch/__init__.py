"""Questions by a provider's Batch API: gathered, sent once, waited for through kills, at about half the price.

`caller` stands where the direct one stands in a conversation; `queue` gathers questions and follows what was sent;
`journal` notes it on the disk; `api` is the provider's side, its endpoints and its lines. May import what `raggs.llm`
may, and its modules.
"""
