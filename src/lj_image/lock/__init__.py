"""A Release becomes a Lock: exact files, by digest; and the store on this machine that holds them.

In: Release, Config. Out: `Lock`, files in the artifact store. Never imports an engine or a plan; HTTP stays in
`http`, `index` and `fetch`.
"""
